"""The rows of RETURNING in UPDATE and DELETE: the last columns of the rows that the statement concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.sql.relational.relations import BoundRelation
from kpg.sql.session.query_result import QueryResult, ResultColumn

if TYPE_CHECKING:
    from kpg.sql.session.run_query import FetchedRows


def returned_rows(
    tag: str, names: tuple[str, ...] | None, relation: BoundRelation, fetched: FetchedRows, first: int
) -> QueryResult:
    """Return the result of a statement: its tag, and the columns from `first` on if it has RETURNING."""
    if names is None:
        return QueryResult(tag)
    types = [column.type for column in relation.columns[first:]]
    described = tuple(ResultColumn(name, type_) for name, type_ in zip(names, types, strict=True))
    table = fetched.table.select(range(first, fetched.table.num_columns)).rename_columns(list(names))
    return QueryResult(tag, described, table, fetched.schema.select(fetched.schema.names[first:]))
