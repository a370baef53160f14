"""Bind FROM: tables, views, common tables, subqueries, functions and joins become one relation with a scope of names.

LATERAL subqueries and functions see the items to their left. The join with such an item is dependent if the item does
mention columns of its left side. A view that is not installed is replaced by its query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from kpg.errors import ProgramError, UndefinedName
from kpg.query.source_text import SourceText, did_you_mean
from kpg.sql.bind.bind_context import BindContext, BoundSelect, value_of
from kpg.sql.bind.bind_expressions import ExpressionBinder
from kpg.sql.bind.bind_joins import FromItem, JoinBinder, joined_items
from kpg.sql.bind.coercions import coerce, located
from kpg.sql.bind.common_tables import CommonTable, CommonTables
from kpg.sql.bind.name_scopes import NamedValue, NameScope, RangeTable, refuse_duplicate_tables
from kpg.sql.bind.tree_reading import name_of
from kpg.sql.bind.typed_outputs import projected, typed
from kpg.sql.catalog.entries import CatalogEntry, TableEntry, ViewEntry
from kpg.sql.catalog.system_columns import is_system
from kpg.sql.functions.resolve import is_table_function, resolve_table_function
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import not_supported, sql_failure
from kpg.sql.parse.statement_parser import parse_query
from kpg.sql.relational.relations import BoundRelation, FunctionScan, Project, Scan, Values, VariableScan
from kpg.sql.relational.scalars import Column, Scalar, SortKey
from kpg.sql.sql_types import BIGINT

FUNCTION_COLUMNS: Final = {"jsonb_each": ("key", "value"), "jsonb_each_text": ("key", "value")}
ONE_ROW: Final[tuple[tuple[Scalar, ...], ...]] = ((),)


def one_row() -> BoundRelation:
    """Return the input of a SELECT without FROM: one row without columns."""
    return Values((), ONE_ROW)


@dataclass(frozen=True)
class Aliases:
    """The alias of an item: a name, and names for its first columns."""

    name: str | None
    columns: tuple[str, ...]
    span: Span | None


# Functions whose rows are those of a relation of the catalog, as pgAdmin calls them.
RELATION_FUNCTIONS: Final = {"pg_show_all_settings": "pg_catalog.pg_settings"}


class FromBinder(JoinBinder):
    """Binds the FROM clause of one query. `outer` is the scope around the query."""

    def __init__(self, outer: NameScope | None, ctes: CommonTables, context: BindContext) -> None:
        self.outer = outer
        self.ctes = ctes
        self.context = context

    def clause(self, first: exp.Expr, joins: list[exp.Expr]) -> FromItem:
        """Bind all items of FROM: those after a comma are joined with all before them."""
        (item,) = self.context.take(first, "this")
        groups: list[tuple[exp.Expr, list[exp.Expr]]] = [(item, [])]
        for join in joins:
            if is_comma(join):
                groups.append((self.context.take(join, "this")[0], []))
            else:
                groups[-1][1].append(join)
        result: FromItem | None = None
        for start, rest in groups:
            left = [] if result is None else [result]
            right = self.joined(start, rest, left)
            result = right if result is None else joined_items(result, right)
        assert result is not None
        refuse_duplicate_tables(result.tables, self.context.span(first))
        return result

    def joined(self, item: exp.Expr, joins: list[exp.Expr], left: list[FromItem]) -> FromItem:
        """Bind an item and the joins that follow it."""
        result = self.item(item, left)
        for join in joins:
            result = self.join(result, join, left)
        return result

    def lateral_scope(self, left: list[FromItem]) -> NameScope:
        """Return the scope of the items to the left of a LATERAL item."""
        scope = NameScope(self.outer, self.ctes, clause="FROM clause of their own query level", lateral=True)
        for item in left:
            scope.tables += item.tables
            scope.visible += item.visible
            scope.owned |= set(item.relation.columns)
        return scope

    def base_scope(self) -> NameScope:
        """Return the scope of an item that does not see the others: empty, within the scopes around the query."""
        return NameScope(self.outer, self.ctes, clause="FROM", lateral=True)

    # --- items

    def item(self, node: exp.Expr, left: list[FromItem]) -> FromItem:
        """Bind one item."""
        if isinstance(node, exp.Table):
            if isinstance(node.this, exp.Anonymous):
                return self.function(node, left)
            return self.table(node)
        if isinstance(node, exp.Subquery):
            return self.subquery(node, self.base_scope())
        if isinstance(node, exp.Lateral):
            (this,) = self.context.take(node, "this")
            return self.subquery(this, self.lateral_scope(left))
        if isinstance(node, exp.Paren):
            return self.parenthesised(node, left)
        raise not_supported(f"{type(node).__name__} in FROM", self.context.span(node))

    def parenthesised(self, node: exp.Paren, left: list[FromItem]) -> FromItem:
        """Bind a join in parentheses; an alias hides the names within."""
        this, joins, alias = self.context.take(node, "this", "joins", "alias")
        item = self.joined(this, joins or [], left)
        refuse_duplicate_tables(item.tables, self.context.span(node))
        aliases = self.aliases(alias)
        if aliases.name is None:
            return item
        names = renamed([value.name for value in item.visible], aliases, aliases.name)
        columns = tuple(NamedValue(name, v.value) for name, v in zip(names, item.visible, strict=True))
        return FromItem(item.relation, [RangeTable(aliases.name, columns)], list(columns))

    def subquery(self, node: exp.Expr, scope: NameScope) -> FromItem:
        """Bind a query in FROM."""
        this, alias = self.context.take(node, "this", "alias")
        query = typed(self.context.bind_query(this, scope, self.context))
        return self.named_rows(query, self.aliases(alias))

    def named_rows(self, query: BoundSelect, aliases: Aliases) -> FromItem:
        """Return the rows of a query under an alias."""
        assert aliases.name is not None
        names = renamed(query.names, aliases, aliases.name)
        return ordered_item(query, aliases.name, names)

    def aliases(self, node: exp.Expr | None) -> Aliases:
        """Read an alias."""
        if node is None:
            return Aliases(None, (), None)
        this, columns = self.context.take(node, "this", "columns")
        return Aliases(name_of(this), tuple(name_of(column) for column in columns or ()), self.context.span(node))

    # --- tables

    def table(self, node: exp.Table) -> FromItem:
        """Bind the name of a common table, a table or a view."""
        this, schema, alias = self.context.take(node, "this", "db", "alias")
        name = name_of(this)
        aliases = self.aliases(alias)
        span = self.context.span(this)
        common = self.ctes.find(name) if schema is None else None
        if common is not None:
            return self.common_table(name, common, aliases, span)
        if schema is not None and name_of(schema) != "public":
            name = f"{name_of(schema)}.{name}"
        entry = self.context.catalog.entry(name)
        if entry is None:
            what = f'relation "{name}" does not exist'
            hint = did_you_mean(name, self.context.catalog.names())
            raise sql_failure(UndefinedName, what, span, "42P01", hint=hint)
        if isinstance(entry, ViewEntry) and not entry.installed:
            return self.view(entry, aliases, span)
        return scan(entry, aliases)

    def view(self, entry: ViewEntry, aliases: Aliases, span: Span | None) -> FromItem:
        """Bind the text of a view that is a description."""
        if entry.name in self.context.open_views:
            raise sql_failure(ProgramError, f'infinite recursion in view "{entry.name}"', span, "42P17")
        source_name = f"view {entry.name}"
        tree = parse_query(entry.text, source_name)
        context = self.context.inside_view(entry.name, SourceText(source_name, entry.text))
        outside = NameScope(None, CommonTables())
        query = typed(context.bind_query(tree.node, outside, context))
        names = renamed([column.name for column in entry.columns], aliases, entry.name)
        return ordered_item(query, aliases.name or entry.name, names)

    def common_table(self, name: str, table: CommonTable, aliases: Aliases, span: Span | None) -> FromItem:
        """Bind a reference to a common table: its rows with columns of their own."""
        table.uses += 1
        if table.refusal is not None:
            raise sql_failure(ProgramError, table.refusal, span, "42P19")
        if table.variable is not None:
            if table.uses > 1 and table.linear:
                what = f'recursive reference to query "{name}" must not appear more than once'
                raise sql_failure(ProgramError, what, span, "42P19")
            columns = tuple(Column(column.name, column.type) for column in table.variable.columns)
            relation: BoundRelation = VariableScan(columns, table.variable)
        else:
            assert table.relation is not None
            relation = projected(table.relation, tuple(map(value_of, table.relation.columns)))
        return item_of(relation, aliases.name or name, renamed(table.names, aliases, name), None)

    # --- functions

    def function(self, node: exp.Table, left: list[FromItem]) -> FromItem:
        """Bind a function in FROM; a function of one value is a table with one row."""
        call, ordinality, alias = self.context.take(node, "this", "ordinality", "alias")
        this, arguments = self.context.take(call, "this", "expressions")
        name = name_of(this)
        span = self.context.span(call)
        binder = ExpressionBinder(self.lateral_scope(left), self.context)
        aliases = self.aliases(alias)
        if name in RELATION_FUNCTIONS and not arguments and not ordinality:
            entry = self.context.catalog.entry(RELATION_FUNCTIONS[name])
            assert entry is not None
            return scan(entry, Aliases(aliases.name or name, aliases.columns, aliases.span))
        if not is_table_function(name):
            return self.scalar_function(binder, call, bool(ordinality), aliases, span)
        table = aliases.name or name
        scalars = [binder.bind(argument) for argument in arguments]
        relation = function_rows(name, scalars, table, bool(ordinality), span)
        return item_of(relation, table, renamed([c.name for c in relation.columns], aliases, table), None)

    def scalar_function(
        self, binder: ExpressionBinder, call: exp.Expr, ordinality: bool, aliases: Aliases, span: Span | None
    ) -> FromItem:
        """Bind a function of one value in FROM."""
        if ordinality:
            raise not_supported("WITH ORDINALITY of this function", span)
        value = binder.bind(call)
        table = aliases.name or name_of(call.this)
        relation = Project((Column(table, value.type),), one_row(), (value,))
        return item_of(relation, table, renamed([table], aliases, table), None)


def function_rows(name: str, arguments: list[Scalar], column: str, ordinality: bool, span: Span | None) -> FunctionScan:
    """Return the rows of a function. Its column has a given name, unless the function names its columns."""
    if name == "unnest" and len(arguments) > 1:
        raise not_supported("unnest of several arrays", span)
    with located(span):
        resolution = resolve_table_function(name, [argument.type for argument in arguments])
    cast = tuple(coerce(scalar, type_) for scalar, type_ in zip(arguments, resolution.argument_types, strict=True))
    types = resolution.function.returns([scalar.type for scalar in cast])
    names = FUNCTION_COLUMNS.get(name) or (column,) * len(types)
    columns = tuple(Column(label, type_) for label, type_ in zip(names, types, strict=True))
    position = Column("ordinality", BIGINT) if ordinality else None
    return FunctionScan(columns if position is None else (*columns, position), resolution.function, cast, position)


def is_comma(join: exp.Expr) -> bool:
    """Return whether a join is a comma: it has neither kind nor condition."""
    return not any(join.args.get(name) for name in ("kind", "on", "using", "method"))


def renamed(names: list[str] | tuple[str, ...], aliases: Aliases, table: str) -> list[str]:
    """Return the names of columns, where an alias renames the first ones."""
    if len(aliases.columns) > len(names):
        what = f'table "{table}" has {len(names)} columns available but {len(aliases.columns)} columns specified'
        raise sql_failure(ProgramError, what, aliases.span, "42P10")
    return [*aliases.columns, *names[len(aliases.columns) :]]


def ordered_item(query: BoundSelect, table: str, names: list[str]) -> FromItem:
    """Return an item with the rows of a query and their order; columns that serve the order only have no name."""
    return replace(item_of(query.relation, table, names, None), order=query.order)


def item_of(relation: BoundRelation, table: str, names: list[str], entry: TableEntry | None) -> FromItem:
    """Return an item with one table; columns without a name cannot be mentioned."""
    columns = tuple(NamedValue(name, value_of(c)) for name, c in zip(names, relation.columns, strict=False))
    return FromItem(relation, [RangeTable(table, columns, entry)], list(columns))


def scan(entry: CatalogEntry, aliases: Aliases) -> FromItem:
    """Return the rows of a table or installed view."""
    columns = tuple(Column(column.name, column.type) for column in entry.columns)
    relation = Scan(columns, entry.name, tuple(column.name for column in entry.columns))
    table = aliases.name or (entry.name.partition(".")[2] if is_system(entry.name) else entry.name)
    names = renamed([column.name for column in entry.columns], aliases, table)
    item = item_of(relation, table, names, entry if isinstance(entry, TableEntry) else None)
    return item if isinstance(entry, TableEntry) else replace(item, order=read_order(entry, columns))


def read_order(entry: ViewEntry, columns: tuple[Column, ...]) -> tuple[SortKey, ...]:
    """Return the order of an installed view over columns that stand for its columns."""
    by_name = {column.name: value_of(column) for column in columns}
    return tuple(SortKey(by_name[key.column], key.descending, key.nulls_first) for key in entry.order)
