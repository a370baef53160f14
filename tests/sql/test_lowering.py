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
from kpg.sql.lower.plan_settings import DEFAULT_SETTINGS, PlanSettings, using_settings
from kpg.sql.relational import relations as r
from kpg.sql.relational import scalars as s
from kpg.sql.relational.relations import Query
from kpg.sql.sql_types import BIGINT
from kpg.testing.relational_oracle import RelationalOracle, RowFailure
from tests.sql.algebra_strategies import AGGREGATES, TABLE_ROWS, TABLES, joined_tables, queries, scan, value_of

Contents = dict[str, list[tuple[Any, ...]]]

MAX_EXAMPLES = 40  # each installs a query, which takes longer than to answer it


def check_standing(
    query: Query, epochs: list[Contents], plans: PlanSettings = DEFAULT_SETTINGS, arranged: bool = False
) -> None:
    """Compare the answer of a standing query with the oracle's, for tables with these contents one after another.

    `arranged` tables have the first epoch's rows and an index by each column before the query is planned.
    """
    with kpg.open() as db:
        sources = {
            name: db.input(name, **dict.fromkeys(fields, "int64?"))  # type: ignore[arg-type]
            for name, fields in TABLES.items()
        }
        now: Contents = {name: [] for name in TABLES}

        def change(contents: Contents) -> None:
            for name, rows in contents.items():
                gone, new = Counter(now[name]), Counter(rows)
                sources[name].remove(list((gone - new).elements()))
                sources[name].insert(list((new - gone).elements()))
                now[name] = rows
            db.advance()

        indexes: list[Any] = []  # which end with their handles
        if arranged:
            change(epochs[0])
            indexes += [source.arrange(column) for source in sources.values() for column in source.schema.names]
        with using_settings(plans):
            answer = lower_query(db, query, sources).output()
        for contents in epochs:
            change(contents)
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
@given(
    joined_tables(),
    st.lists(TABLE_ROWS, min_size=2, max_size=3),
    st.builds(PlanSettings, st.sampled_from(["auto", "binary", "delta"]), st.booleans()),
    st.booleans(),
)
def test_every_plan_of_a_join_answers_as_the_algebra_says(
    query: Query, epochs: list[Contents], plans: PlanSettings, arranged: bool
) -> None:
    check_standing(query, epochs, plans, arranged)


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
        reductions = [node for node in dependencies_first([plan.node]) if isinstance(node, ReduceNode)]
        assert len(reductions) == 1
        answer = plan.output()
        sources["t"].insert([(1, 2), (1, 3)])
        db.advance()
        assert answer.rows() == [(1, 5), (1, 5)]
