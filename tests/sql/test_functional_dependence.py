"""What functional dependence promises holds for the rows of every relation, whatever the tables hold."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kpg.sql.relational.relations import Query, VariableScan
from kpg.sql.rewrites.relation_traversal import nodes_of
from kpg.sql.rewrites.rewrite_query import REWRITES
from kpg.testing.relational_oracle import RelationalOracle, RowFailure
from tests.sql.algebra_strategies import TABLES, keyed_facts, keyed_rows, queries

Contents = dict[str, list[tuple[Any, ...]]]


@given(queries(subqueries=False, depth=3), keyed_rows(), st.data())
def test_columns_that_are_a_key_never_repeat_and_decide_what_follows_from_them(
    query: Query, contents: Contents, data: st.DataObject
) -> None:
    facts = keyed_facts()
    oracle = RelationalOracle({name: (TABLES[name], rows) for name, rows in contents.items()})
    for node in nodes_of(query.relation):
        if any(isinstance(inner, VariableScan) for inner in nodes_of(node)):
            continue  # its rows depend on the round of the recursion
        try:
            rows = oracle.rows(node)
        except RowFailure:
            continue
        chosen = data.draw(st.sets(st.sampled_from(node.columns))) if node.columns else set()
        at = [place for place, column in enumerate(node.columns) if column in chosen]
        known = facts.dependence.of(node)
        if known.is_key(chosen):
            values = [tuple(row[place] for place in at) for row in rows]
            assert len(set(values)) == len(values)
        implied = known.closure(chosen)
        following = [place for place, column in enumerate(node.columns) if column in implied]
        decided: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for row in rows:
            key, rest = tuple(row[place] for place in at), tuple(row[place] for place in following)
            assert decided.setdefault(key, rest) == rest


@given(queries(subqueries=True), keyed_rows())
def test_each_rewrite_that_relies_on_keys_keeps_the_rows(query: Query, contents: Contents) -> None:
    facts = keyed_facts()
    oracle = RelationalOracle({name: (TABLES[name], rows) for name, rows in contents.items()})
    try:
        expected = sorted(oracle.rows(query.relation), key=repr)
    except RowFailure:
        return
    for rewrite in REWRITES:
        query = rewrite(query, facts)
        assert sorted(oracle.rows(query.relation), key=repr) == expected, rewrite.__name__
