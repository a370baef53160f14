"""Lowered queries answer as the algebra's meaning says, at every time, under random insertions and removals."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.plan.node_traversal import dependencies_first
from kpg.plan.nodes import ReduceNode
from kpg.sql.lower.lower_query import lower_query
from kpg.sql.relational import relations as r
from kpg.sql.relational import scalars as s
from kpg.sql.relational.relations import Query
from kpg.sql.sql_types import BIGINT
from kpg.testing.relational_oracle import RelationalOracle, RowFailure
from tests.sql.algebra_strategies import AGGREGATES, TABLE_ROWS, TABLES, joined_tables, queries, scan, value_of

Contents = dict[str, list[tuple[Any, ...]]]

MAX_EXAMPLES = 40  # each installs a query, which takes longer than to answer it


def check_standing(query: Query, epochs: list[Contents], joins: str = "auto") -> None:
    """Compare the answer of a standing query with the oracle's, for tables with these contents one after another."""
    with kpg.open() as db:
        sources = {
            name: db.input(name, **dict.fromkeys(fields, "int64?"))  # type: ignore[arg-type]
            for name, fields in TABLES.items()
        }
        answer = lower_query(db, query, sources, joins=joins).output()
        now: Contents = {name: [] for name in TABLES}
        for contents in epochs:
            for name, rows in contents.items():
                gone, new = Counter(now[name]), Counter(rows)
                sources[name].remove(list((gone - new).elements()))
                sources[name].insert(list((new - gone).elements()))
                now[name] = rows
            db.advance()
            oracle = RelationalOracle({name: (TABLES[name], rows) for name, rows in now.items()})
            try:
                expected = Counter(oracle.rows(query.relation))
            except RowFailure:  # perhaps of a row that the rewritten query need not compute
                continue
            assert answer.failure() is None, answer.failure()
            assert Counter(answer.rows()) == expected


@settings(max_examples=MAX_EXAMPLES)
@given(queries(subqueries=True), st.lists(TABLE_ROWS, min_size=1, max_size=2))
def test_a_query_with_subqueries_answers_as_the_algebra_says(query: Query, epochs: list[Contents]) -> None:
    check_standing(query, epochs)


@settings(max_examples=MAX_EXAMPLES)
@given(queries(subqueries=False), st.lists(TABLE_ROWS, min_size=1, max_size=3))
def test_a_lowered_query_answers_as_the_algebra_says(query: Query, epochs: list[Contents]) -> None:
    check_standing(query, epochs)


@settings(max_examples=MAX_EXAMPLES)
@given(joined_tables(), st.lists(TABLE_ROWS, min_size=2, max_size=3), st.sampled_from(["binary", "delta"]))
def test_binary_and_delta_plans_of_a_join_answer_as_the_algebra_says(
    query: Query, epochs: list[Contents], joins: str
) -> None:
    check_standing(query, epochs, joins)


def test_equal_parts_of_a_query_are_built_once() -> None:
    groups = []
    for _ in range(2):
        table = scan("t")
        call = s.AggregateCall(AGGREGATES["sum"], (value_of(table.columns[1]),), BIGINT)
        total = s.Column("total", BIGINT)
        groups.append(r.Aggregate((table.columns[0], total), table, table.columns[:1], (call,)))
    both = r.SetOperation((s.Column("a", BIGINT), s.Column("total", BIGINT)), "union", True, groups[0], groups[1])
    with kpg.open() as db:
        sources = {"t": db.input("t", a=int, b=int)}
        plan = lower_query(db, Query(both, ("a", "total")), sources)
        found = [node for node in dependencies_first([plan.node]) if isinstance(node, ReduceNode)]
        assert len(found) == 1
        answer = plan.output()
        sources["t"].insert([(1, 2), (1, 3)])
        db.advance()
        assert answer.rows() == [(1, 5), (1, 5)]
