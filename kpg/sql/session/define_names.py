"""CREATE and DROP: tables, views, materialized views and indexes.

    create(catalog, statement)     check the statement and add what it defines, without noting it on disk
    define(session, statement)     the same as one epoch, with the definition noted
    drop(session, statement)       remove names, and with CASCADE what reads them

A table is an input of the db, keyed by its primary key. A view is a description. A materialized view is an answer that
the db maintains and an arrangement that other queries read. An index is an arrangement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.columns.schema import Schema
from kpg.errors import InUse, NameTaken, NotSupported, ProgramError, UndefinedName
from kpg.sql.bind.bind_statements import NamedColumns, bind_query, bind_scalar
from kpg.sql.catalog.database_catalog import InstalledView, TableIndex
from kpg.sql.catalog.entries import TableColumn, TableEntry, ViewEntry
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lower_query import lower_query
from kpg.sql.parse.sql_statements import (
    AnyStatement,
    CreateIndex,
    CreateTable,
    CreateView,
    DropStatement,
    SqlName,
)
from kpg.sql.relational.relations import Query, without_order
from kpg.sql.relational.scalars import Column
from kpg.sql.session import sql_errors
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.relation_reads import relations_read
from kpg.sql.session.run_query import CatalogSources
from kpg.sql.session.sql_errors import sql_error

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog
    from kpg.sql.session.sql_session import SqlSession

TAGS = {"table": "TABLE", "view": "VIEW", "materialized view": "MATERIALIZED VIEW", "index": "INDEX"}


def define(session: SqlSession, statement: CreateTable | CreateView | CreateIndex) -> QueryResult:
    """Carry out CREATE as one epoch."""
    catalog = session.catalog
    name, kind = defined_name(statement), kind_of(statement)
    session.require_outside_transaction(f"CREATE {TAGS[kind]}")
    replaced = isinstance(statement, CreateView) and statement.or_replace and name in catalog.views
    if name_is_taken(catalog, name) and not replaced:
        if statement.if_not_exists:
            return QueryResult(f"CREATE {TAGS[kind]}")
        raise sql_error(
            NameTaken,
            sql_errors.DUPLICATE_NAME,
            f"there is a relation {name!r} already",
            hint="Choose another name, DROP that one, or write IF NOT EXISTS.",
        )

    def fill() -> None:
        if replaced:
            catalog.store.remove(name)
        create(catalog, statement)
        catalog.store.add(name, statement.span.text())

    session.write(fill)
    return QueryResult(f"CREATE {TAGS[kind]}")


def create(catalog: DatabaseCatalog, statement: AnyStatement) -> None:
    """Add what a CREATE statement defines to the catalog and the db."""
    if isinstance(statement, CreateTable):
        create_table(catalog, statement)
    elif isinstance(statement, CreateView):
        create_view(catalog, statement)
    elif isinstance(statement, CreateIndex):
        create_index(catalog, statement)
    else:
        raise ProgramError(f"not a definition: {type(statement).__name__}")
    catalog.version += 1


# Tables


def create_table(catalog: DatabaseCatalog, statement: CreateTable) -> None:
    """Add a table: an input of the db."""
    entry = table_entry(statement)
    check_columns(catalog, statement, entry)
    schema = Schema(
        tuple(column.name for column in entry.columns),
        tuple(engine_type(column.type, nullable=not column.not_null) for column in entry.columns),
    )
    catalog.db.input(entry.name, schema, key=entry.primary_key or None, exist_ok=True, keep=entry.retained)
    catalog.tables[entry.name] = entry


def table_entry(statement: CreateTable) -> TableEntry:
    """Return the catalog's entry of a table."""
    key = tuple(str(name) for name in statement.primary_key)
    columns = tuple(
        TableColumn(
            str(column.name),
            column.type,
            column.not_null or str(column.name) in key or column.identity is not None,
            None if column.default is None else column.default.text,
            column.identity,
        )
        for column in statement.columns
    )
    name = str(statement.name)
    return TableEntry(name, columns, key, named_checks(statement), is_retained(statement))


