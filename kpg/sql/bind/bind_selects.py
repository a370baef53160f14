"""Bind SELECT: FROM, WHERE, GROUP BY, HAVING, the list, DISTINCT, ORDER BY and LIMIT, in this order of meaning.

The result is a projection with the result columns; further columns carry keys of the order that are no result columns.
An order without a limit leaves the rows as they are and is only recorded; with a limit it chooses rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from sqlglot import exp

from kpg.errors import ProgramError
from kpg.sql.bind.aggregate_calls import AggregateCollector
from kpg.sql.bind.bind_context import BindContext, BoundSelect, value_of
from kpg.sql.bind.bind_expressions import ExpressionBinder
from kpg.sql.bind.bind_from import FromBinder, function_rows, one_row
from kpg.sql.bind.coercions import function_call, resolved
from kpg.sql.bind.common_tables import CommonTables
from kpg.sql.bind.group_clauses import GroupClause
from kpg.sql.bind.grouped_rows import GroupedRows, GroupKeys
from kpg.sql.bind.name_scopes import NamedValue, NameScope
from kpg.sql.bind.output_names import output_name
from kpg.sql.bind.row_limits import RowLimits, limited
from kpg.sql.bind.tree_reading import bare_name, is_star, name_of
from kpg.sql.functions.resolve import is_table_function
from kpg.sql.parse.sql_failures import not_supported, sql_failure
from kpg.sql.relational.references import mentions
from kpg.sql.relational.relations import BoundJoin, BoundRelation, Distinct, Filter, FunctionScan, Project, TopRows
from kpg.sql.relational.scalars import Coalesce, Column, Constant, Scalar, SortKey
from kpg.sql.sql_types import BIGINT


@dataclass(frozen=True)
class ListItem:
    """A column of the list: its name and its value over rows."""

    name: str
    value: Scalar


@dataclass(frozen=True)
class OrderItem:
    """A key of ORDER BY over rows."""

    value: Scalar
    descending: bool
    nulls_first: bool
    node: exp.Expr


class SelectBinder:
    """Binds one SELECT."""

    def __init__(self, node: exp.Expr, outer: NameScope | None, ctes: CommonTables, context: BindContext) -> None:
        self.node = node
        self.context = context
        self.scope = NameScope(outer, ctes)
        self.binder = ExpressionBinder(self.scope, context)
        self.outputs: list[ListItem] = []
        self.collector = AggregateCollector()
        self.function_scans: list[FunctionScan] = []  # of functions of rows in the list
        self.read_order: tuple[SortKey, ...] = ()  # of the one view or subquery that is read

    def bind(self, limits: RowLimits) -> BoundSelect:
        """Bind the whole query; ORDER BY and LIMIT are read from the node that has them."""
        distinct, items, source, joins, where, group, having = self.context.take(
            self.node, "distinct", "expressions", "from_", "joins", "where", "group", "having",
            "with_", "order", "limit", "offset",
        )[:7]  # fmt: skip
        relation = self.source(source, joins or [])
        if where is not None:
            relation = self.filtered(relation, where, "WHERE")
        collector = self.scope.collector = self.collector
        self.scope.clause = "SELECT"
        for item in items:
            self.output(item)
        order = self.order_items(limits)
        keys = self.group_keys(group)
        condition = None if having is None else self.binder.condition(self.context.take(having, "this")[0], "HAVING")
        on = self.distinct_keys(distinct)
        values = [output.value for output in self.outputs]
        self.scope.collector = None
        grouped = keys is not None or condition is not None or not collector.is_empty
        relation = self.with_function_rows(relation, grouped)
        if grouped:
            rows = GroupedRows(relation, keys or GroupKeys((), None), collector, self.scope)
            values = [rows.over_groups(value) for value in values]
            order = [replace(item, value=rows.over_groups(item.value)) for item in order]
            on = None if on is None else [rows.over_groups(value) for value in on]
            condition = None if condition is None else rows.over_groups(condition)
            relation = rows.aggregate()
        if condition is not None:
            relation = Filter(relation.columns, relation, condition)
        if not grouped and distinct is None and not limits.any:
            order = [OrderItem(key.value, key.descending, key.nulls_first, self.node) for key in self.read_order]
        return self.result(relation, values, order, distinct, on, limits)

    # --- FROM and WHERE

    def source(self, source: exp.Expr | None, joins: list[exp.Expr]) -> BoundRelation:
        """Bind FROM into the scope."""
        if source is None:
            return one_row()
        item = FromBinder(self.scope.parent, self.scope.ctes, self.context).clause(source, joins)
        self.scope.tables = item.tables
        self.scope.visible = item.visible
        self.scope.owned = set(item.relation.columns)
        self.read_order = item.order
        return item.relation

    def filtered(self, relation: BoundRelation, node: exp.Expr, clause: str) -> BoundRelation:
        """Bind a condition on rows."""
        self.scope.clause = clause
        (this,) = self.context.take(node, "this")
        return Filter(relation.columns, relation, self.binder.condition(this, clause))

    # --- the list

    def output(self, node: exp.Expr) -> None:
        """Bind an item of the list; a star is several."""
        if is_star(node):
            self.outputs += [ListItem(value.name, value.value) for value in self.star(node)]
            return
        value = self.context.take(node, "this", "alias")[0] if isinstance(node, exp.Alias) else node
        is_call = isinstance(value, exp.Anonymous) and is_table_function(name_of(value.this))
        bound = self.function_rows(value) if is_call else self.binder.bind(value)
        self.outputs.append(ListItem(output_name(node), bound))

    def function_rows(self, node: exp.Expr) -> Scalar:
        """Bind a function of rows as an item of the list: each row becomes as many rows as the function returns."""
        this, arguments = self.context.take(node, "this", "expressions")
        span = self.context.span(node)
        scan = function_rows(name_of(this), [self.binder.bind(item) for item in arguments], name_of(this), True, span)
        if len(scan.columns) > 2:
            raise not_supported("a whole row as a value", span)
        self.function_scans.append(scan)
        return value_of(scan.columns[0], span)

    def with_function_rows(self, relation: BoundRelation, grouped: bool) -> BoundRelation:
        """Return rows joined with those of the functions of rows in the list: first rows with first ones, and so on."""
        if not self.function_scans:
            return relation
        if grouped:
            raise not_supported("a function that returns rows in a query with groups", self.context.span(self.node))
        rows = reduce(in_step, self.function_scans[1:], without_number(self.function_scans))
        dependent = mentions(rows, relation.columns)
        return BoundJoin((*relation.columns, *rows.columns), "inner", relation, rows, dependent=dependent)

    def star(self, node: exp.Expr) -> list[NamedValue]:
        """Return the columns that a star stands for."""
        if isinstance(node, exp.Star):
            if not self.scope.tables:
                what = "SELECT * with no tables specified is not valid"
                raise sql_failure(ProgramError, what, self.context.span(node), "42601")
            return self.scope.visible
        table = node.args.get("table")
        assert table is not None
        return list(self.scope.table(name_of(table), self.context.span(node)).columns)

    # --- GROUP BY, ORDER BY, DISTINCT ON

    def group_keys(self, node: exp.Expr | None) -> GroupKeys | None:
        """Bind GROUP BY."""
        if node is None:
            return None
        before = self.scope.clause, self.scope.collector
        self.scope.clause, self.scope.collector = "GROUP BY", None
        keys = GroupClause(self.context, self.group_key).read(node)
        self.scope.clause, self.scope.collector = before
        return keys

    def group_key(self, node: exp.Expr) -> Scalar:
        """Bind a key of GROUP BY: a position, an input column, a label, or an expression."""
        position = self.position(node, "GROUP BY")
        if position is not None:
            return resolved(self.without_aggregates(position, node))
        name = bare_name(node)
        if name is not None and self.scope.here(name, self.context.span(node)) is None:
            labelled = self.labelled(name, node, "GROUP BY")
            if labelled is not None:
                return resolved(self.without_aggregates(labelled, node))
        return resolved(self.binder.bind(node))

    def without_aggregates(self, output: ListItem, node: exp.Expr) -> Scalar:
        """Return the value of a result column, which must have no aggregates to be a key."""
        if mentions(output.value, [*self.collector.results, *self.collector.grouping_results]):
            what = "aggregate functions are not allowed in GROUP BY"
            raise sql_failure(ProgramError, what, self.context.span(node), "42803")
        return output.value

    def position(self, node: exp.Expr, clause: str) -> ListItem | None:
        """Return the result column that an integer means, None for other nodes."""
        if isinstance(node, (exp.Literal, exp.Null, exp.Boolean)):
            text = str(node.this)
            if not isinstance(node, exp.Literal) or node.args["is_string"] or not text.isdigit():
                what = f"non-integer constant in {clause}"
                raise sql_failure(ProgramError, what, self.context.span(node), "42601")
            if not 1 <= int(text) <= len(self.outputs):
                what = f"{clause} position {text} is not in select list"
                raise sql_failure(ProgramError, what, self.context.span(node), "42P10")
            return self.outputs[int(text) - 1]
        return None

    def labelled(self, name: str, node: exp.Expr, clause: str) -> ListItem | None:
        """Return the result column with a name; two different ones are ambiguous."""
        outputs = [output for output in self.outputs if output.name == name]
        if any(output.value != outputs[0].value for output in outputs):
            what = f'{clause} "{name}" is ambiguous'
            raise sql_failure(ProgramError, what, self.context.span(node), "42702")
        return outputs[0] if outputs else None

    def order_items(self, limits: RowLimits) -> list[OrderItem]:
        """Bind ORDER BY."""
        self.scope.clause = "ORDER BY"
        items = []
        for item in limits.order_nodes(self.context):
            this, descending, nulls_first = self.context.take(item, "this", "desc", "nulls_first")
            items.append(OrderItem(self.order_key(this, "ORDER BY"), bool(descending), bool(nulls_first), this))
        return items

    def order_key(self, node: exp.Expr, clause: str) -> Scalar:
        """Bind a key of ORDER BY or DISTINCT ON: a position, a label, or an expression over input columns."""
        output = self.position(node, clause)
        name = bare_name(node)
        if output is None and name is not None:
            output = self.labelled(name, node, clause)
        return resolved(self.binder.bind(node)) if output is None else resolved(output.value)

    def distinct_keys(self, node: exp.Expr | None) -> list[Scalar] | None:
        """Bind DISTINCT ON; None if there is none."""
        if node is None:
            return None
        (on,) = self.context.take(node, "on")
        if on is None:
            return None
        self.scope.clause = "DISTINCT ON"
        (items,) = self.context.take(on, "expressions")
        return [self.order_key(item, "DISTINCT ON") for item in items]

    # --- the result

    def result(
        self,
        relation: BoundRelation,
        values: list[Scalar],
        order: list[OrderItem],
        distinct: exp.Expr | None,
        on: list[Scalar] | None,
        limits: RowLimits,
    ) -> BoundSelect:
        """Return the projection, and what DISTINCT, ORDER BY and LIMIT make of it."""
        if distinct is not None or order or limits.any:
            values = [resolved(value) for value in values]
        names = tuple(output.name for output in self.outputs)
        hidden: list[Scalar] = []
        for value in [*(on or []), *(item.value for item in order)]:
            if value not in values and value not in hidden:
                hidden.append(value)
        if distinct is not None and on is None and hidden:
            missing = next(item for item in order if item.value in hidden)
            what = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
            raise sql_failure(ProgramError, what, self.context.span(missing.node), "42P10")
        project = projection(relation, [*zip(names, values, strict=True), *(("key", value) for value in hidden)])
        carried = [*values, *hidden]
        keys = tuple(
            SortKey(value_of(project.columns[carried.index(item.value)]), item.descending, item.nulls_first)
            for item in order
        )
        rows: BoundRelation = project
        if on is not None:
            self.check_distinct_order(on, order)
            chosen = dict.fromkeys(project.columns[carried.index(value)] for value in on)
            rows = TopRows(rows.columns, rows, tuple(chosen), keys, Constant(1, type=BIGINT))
        elif distinct is not None:
            rows = Distinct(project.columns, project)
        return limited(BoundSelect(rows, names, keys), limits, self.scope, self.context)

    def check_distinct_order(self, on: list[Scalar], order: list[OrderItem]) -> None:
        """Refuse an order that does not start with the keys of DISTINCT ON."""
        seen: list[Scalar] = []
        for item in order:
            if item.value in on:
                seen.append(item.value)
            elif any(key not in seen for key in on):
                what = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"
                raise sql_failure(ProgramError, what, self.context.span(item.node), "42P10")


def without_number(scans: list[FunctionScan]) -> BoundRelation:
    """Return the rows of the first function; without their numbers if it is the only one."""
    first = scans[0]
    return first if len(scans) > 1 else FunctionScan(first.columns[:1], first.function, first.arguments)


def in_step(rows: BoundRelation, scan: FunctionScan) -> BoundRelation:
    """Return rows beside those of a function, by their numbers, the last columns; null where one has fewer rows."""
    numbers = value_of(rows.columns[-1]), value_of(scan.columns[-1])
    condition = function_call("=", numbers, None)
    both = BoundJoin((*rows.columns, *scan.columns), "full", rows, scan, condition)
    values = [*map(value_of, (*rows.columns[:-1], *scan.columns[:-1]))]
    number = Column("number", BIGINT)
    columns = (*(value.column for value in values), number)
    return Project(columns, both, (*values, Coalesce(numbers, type=BIGINT)))


def projection(relation: BoundRelation, values: list[tuple[str, Scalar]]) -> Project:
    """Return new columns with values over a relation."""
    columns = tuple(Column(name, value.type) for name, value in values)
    return Project(columns, relation, tuple(value for _, value in values))
