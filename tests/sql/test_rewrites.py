"""Each rewrite of the bound algebra keeps the meaning of every query, and leaves no subquery and no dependent join."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given

from kpg.sql.relational.relations import BoundJoin, FunctionScan, Query
from kpg.sql.relational.verify_relations import verify_query
from kpg.sql.rewrites.relation_traversal import has_subquery, nodes_of, scalars_of
from kpg.sql.rewrites.rewrite_query import REWRITES, rewrite_query
from kpg.sql.rewrites.source_facts import QueryFacts
from kpg.testing.relational_oracle import RelationalOracle, RowFailure
from tests.sql.algebra_strategies import TABLE_ROWS, TABLES, queries

Contents = dict[str, list[tuple[Any, ...]]]


def answer(query: Query, contents: Contents) -> Counter[tuple[Any, ...]] | None:
    """Return the rows of a query, None if a row fails."""
    oracle = RelationalOracle({name: (TABLES[name], rows) for name, rows in contents.items()})
    try:
        return Counter(oracle.rows(query.relation))
    except RowFailure:
        return None


@given(queries(subqueries=True), TABLE_ROWS)
def test_each_rewrite_keeps_the_rows_and_fails_on_no_further_row(query: Query, contents: Contents) -> None:
    expected = answer(query, contents)
    for rewrite in REWRITES:
        query = rewrite(query, QueryFacts())
        verify_query(query)
        assert expected is None or answer(query, contents) == expected, rewrite.__name__


@given(queries(subqueries=True, depth=4))
def test_no_query_keeps_a_subquery_or_a_dependent_join(query: Query) -> None:
    for node in nodes_of(rewrite_query(query).relation):
        assert not any(map(has_subquery, scalars_of(node)))
        assert not isinstance(node, BoundJoin) or not node.dependent or isinstance(node.right, FunctionScan)
