"""CREATE: tables, views, materialized views, indexes and sequences.

    create(catalog, statement)     check the statement and add what it defines, without noting it on disk
    define(session, statement)     the same as one epoch, with the definition noted: all of it or nothing

A table is an input of the db, keyed by its primary key. A view is a description. A materialized view is an answer that
the db maintains and an arrangement that other queries read. An index is an arrangement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from kpg.columns.building_turns import building_in_turns
from kpg.columns.expression import ColumnReference
from kpg.columns.order_key import OrderKey
from kpg.columns.schema import Schema
from kpg.errors import InUse, NameTaken, NotSupported, ProgramError, UndefinedName
from kpg.sql.bind.bind_statements import NamedColumns, bind_scalar
from kpg.sql.catalog.database_catalog import InstalledView, TableIndex
from kpg.sql.catalog.definition_store import RESERVED, StoredDefinition
from kpg.sql.catalog.entries import CatalogEntry, ReadOrder, TableColumn, TableEntry, ViewEntry
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.lower.lower_query import lower_query
from kpg.sql.parse.sql_statements import (
    AnyStatement,
    CreateIndex,
    CreateSequence,
    CreateTable,
    CreateView,
    SqlName,
)
from kpg.sql.relational.relations import Query, without_order
from kpg.sql.relational.scalars import Column, ColumnValue
from kpg.sql.session import sql_errors
from kpg.sql.session.bound_queries import bound_query
from kpg.sql.session.drop_names import collect_dependents, release_name
from kpg.sql.session.planned_version import planning, require_planned_version
from kpg.sql.session.query_result import QueryResult
from kpg.sql.session.relation_reads import relations_read
from kpg.sql.session.run_query import CatalogSources
from kpg.sql.session.sequence_options import sequence_entry
from kpg.sql.session.sql_errors import sql_error

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.contracts import Arrangement
    from kpg.sql.catalog.database_catalog import DatabaseCatalog
    from kpg.sql.lower.join_choice import JoinChoice
    from kpg.sql.session.sql_session import SqlSession

DefiningStatement: TypeAlias = CreateTable | CreateView | CreateIndex | CreateSequence
TAGS = {
    "table": "TABLE",
    "view": "VIEW",
    "materialized view": "MATERIALIZED VIEW",
    "index": "INDEX",
    "sequence": "SEQUENCE",
}


def define(session: SqlSession, statement: DefiningStatement) -> QueryResult:
    """Carry out CREATE as one epoch. A view is planned in turns before it."""
    catalog = session.catalog
    name, tag = defined_name(statement), f"CREATE {TAGS[kind_of(statement)]}"
    session.require_outside_transaction(tag)
    if name in RESERVED:
        what = f"kpg keeps definitions in {name!r}"
        raise sql_error(NameTaken, sql_errors.RESERVED_NAME, what, hint="Choose another name.")
    replaces = isinstance(statement, CreateView) and statement.or_replace and name in catalog.views
    if not replaces and not has_free_name(catalog, statement):
        return QueryResult(tag)
    view = None
    if isinstance(statement, CreateView):
        with planning(catalog):
            plan = plan_view(catalog, statement, replaces)
        require_planned_version(catalog)
        with building_in_turns():
            view = build_view(catalog, plan)
    written = False
    try:
        with session.db.uninterrupted():
            require_planned_version(catalog)
            if replaces or has_free_name(catalog, statement):  # Python and Datalog may have taken it meanwhile
                write_definition(session, statement, view, replaces)
                written = True
    finally:
        if view is not None and view.arrangement is not None and not written:
            view.arrangement.release()
    return QueryResult(tag)


def has_free_name(catalog: DatabaseCatalog, statement: DefiningStatement) -> bool:
    """Return whether the name that a statement defines is free; raise if it is not, and the statement requires it."""
    name = defined_name(statement)
    if name_is_taken(catalog, name) and not statement.if_not_exists:
        raise sql_error(
            NameTaken,
            sql_errors.DUPLICATE_NAME,
            f"there is {with_article(kind_of_name(catalog, name) or 'output')} {name!r} already",
            hint="Choose another name, DROP that one, or write IF NOT EXISTS.",
        )
    return not name_is_taken(catalog, name)


def write_definition(session: SqlSession, statement: DefiningStatement, view: BuiltView | None, replaces: bool) -> None:
    """Add what a statement defines, and note its text, as one epoch."""
    catalog, name = session.catalog, defined_name(statement)
    before = catalog.store.definitions.get(name), catalog.views.get(name)

    def fill() -> None:
        if replaces:
            catalog.store.remove(name)
        if view is None:
            create(catalog, statement)
        else:
            add_view(catalog, view)
        catalog.store.add(name, statement.span.text())

    try:
        session.write(fill)
    except BaseException:
        take_back(catalog, name, *before)
        raise


def take_back(
    catalog: DatabaseCatalog,
    name: str,
    definition: StoredDefinition | None,
    view: tuple[ViewEntry, frozenset[str]] | None,
) -> None:
    """Undo a definition that was not written: the name stands for what it stood for before."""
    if name in catalog.indexes or name in catalog.installed or name in catalog.tables or name in catalog.sequences:
        release_name(catalog, name)
    catalog.views.pop(name, None)
    catalog.store.definitions.pop(name, None)
    if definition is not None:
        catalog.store.definitions[name] = definition
    if view is not None:
        catalog.views[name] = view
    catalog.version += 1


def require_replaceable(catalog: DatabaseCatalog, statement: CreateView) -> None:
    """Raise if a new definition of a view does not have the columns of the old one, or an installed view reads it."""
    name = str(statement.name)
    if statement.materialized:
        raise sql_error(
            NotSupported,
            sql_errors.NOT_SUPPORTED,
            "CREATE OR REPLACE MATERIALIZED VIEW",
            hint=f"DROP VIEW {name}, and create it again.",
        )
    dependents = all_readers(catalog, name)
    circular = sorted(relations_read(statement.query) & {name, *dependents})
    if circular:
        raise sql_error(
            ProgramError,
            sql_errors.INVALID_OBJECT_DEFINITION,
            f"the new definition of {name} reads {name} itself"
            + ("" if circular == [name] else f", by {', '.join(circular)}"),
            hint="WITH RECURSIVE defines recursive relations.",
        )
    readers = [reader for reader in dependents if reader in catalog.installed]
    if readers:
        raise sql_error(
            InUse,
            sql_errors.DEPENDENT_OBJECTS,
            f"cannot replace {name}: the materialized view {readers[0]} depends on it",
            hint="Drop that view first, and create it again afterwards.",
        )
    old = catalog.views[name][0].columns
    new = view_columns(statement, bound_query(catalog, statement.query))[: len(old)]
    if [(column.name, column.type) for column in new] != [(column.name, column.type) for column in old]:
        raise sql_error(
            ProgramError,
            sql_errors.INVALID_TABLE_DEFINITION,
            f"a new definition of {name} must have its columns, and may add others after them",
            detail=f"The columns are {', '.join(f'{column.name} {column.type}' for column in old)}.",
            hint="DROP the view first.",
        )


def all_readers(catalog: DatabaseCatalog, name: str) -> list[str]:
    """Return the views that depend on a name, directly or by others, readers first."""
    readers: list[str] = []
    collect_dependents(catalog, name, readers)
    return readers[:-1]


def create(catalog: DatabaseCatalog, statement: AnyStatement) -> None:
    """Add what a CREATE statement defines to the catalog and the db."""
    if isinstance(statement, CreateTable):
        create_table(catalog, statement)
    elif isinstance(statement, CreateView):
        add_view(catalog, build_view(catalog, plan_view(catalog, statement)))
        return
    elif isinstance(statement, CreateIndex):
        create_index(catalog, statement)
    elif isinstance(statement, CreateSequence):
        catalog.sequences[str(statement.name)] = sequence_entry(statement)
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
    uniques = tuple(dict.fromkeys(tuple(map(str, constraint)) for constraint in statement.uniques))
    return TableEntry(name, columns, key, named_checks(statement), is_retained(statement), uniques)


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
    if retain == "none" and (statement.uniques or (statement.primary_key and statement.enforced)):
        raise sql_error(
            NotSupported,
            sql_errors.NOT_SUPPORTED,
            "a stream that keeps no rows cannot check a PRIMARY KEY or UNIQUE",
            hint="Write PRIMARY KEY … NOT ENFORCED if its rows are known to be unique, and plans may rely on it.",
        )
    if retain == "all" and not statement.enforced:
        raise sql_error(
            NotSupported,
            sql_errors.NOT_SUPPORTED,
            "the PRIMARY KEY of a table that keeps its rows is always checked",
            hint="Leave out NOT ENFORCED; it is for streams, WITH (retain = none).",
        )
    return retain == "all"


def check_columns(catalog: DatabaseCatalog, statement: CreateTable, entry: TableEntry) -> None:
    """Bind defaults and checks once, so that a statement with a wrong one is refused as a whole."""
    known = {column.name for column in entry.columns}
    for name in (name for key in (entry.primary_key, *entry.uniques) for name in key if name not in known):
        raise sql_error(UndefinedName, sql_errors.UNDEFINED_COLUMN, f"column {name!r} named in key does not exist")
    for column in statement.columns:
        if column.default is not None:
            bind_scalar(column.default, (), catalog, target=column.type, clause="default")
    columns = tuple(Column(column.name, column.type) for column in entry.columns)
    for check in statement.checks:
        bind_scalar(check.condition, (NamedColumns(entry.name, columns),), catalog, clause="check")


# Views and indexes


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A view that can be added while the catalog is as it was planned with."""

    entry: ViewEntry
    reads: frozenset[str]  # the names that its query mentions
    collection: Collection | None  # of its rows, if it is materialized
    joins: tuple[JoinChoice, ...] = ()


