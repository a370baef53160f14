"""DROP: remove names, and with CASCADE what reads them, as one epoch.

A table or view that another view reads is dropped with CASCADE only. A table that something else reads, such as a
subscription, an output of Python or a rule, is not dropped at all: the error names the reader. A subscription to a view
ends with the view. If a statement fails, all names still stand for what they did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.errors import InUse, ProgramError, UndefinedName
from kpg.sql.parse.sql_statements import DropStatement
from kpg.sql.parse.statement_parser import parse_statements
from kpg.sql.session import sql_errors
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.relation_reads import sequences_read
from kpg.sql.session.sequence_numbers import counter_of
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.sql_states import with_sqlstate

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog
    from kpg.sql.catalog.definition_store import StoredDefinition
    from kpg.sql.session.sql_session import SqlSession


def drop(session: SqlSession, statement: DropStatement) -> QueryResult:
    """Carry out DROP as one epoch."""
    session.require_outside_transaction("DROP")
    catalog = session.catalog
    present = [str(name) for name in statement.names if is_kind(catalog, str(name), statement)]
    doomed: list[str] = []
    for name in present:
        collect_dependents(catalog, name, doomed)
    if not statement.cascade:
        require_independent(present, doomed)
    require_undrawn(catalog, doomed)
    require_unread(catalog, doomed)
    session.before_drop(doomed)
    if doomed:
        remove_all(session, doomed)
        catalog.end_subscriptions(doomed)
    return QueryResult(f"DROP {statement.kind.upper()}")


def is_kind(catalog: DatabaseCatalog, name: str, statement: DropStatement) -> bool:
    """Return whether a name is there and of the kind of the statement; raise if it is of another kind, or missing."""
    from kpg.sql.session.define_names import kind_of_name, with_article

    kind = kind_of_name(catalog, name)
    if kind == statement.kind:
        return True
    if kind is None:
        if statement.if_exists:
            return False
        raise sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, f"there is no {statement.kind} {name!r}")
    raise sql_error(
        ProgramError, sql_errors.WRONG_OBJECT_TYPE, f"{name} is {with_article(kind)}", hint=f"Use DROP {kind.upper()}."
    )


def collect_dependents(catalog: DatabaseCatalog, name: str, doomed: list[str]) -> None:
    """Add a name and all that reads it, readers first."""
    if name in doomed:
        return
    for reader in catalog.readers_of(name):
        collect_dependents(catalog, reader, doomed)
    doomed.append(name)


def require_independent(present: list[str], doomed: list[str]) -> None:
    """Raise if something depends on the names to drop."""
    dependent = next((name for name in doomed if name not in present), None)
    if dependent is not None:
        raise sql_error(
            InUse,
            sql_errors.DEPENDENT_OBJECTS,
            f"cannot drop {', '.join(present)}: {dependent} depends on it",
            hint="DROP … CASCADE drops what depends on it too.",
        )


def require_undrawn(catalog: DatabaseCatalog, doomed: list[str]) -> None:
    """Raise if the default of a column that stays draws from a sequence to drop."""
    sequences = {name for name in doomed if name in catalog.sequences}
    for entry in catalog.tables.values() if sequences else ():
        for column in entry.columns:
            drawn = sequences & sequences_read(column.default or "null")
            if drawn:
                raise sql_error(
                    InUse,
                    sql_errors.DEPENDENT_OBJECTS,
                    f"cannot drop {min(drawn)}: the default of {entry.name}.{column.name} draws from it",
                    hint=f"Drop the table {entry.name} first.",
                )


def require_unread(catalog: DatabaseCatalog, doomed: list[str]) -> None:
    """Raise if an output that is not a view of SQL reads a table to drop."""
    catalog.db.outputs.release_abandoned()
    tables = {name for name in doomed if name in catalog.db.inputs}
    views = {view.output for view in catalog.installed.values()}
    for output in tuple(catalog.db.outputs.values()):
        read = sorted(tables & output.reads)
        if read and output not in views:
            raise sql_error(
                InUse,
                sql_errors.OBJECT_IN_USE,
                f"cannot drop {read[0]}: {output.name if output.is_named else 'a subscription or an output'} reads it",
                hint="Close the subscription, or release() the output.",
            )


def require_unread_input(catalog: DatabaseCatalog, name: str) -> None:
    """Raise if anything reads the input of a table, such as an arrangement of Python."""
    try:
        catalog.db.inputs[name].require_unread()
    except InUse as error:
        raise with_sqlstate(sql_errors.OBJECT_IN_USE, error) from None


# Removal


def remove_all(session: SqlSession, doomed: list[str]) -> None:
    """Remove names in one epoch. If one cannot be removed, or the epoch fails, restore those before it."""
    catalog = session.catalog
    tables = [name for name in doomed if name in catalog.db.inputs]
    others = [name for name in doomed if name not in tables]
    definitions = dict(catalog.store.definitions)
    removed: list[str] = []

    def fill() -> None:
        for name in others:
            remove(name)
        for name in tables:
            removed.extend(index.name for index in catalog.indexes_of(name))
            release_indexes(catalog, name)
            catalog.release_keys(name)
        for name in tables:  # the rows of a table that is gone cannot be restored, so all are checked before
            require_unread_input(catalog, name)
        for name in tables:
            remove(name)

    def remove(name: str) -> None:
        removed.extend(index.name for index in catalog.indexes_of(name))
        removed.append(name)
        release_name(catalog, name)
        if name in catalog.store.definitions:
            catalog.store.remove(name)

    try:
        session.write(fill)
    except BaseException:
        restore(catalog, [definition for name, definition in definitions.items() if name in removed])
        raise


def restore(catalog: DatabaseCatalog, definitions: list[StoredDefinition]) -> None:
    """Create again what was removed, in the order of definition, as far as it is missing."""
    from kpg.sql.session.define_names import create, kind_of_name

    for definition in definitions:
        catalog.store.definitions[definition.name] = definition
        if kind_of_name(catalog, definition.name) is None:
            for statement in parse_statements(definition.text, definition.name):
                create(catalog, statement)
    ordered = sorted(catalog.store.definitions.values())
    catalog.store.definitions = {definition.name: definition for definition in ordered}


def release_name(catalog: DatabaseCatalog, name: str) -> None:
    """Release what one name stands for, which no view reads any more."""
    if name in catalog.broken:
        del catalog.broken[name]
    if name in catalog.indexes:
        catalog.indexes.pop(name).arrangement.release()
    elif name in catalog.installed:
        release_indexes(catalog, name)
        view = catalog.installed.pop(name)
        view.output.release()
        view.arrangement.release()
    elif name in catalog.views:
        del catalog.views[name]
    elif name in catalog.sequences:
        del catalog.sequences[name]
        catalog.store.drop_identity(counter_of(name))
    elif name in catalog.db.inputs:
        drop_table(catalog, name)
    catalog.version += 1


def drop_table(catalog: DatabaseCatalog, name: str) -> None:
    """Drop the input of a table, its indexes and its counters."""
    release_indexes(catalog, name)
    catalog.release_keys(name)
    catalog.db.outputs.release_abandoned()
    catalog.db.inputs[name].drop()
    entry = catalog.tables.pop(name, None)
    for column in () if entry is None else entry.columns:
        catalog.store.drop_identity(f"{name}.{column.name}")


def release_indexes(catalog: DatabaseCatalog, table: str) -> None:
    """Release the indexes of a table or view, and forget their definitions."""
    for index in catalog.indexes_of(table):
        release_name(catalog, index.name)
        if index.name in catalog.store.definitions:
            catalog.store.remove(index.name)
