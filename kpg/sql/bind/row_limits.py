"""ORDER BY, LIMIT, OFFSET and FETCH of a query, as they were written; and the rows that they choose."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from kpg.errors import ProgramError
from kpg.sql.bind.bind_context import BindContext, BoundSelect
from kpg.sql.bind.bind_expressions import ExpressionBinder
from kpg.sql.bind.coercions import coerce
from kpg.sql.bind.name_scopes import NameScope
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.relational.references import mentions
from kpg.sql.relational.relations import TopRows
from kpg.sql.relational.scalars import Constant, Scalar
from kpg.sql.sql_types import BIGINT


@dataclass(frozen=True)
class RowLimits:
    """The clauses after a query."""

    order: exp.Expr | None = None
    limit: exp.Expr | None = None
    offset: exp.Expr | None = None

    @property
    def any(self) -> bool:
        """Whether there is any clause."""
        return any(part is not None for part in (self.order, self.limit, self.offset))

    def order_nodes(self, context: BindContext) -> list[exp.Expr]:
        """Return the items of ORDER BY."""
        return [] if self.order is None else list(context.take(self.order, "expressions")[0])


def limits_of(node: exp.Expr) -> RowLimits:
    """Return the clauses of a query."""
    return RowLimits(node.args.get("order"), node.args.get("limit"), node.args.get("offset"))


def limited(query: BoundSelect, limits: RowLimits, scope: NameScope, context: BindContext) -> BoundSelect:
    """Return the rows of a query that LIMIT and OFFSET choose, by its order."""
    if limits.limit is None and limits.offset is None:
        return query
    limit, ties = None, False
    if limits.limit is not None:
        count, with_ties = context.take(limits.limit, "expression", "ties")
        ties = bool(with_ties)
        limit = row_count(count, "LIMIT", scope, context)
        if ties and limits.order is None:
            what = "WITH TIES cannot be specified without ORDER BY clause"
            raise sql_failure(ProgramError, what, context.span(limits.limit), "42601")
    offset = None
    if limits.offset is not None:
        (count,) = context.take(limits.offset, "expression")
        offset = row_count(count, "OFFSET", scope, context)
    if limit is None and offset is None:
        return query
    relation = TopRows(query.relation.columns, query.relation, (), query.order, limit, offset, ties)
    return BoundSelect(relation, query.names, query.order)


def row_count(node: exp.Expr, clause: str, scope: NameScope, context: BindContext) -> Scalar | None:
    """Bind a number of rows, which may not depend on a row of the query; None for NULL, which is no limit."""
    inner = NameScope(scope.parent, scope.ctes, scope.tables, scope.visible, scope.owned, clause)
    span = context.span(node)
    count = coerce(ExpressionBinder(inner, context).bind(node), BIGINT, "assignment", span)
    if mentions(count, scope.owned):
        raise sql_failure(ProgramError, f"argument of {clause} must not contain variables", span, "42P10")
    if isinstance(count, Constant):
        if count.value is None:
            return None
        if count.value < 0:
            state = "2201W" if clause == "LIMIT" else "2201X"
            raise sql_failure(ProgramError, f"{clause} must not be negative", span, state)
    return count
