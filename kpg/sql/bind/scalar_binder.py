"""What all binders of expressions share: the scope, the context, spans and subqueries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import replace

from sqlglot import exp

from kpg.errors import ParseError
from kpg.sql.bind.bind_context import BindContext, BoundSelect
from kpg.sql.bind.coercions import located
from kpg.sql.bind.name_scopes import NameScope
from kpg.sql.bind.typed_outputs import typed
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.relational.scalars import Column, Scalar


class ScalarBinder(ABC):
    """Binds expressions in one scope."""

    def __init__(self, scope: NameScope, context: BindContext) -> None:
        self.scope = scope
        self.context = context

    @abstractmethod
    def bind(self, node: exp.Expr) -> Scalar:
        """Return an expression as a scalar."""

    @abstractmethod
    def condition(self, node: exp.Expr, clause: str) -> Scalar:
        """Bind a condition."""

    def located(self, node: exp.Expr) -> AbstractContextManager[None]:
        """Give errors within the position of a node."""
        return located(self.context.span(node))

    def with_span(self, scalar: Scalar, node: exp.Expr) -> Scalar:
        """Return a scalar with the text of a node."""
        span = self.context.span(node)
        return scalar if span is None else replace(scalar, span=span)

    def subquery(self, node: exp.Expr) -> BoundSelect:
        """Bind a query inside an expression: it sees the names of this scope."""
        return typed(self.context.bind_query(node, self.scope, self.context))

    def only_column(self, query: BoundSelect, node: exp.Expr) -> Column:
        """Return the one column of a subquery that is a value."""
        if len(query.names) != 1:
            what = f"subquery must return only one column, not {len(query.names)}"
            raise sql_failure(ParseError, what, self.context.span(node), "42601")
        return query.columns[0]
