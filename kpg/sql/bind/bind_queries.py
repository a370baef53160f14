"""Bind queries of all forms: WITH, SELECT, VALUES, set operations, and queries in parentheses."""

from __future__ import annotations

from typing import Final, Literal

from sqlglot import exp

from kpg.errors import NotSupported, ProgramError
from kpg.sql.bind.bind_context import BindContext, BoundSelect, value_of
from kpg.sql.bind.bind_expressions import ExpressionBinder
from kpg.sql.bind.bind_selects import SelectBinder
from kpg.sql.bind.bind_with import WithBinder
from kpg.sql.bind.coercions import located, unified
from kpg.sql.bind.common_tables import CommonTables
from kpg.sql.bind.name_scopes import NameScope
from kpg.sql.bind.row_limits import RowLimits, limited, limits_of
from kpg.sql.bind.tree_reading import bare_name
from kpg.sql.bind.typed_outputs import with_types
from kpg.sql.functions.cast_rules import common_type
from kpg.sql.parse.sql_failures import not_supported, sql_failure
from kpg.sql.relational.relations import BoundRelation, SetOperation, Values
from kpg.sql.relational.scalars import Column, SortKey

SET_KINDS: Final[dict[type[exp.Expr], Literal["union", "intersect", "except"]]] = {
    exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except",
}  # fmt: skip
CLAUSES: Final = ("with_", "order", "limit", "offset")


def bind_query_node(node: exp.Expr, scope: NameScope, context: BindContext) -> BoundSelect:
    """Bind a query that sees the names of a scope."""
    return QueryBinder(scope, scope.ctes, context).query(node)


class QueryBinder:
    """Binds queries inside one scope. `ctes` are the common tables that they see."""

    def __init__(self, outer: NameScope, ctes: CommonTables, context: BindContext) -> None:
        self.outer = outer
        self.ctes = ctes
        self.context = context

    def query(self, node: exp.Expr) -> BoundSelect:
        """Bind a query with its WITH, ORDER BY and LIMIT."""
        definitions = node.args.get("with_")
        if definitions is None:
            return self.body(node)
        binder = WithBinder(self.outer, self.ctes, self.context)
        return binder.around(definitions, lambda ctes: QueryBinder(self.outer, ctes, self.context).body(node))

    def body(self, node: exp.Expr) -> BoundSelect:
        """Bind a query whose common tables are known."""
        limits = limits_of(node)
        if isinstance(node, exp.Select):
            return SelectBinder(node, self.outer, self.ctes, self.context).bind(limits)
        if isinstance(node, exp.SetOperation):
            return self.ordered(self.set_operation(node), limits)
        if isinstance(node, exp.Values):
            return self.ordered(self.values(node), limits)
        if isinstance(node, exp.Subquery):
            (this,) = self.context.take(node, "this", "alias")[:1]
            return self.query(this)
        raise not_supported(f"{type(node).__name__} as a query", self.context.span(node))

    # --- VALUES

    def values(self, node: exp.Expr) -> BoundSelect:
        """Bind VALUES: the columns are column1, column2, … and have the common types of their values."""
        (rows,) = self.context.take(node, "expressions", *CLAUSES)[:1]
        scope = NameScope(self.outer, self.ctes, clause="VALUES")
        binder = ExpressionBinder(scope, self.context)
        bound = [[binder.bind(item) for item in self.context.take(row, "expressions")[0]] for row in rows]
        columns = [unified(column, "VALUES") for column in zip(*bound, strict=True)]
        names = tuple(f"column{number}" for number in range(1, len(columns) + 1))
        new = tuple(Column(name, values[0].type) for name, values in zip(names, columns, strict=True))
        return BoundSelect(Values(new, tuple(zip(*columns, strict=True))), names)

    # --- set operations

    def set_operation(self, node: exp.Expr) -> BoundSelect:
        """Bind UNION, INTERSECT or EXCEPT: columns are matched by position and get their common types."""
        left_node, right_node, distinct = self.context.take(node, "this", "expression", "distinct", *CLAUSES)[:3]
        kind = SET_KINDS[type(node)]
        return self.combined(kind, not distinct, self.query(left_node), self.query(right_node), node)

    def combined(
        self, kind: Literal["union", "intersect", "except"], everything: bool, left: BoundSelect, right: BoundSelect,
        node: exp.Expr,
    ) -> BoundSelect:  # fmt: skip
        """Return a set operation of two queries."""
        word = kind.upper()
        span = self.context.span(node)
        if len(left.names) != len(right.names):
            what = f"each {word} query must have the same number of columns"
            raise sql_failure(ProgramError, what, span, "42601")
        types = []
        for first, second in zip(left.columns, right.columns, strict=True):
            with located(span):
                types.append(common_type([first.type, second.type], word))
        sides = [with_types(side, types).rows() for side in (left, right)]
        types = [column.type for column in sides[0].columns]
        columns = tuple(Column(name, type_) for name, type_ in zip(left.names, types, strict=True))
        return BoundSelect(SetOperation(columns, kind, everything, sides[0], sides[1]), left.names)

    # --- ORDER BY of results

    def ordered(self, query: BoundSelect, limits: RowLimits) -> BoundSelect:
        """Return a query with ORDER BY and LIMIT on its result columns, by position or by name."""
        relation = query.rows()
        keys = []
        for item in limits.order_nodes(self.context):
            this, descending, nulls_first = self.context.take(item, "this", "desc", "nulls_first")
            column = self.result_column(this, query, relation)
            keys.append(SortKey(value_of(column), bool(descending), bool(nulls_first)))
        order = tuple(keys) if limits.order is not None else query.order
        kept = BoundSelect(relation, query.names, order) if limits.order is not None else query
        scope = NameScope(self.outer, self.ctes)
        scope.owned = set(relation.columns)
        return limited(kept, limits, scope, self.context)

    def result_column(self, node: exp.Expr, query: BoundSelect, relation: BoundRelation) -> Column:
        """Return the result column that a key of ORDER BY means."""
        span = self.context.span(node)
        if isinstance(node, exp.Literal) and not node.args["is_string"] and str(node.this).isdigit():
            if not 1 <= int(node.this) <= len(query.names):
                what = f"ORDER BY position {node.this} is not in select list"
                raise sql_failure(ProgramError, what, span, "42P10")
            return relation.columns[int(node.this) - 1]
        name = bare_name(node)
        if name is None:
            what = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause: only result column names can be used"
            raise sql_failure(NotSupported, what, span, "0A000")
        places = [position for position, other in enumerate(query.names) if other == name]
        if len(places) > 1:
            raise sql_failure(ProgramError, f'ORDER BY "{name}" is ambiguous', span, "42702")
        if not places:
            scope = NameScope(self.outer, self.ctes)
            scope.unqualified(name, span)
            raise sql_failure(NotSupported, "ORDER BY of a column that is no result column", span, "0A000")
        return relation.columns[places[0]]