def named_checks(statement: CreateTable) -> tuple[tuple[str, str], ...]:
    """Return the name and text of each check; one without a name gets one, as in PostgreSQL."""
    taken = {check.name for check in statement.checks if check.name}
    checks = []
    for check in statement.checks:
        name = check.name
        if name is None:
            base = f"{statement.name}_check"
            name = next(text for number in range(1000) if (text := f"{base}{number or ''}") not in taken)
            taken.add(name)
        checks.append((name, check.condition.text))
    return tuple(checks)


def is_retained(statement: CreateTable) -> bool:
    """Return whether the table keeps its rows; raise if WITH (…) has another option."""
    options = dict(statement.options or {})
    retain = options.pop("retain", "all")
    if options or retain not in ("all", "none"):
        shown = ", ".join(f"{name} = {value}" for name, value in (statement.options or {}).items())
        raise sql_error(
            ProgramError,
            sql_errors.INVALID_PARAMETER,
            f"no such option of a table: {shown}",
            hint="The only option is retain = none: a stream whose rows are not kept.",
        )
    if retain == "none" and statement.primary_key:
        raise sql_error(
            NotSupported,
            sql_errors.NOT_SUPPORTED,
            "a stream that keeps no rows cannot have a PRIMARY KEY",
            hint="Leave out the key, or retain = none.",
        )
    return retain == "all"


def check_columns(catalog: DatabaseCatalog, statement: CreateTable, entry: TableEntry) -> None:
    """Bind defaults and checks once, so that a statement with a wrong one is refused as a whole."""
    for column in statement.columns:
        if column.default is not None:
            bind_scalar(column.default, (), catalog, target=column.type, clause="default")
    columns = tuple(Column(column.name, column.type) for column in entry.columns)
    for check in statement.checks:
        bind_scalar(check.condition, (NamedColumns(entry.name, columns),), catalog, clause="check")


# Views and indexes


def create_view(catalog: DatabaseCatalog, statement: CreateView) -> None:
    """Add a view; a materialized one is installed."""
    name = str(statement.name)
    ordered = bind_query(statement.query, catalog)
    query = without_order(ordered)
    columns = view_columns(statement, query)
    entry = ViewEntry(name, columns, statement.query.text, installed=statement.materialized)
    reads = relations_read(statement.query)
    if not statement.materialized:
        catalog.views[name] = (entry, reads)
        return
    named = Query(query.relation, tuple(column.name for column in columns))
    arrangement = lower_query(catalog.db, named, CatalogSources(catalog)).arrange(*named.names)
    catalog.installed[name] = InstalledView(entry, arrangement, arrangement.output(name), ordered.order, reads)


def view_columns(statement: CreateView, query: Query) -> tuple[TableColumn, ...]:
    """Return the columns of a view: named by its list, else by the query; all different."""
    names = [str(name) for name in statement.columns]
    if len(names) > len(query.names):
        raise sql_error(
            ProgramError,
            "42601",
            f"the view {statement.name} names {len(names)} columns, and its query has {len(query.names)}",
        )
    names += query.names[len(names) :]
    repeated = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if repeated is not None:
        raise sql_error(
            NameTaken, "42701", f"two columns of the view are called {repeated!r}", hint="Rename one with AS."
        )
    return tuple(TableColumn(name, column.type) for name, column in zip(names, query.relation.columns, strict=True))


def create_index(catalog: DatabaseCatalog, statement: CreateIndex) -> None:
    """Add an index: an arrangement of a table or materialized view that later queries share."""
    table = str(statement.table)
    if table not in catalog.db.inputs and table not in catalog.installed:
        raise undefined(catalog, statement.table)
    columns = tuple(str(name) for name in statement.columns)
    arrangement = catalog.relation(table).arrange(*columns)
    name = index_name(statement)
    catalog.indexes[name] = TableIndex(name, table, columns, arrangement)


def index_name(statement: CreateIndex) -> str:
    """Return the name of an index: the one given, or PostgreSQL's."""
    if statement.name is not None:
        return str(statement.name)
    return "_".join([str(statement.table), *map(str, statement.columns), "idx"])


# Dropping


