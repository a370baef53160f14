"""Bind joins: their condition, the columns that USING and NATURAL merge, and whether they are dependent.

A merged column is the left one of an inner or left join, the right one of a right join, and the first that is not null
of a full join. `*` lists merged columns first, then the other columns of both sides.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

from sqlglot import exp

from kpg.errors import ProgramError, UndefinedName
from kpg.query.source_text import did_you_mean
from kpg.sql.bind.bind_context import BindContext
from kpg.sql.bind.bind_expressions import ExpressionBinder
from kpg.sql.bind.coercions import function_call, unified
from kpg.sql.bind.common_tables import CommonTables
from kpg.sql.bind.name_scopes import NamedValue, NameScope, RangeTable, refuse_duplicate_tables
from kpg.sql.bind.tree_reading import name_of
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.relational.references import mentions
from kpg.sql.relational.relations import BoundJoin, BoundRelation, JoinKind
from kpg.sql.relational.scalars import TRUE, Coalesce, Scalar, SortKey, conjunction


@dataclass(frozen=True)
class FromItem:
    """A part of FROM: its relation, its tables by name, and its columns in the order of `*`.

    `order` is that of the rows of one view or subquery, for a query that reads it and has no order of its own.
    """

    relation: BoundRelation
    tables: list[RangeTable]
    visible: list[NamedValue]
    order: tuple[SortKey, ...] = ()


@dataclass(frozen=True)
class MergedColumn:
    """A column that both sides of a join have, and its value in the result."""

    name: str
    left: Scalar
    right: Scalar
    value: Scalar


class JoinBinder(ABC):
    """Binds joins of one FROM clause."""

    outer: NameScope | None
    ctes: CommonTables
    context: BindContext

    @abstractmethod
    def item(self, node: exp.Expr, left: list[FromItem]) -> FromItem:
        """Bind one item."""

    def join(self, left: FromItem, node: exp.Expr, before: list[FromItem]) -> FromItem:
        """Bind a join of what was bound so far with another item."""
        this, kind, method, on, using = self.context.take(node, "this", "kind", "method", "on", "using")
        span = self.context.span(node)
        right = self.item(this, [*before, left])
        refuse_duplicate_tables([*left.tables, *right.tables], span)
        if kind in ("RIGHT", "FULL") and mentions(right.relation, left.relation.columns):
            what = f"a LATERAL item of a {kind.lower()} join refers to its left side"
            raise sql_failure(ProgramError, what, span, "42P10")
        if method == "NATURAL":
            using_names: list[str] | None = common_names(left, right)
        else:
            using_names = [name_of(column) for column in using] if using else None
        if using_names is None:
            return self.join_on(left, right, kind, on, before)
        merged = [self.merged(name, left, right, kind, span) for name in using_names]
        return self.join_using(left, right, kind, merged, span)

    def join_on(
        self, left: FromItem, right: FromItem, kind: str, on: exp.Expr | None, before: list[FromItem]
    ) -> FromItem:
        """Bind a join with a condition, or a cross join."""
        joined = joined_items(left, right, kind)
        if on is None:
            return joined
        scope = NameScope(self.outer, self.ctes, clause="JOIN conditions")
        scope.tables = list(joined.tables)
        scope.visible = list(joined.visible)
        scope.owned = set(joined.relation.columns)
        condition = ExpressionBinder(scope, self.context).condition(on, "JOIN/ON")
        assert isinstance(joined.relation, BoundJoin)
        return replace(joined, relation=replace(joined.relation, condition=condition))

    def join_using(
        self, left: FromItem, right: FromItem, kind: str, merged: list[MergedColumn], span: Span | None
    ) -> FromItem:
        """Return a join on equal columns, which it merges."""
        joined = joined_items(left, right, kind)
        terms = tuple(function_call("=", (column.left, column.right), span) for column in merged)
        assert isinstance(joined.relation, BoundJoin)
        relation = replace(joined.relation, condition=conjunction(terms))
        names = {column.name for column in merged}
        first = [NamedValue(column.name, column.value) for column in merged]
        rest = [value for value in (*left.visible, *right.visible) if value.name not in names]
        return FromItem(relation, joined.tables, [*first, *rest])

    def merged(self, name: str, left: FromItem, right: FromItem, kind: str, span: Span | None) -> MergedColumn:
        """Return the merged column of a name."""
        sides = [self.side_column(name, left, "left", span), self.side_column(name, right, "right", span)]
        first, second = unified(sides, "JOIN/USING", span)
        value = {"RIGHT": second, "FULL": Coalesce((first, second), type=first.type)}.get(kind, first)
        return MergedColumn(name, sides[0], sides[1], value)

    def side_column(self, name: str, item: FromItem, side: str, span: Span | None) -> Scalar:
        """Return the column of one side that a name of USING means."""
        values = [value.value for value in item.visible if value.name == name]
        if len(values) > 1:
            what = f'common column name "{name}" appears more than once in {side} table'
            raise sql_failure(ProgramError, what, span, "42702")
        if not values:
            what = f'column "{name}" specified in USING clause does not exist in {side} table'
            hint = did_you_mean(name, [value.name for value in item.visible])
            raise sql_failure(UndefinedName, what, span, "42703", hint=hint)
        return values[0]


def common_names(left: FromItem, right: FromItem) -> list[str]:
    """Return the names that both sides have, in the order of the left."""
    others = {value.name for value in right.visible}
    return list(dict.fromkeys(value.name for value in left.visible if value.name in others))


def joined_items(left: FromItem, right: FromItem, kind: str = "CROSS") -> FromItem:
    """Return the join of two items, without a condition. A right join is a left join with its sides exchanged."""
    first, second = (right, left) if kind == "RIGHT" else (left, right)
    kinds: dict[str, JoinKind] = {"LEFT": "left", "RIGHT": "left", "FULL": "full"}
    dependent = kind != "RIGHT" and mentions(right.relation, left.relation.columns)
    columns = first.relation.columns + second.relation.columns
    relation = BoundJoin(columns, kinds.get(kind, "inner"), first.relation, second.relation, TRUE, dependent=dependent)
    return FromItem(relation, [*left.tables, *right.tables], [*left.visible, *right.visible])