def plan_view(catalog: DatabaseCatalog, statement: CreateView, replaces: bool = False) -> PlannedView:
    """Bind the query of a view, and plan a materialized one."""
    if replaces:
        require_replaceable(catalog, statement)
    ordered = bound_query(catalog, statement.query)
    query = without_order(ordered)
    columns = view_columns(statement, query)
    order = order_of_reads(ordered, columns) if statement.materialized else ()
    entry = ViewEntry(str(statement.name), columns, statement.query.text, statement.materialized, order)
    reads = relations_read(statement.query)
    if not statement.materialized:
        return PlannedView(entry, reads, None)
    joins: list[JoinChoice] = []
    named = Query(query.relation, tuple(column.name for column in columns))
    collection = lower_query(catalog.db, named, CatalogSources(catalog), choices=joins)
    return PlannedView(entry, reads, collection, tuple(joins))


@dataclass(frozen=True, slots=True)
class BuiltView:
    """A planned view, and its rows if it is materialized."""

    plan: PlannedView
    arrangement: Arrangement | None


def build_view(catalog: DatabaseCatalog, plan: PlannedView) -> BuiltView:
    """Install the rows of a materialized view."""
    if plan.collection is None:
        return BuiltView(plan, None)
    columns = tuple(column.name for column in plan.entry.columns)
    return BuiltView(plan, catalog.db.installer.arrangement(plan.collection.node, plan.entry.name, columns))