def drop(session: SqlSession, statement: DropStatement) -> QueryResult:
    """Carry out DROP as one epoch."""
    session.require_outside_transaction("DROP")
    catalog = session.catalog
    tag = QueryResult(f"DROP {TAGS[statement.kind]}")
    present = [name for name in statement.names if is_kind(catalog, str(name), statement)]
    doomed: list[str] = []
    for name in present:
        collect_dependents(catalog, str(name), doomed)
    if not statement.cascade:
        named = {str(name) for name in present}
        dependent = next((name for name in doomed if name not in named), None)
        if dependent is not None:
            raise sql_error(
                InUse,
                sql_errors.DEPENDENT_OBJECTS,
                f"cannot drop {', '.join(sorted(named))}: {dependent} depends on it",
                hint="DROP … CASCADE drops what depends on it too.",
            )

    def fill() -> None:
        for name in doomed:
            remove(catalog, name)

    if doomed:
        session.write(fill)
    return tag


def is_kind(catalog: DatabaseCatalog, name: str, statement: DropStatement) -> bool:
    """Return whether a name is there and of the kind of the statement; raise if it is of another kind, or missing."""
    kind = kind_of_name(catalog, name)
    if kind == statement.kind:
        return True
    if kind is None:
        if statement.if_exists:
            return False
        raise sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, f"there is no {statement.kind} {name!r}")
    raise sql_error(ProgramError, sql_errors.WRONG_OBJECT_TYPE, f"{name} is a {kind}", hint=f"Use DROP {TAGS[kind]}.")


def collect_dependents(catalog: DatabaseCatalog, name: str, doomed: list[str]) -> None:
    """Add a name and all that reads it, readers first."""
    if name in doomed:
        return
    for reader in catalog.readers_of(name):
        collect_dependents(catalog, reader, doomed)
    doomed.append(name)


def remove(catalog: DatabaseCatalog, name: str) -> None:
    """Remove one name, which nothing reads any more."""
    if name in catalog.indexes:
        catalog.indexes.pop(name).arrangement.release()
    elif name in catalog.installed:
        remove_indexes(catalog, name)
        view = catalog.installed.pop(name)
        view.output.release()
        view.arrangement.release()
    elif name in catalog.views:
        del catalog.views[name]
    else:
        remove_table(catalog, name)
    if name in catalog.store.definitions:
        catalog.store.remove(name)
    catalog.version += 1


def remove_table(catalog: DatabaseCatalog, name: str) -> None:
    """Drop the input of a table, its indexes and its counters."""
    remove_indexes(catalog, name)
    catalog.release_key(name)
    catalog.db.outputs.release_abandoned()
    catalog.db.inputs[name].drop()
    entry = catalog.tables.pop(name, None)
    for column in () if entry is None else entry.columns:
        catalog.store.drop_identity(f"{name}.{column.name}")


def remove_indexes(catalog: DatabaseCatalog, table: str) -> None:
    """Drop the indexes of a table or view."""
    for index in catalog.indexes_of(table):
        remove(catalog, index.name)


# Names


def defined_name(statement: CreateTable | CreateView | CreateIndex) -> str:
    """Return the name that a statement defines."""
    return index_name(statement) if isinstance(statement, CreateIndex) else str(statement.name)


def kind_of(statement: CreateTable | CreateView | CreateIndex) -> str:
    """Return what a statement creates."""
    if isinstance(statement, CreateView):
        return "materialized view" if statement.materialized else "view"
    return "table" if isinstance(statement, CreateTable) else "index"


def kind_of_name(catalog: DatabaseCatalog, name: str) -> str | None:
    """Return what a name stands for, None if for nothing."""
    if name in catalog.views:
        return "view"
    if name in catalog.installed:
        return "materialized view"
    if name in catalog.indexes:
        return "index"
    return "table" if catalog.entry(name) is not None else None


def name_is_taken(catalog: DatabaseCatalog, name: str) -> bool:
    """Return whether a name stands for something."""
    return kind_of_name(catalog, name) is not None


def undefined(catalog: DatabaseCatalog, name: SqlName) -> UndefinedName:
    """Return the error for a name that stands for nothing."""
    return sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, f"there is no relation {str(name)!r}")
