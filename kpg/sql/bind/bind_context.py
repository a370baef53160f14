"""What all parts of the binder share while one statement is bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlglot import exp

from kpg.query.source_text import SourceText
from kpg.sql.bind.tree_reading import span_of, take
from kpg.sql.catalog.entries import SqlCatalog
from kpg.sql.parse.spans import Span
from kpg.sql.relational.relations import BoundRelation, Project, Query
from kpg.sql.relational.scalars import Column, ColumnValue, SortKey

if TYPE_CHECKING:
    from kpg.sql.bind.name_scopes import NameScope

Parameters: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class BoundSelect:
    """A bound query. Columns of the relation beyond the names serve the order only.

    A string constant in the list of a plain SELECT may still have no type: the query around it decides.
    """

    relation: BoundRelation
    names: tuple[str, ...]
    order: tuple[SortKey, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """The result columns."""
        return self.relation.columns[: len(self.names)]

    def rows(self) -> BoundRelation:
        """Return the relation with the result columns only."""
        if len(self.names) == len(self.relation.columns):
            return self.relation
        return Project(self.columns, self.relation, tuple(map(value_of, self.columns)))

    def query(self) -> Query:
        """Return the whole query."""
        return Query(self.relation, self.names, self.order)


def value_of(column: Column, span: Span | None = None) -> ColumnValue:
    """Return the value of a column."""
    return ColumnValue(column, type=column.type, span=span)


@dataclass(frozen=True)
class BindContext:
    """The text, the catalog and the parameters of a statement.

    `bind_query` binds a query inside another, given the scope that it sees. `standing` queries are maintained, so that
    functions whose value changes by itself are refused in them.
    """

    source: SourceText
    catalog: SqlCatalog
    parameters: Parameters
    bind_query: Callable[[exp.Expr, NameScope, BindContext], BoundSelect]
    standing: bool = True
    open_views: tuple[str, ...] = field(default=())

    def span(self, node: exp.Expr) -> Span | None:
        """Return the text of a node."""
        return span_of(node, self.source)

    def take(self, node: exp.Expr, *names: str) -> tuple[Any, ...]:
        """Return arguments of a node; refuse the node if it has others."""
        return take(node, self.source, *names)

    def inside_view(self, name: str, source: SourceText) -> BindContext:
        """Return the context of the text of a view."""
        return replace(self, source=source, parameters={}, open_views=(*self.open_views, name))