def add_view(catalog: DatabaseCatalog, view: BuiltView) -> None:
    """Add a view to the catalog."""
    plan, entry, name = view.plan, view.plan.entry, view.plan.entry.name
    if view.arrangement is None:
        catalog.views[name] = (entry, plan.reads)
    else:
        output = view.arrangement.output(name)
        output.order = tuple(
            OrderKey(ColumnReference(key.column), key.descending, nulls_last=not key.nulls_first) for key in entry.order
        )
        catalog.installed[name] = InstalledView(entry, view.arrangement, output, plan.reads, plan.joins)
    catalog.version += 1


def order_of_reads(query: Query, columns: tuple[TableColumn, ...]) -> tuple[ReadOrder, ...]:
    """Return the order of a view's query by columns of the view; a key that is none of them ends it."""
    names = dict(zip(query.relation.columns, (column.name for column in columns), strict=False))
    order = []
    for key in query.order:
        if not isinstance(key.value, ColumnValue) or key.value.column not in names:
            break
        order.append(ReadOrder(names[key.value.column], key.descending, key.nulls_first))
    return tuple(order)


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
    known = {column.name for column in require_entry(catalog, table).columns}
    missing = next((name for name in columns if name not in known), None)
    if missing is not None:
        raise sql_error(
            UndefinedName,
            sql_errors.UNDEFINED_COLUMN,
            f"{table} has no column {missing!r}",
            hint=f"There are {', '.join(sorted(known))}.",
        )
    arrangement = catalog.relation(table).arrange(*columns)
    name = index_name(statement)
    catalog.indexes[name] = TableIndex(name, table, columns, arrangement)


def index_name(statement: CreateIndex) -> str:
    """Return the name of an index: the one given, or PostgreSQL's."""
    if statement.name is not None:
        return str(statement.name)
    return "_".join([str(statement.table), *map(str, statement.columns), "idx"])


# Names


def defined_name(statement: DefiningStatement) -> str:
    """Return the name that a statement defines."""
    return index_name(statement) if isinstance(statement, CreateIndex) else str(statement.name)


def kind_of(statement: DefiningStatement) -> str:
    """Return what a statement creates."""
    if isinstance(statement, CreateView):
        return "materialized view" if statement.materialized else "view"
    return {CreateTable: "table", CreateIndex: "index", CreateSequence: "sequence"}[type(statement)]


def kind_of_name(catalog: DatabaseCatalog, name: str) -> str | None:
    """Return what a name stands for, None if for nothing."""
    if name in catalog.views:
        return "view"
    if name in catalog.installed:
        return "materialized view"
    if name in catalog.indexes:
        return "index"
    if name in catalog.sequences:
        return "sequence"
    if name in catalog.broken:
        return catalog.broken[name].kind
    return "table" if catalog.entry(name) is not None else None


def name_is_taken(catalog: DatabaseCatalog, name: str) -> bool:
    """Return whether a name stands for something; an output that Python named counts too."""
    return kind_of_name(catalog, name) is not None or name in catalog.db.outputs


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def require_entry(catalog: DatabaseCatalog, name: str) -> CatalogEntry:
    """Return the entry of a name that stands for a table or view."""
    entry = catalog.entry(name)
    assert entry is not None
    return entry


def undefined(catalog: DatabaseCatalog, name: SqlName) -> UndefinedName:
    """Return the error for a name that stands for nothing."""
    return sql_error(UndefinedName, sql_errors.UNDEFINED_TABLE, f"there is no relation {str(name)!r}")
