"""Aggregates equal their denotation, whenever and however rows arrive (A2.4, A2.5, A5.9, A5.10, A5.13, A5.14).

At one coordinate counts and sums are sweeps. At two and three, and for all other aggregates, the general reduction
runs; its output may change at joins of times, where no input does.
"""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.operators import one_pass_tactic
from kpg.testing import denotations
from tests.api.plays import Multiset, Query, check, examples, plays

SCHEMAS = {"a": {"k": int, "v": int, "w": int}}
ROWS = {"a": st.tuples(st.integers(0, 1), st.integers(-1, 2), st.integers(0, 1))}


def of_a(build, denotation) -> Query:
    return Query(lambda db, r: build(r["a"]), denotation, ("a",))


def middle(key, rows):
    """Return the middle row of the present ones, and their number."""
    there = [row for row, count in rows for _ in range(count)]
    return [(*there[len(there) // 2], len(there))] if there else []


def middle_of(key, rows):
    return [(row, 1) for row in middle(key, rows)]


def totals(a: Multiset) -> Multiset:
    groups = denotations.groups(a, (0,))
    return {
        (*key, sum(rows.values()), sum(n * v for (_, v, _), n in rows.items()),
         sum(n * w for (_, _, w), n in rows.items()) / sum(rows.values())): 1
        for key, rows in groups.items()
        if sum(rows.values())
    }  # fmt: skip


REDUCTIONS = {
    "count": of_a(lambda a: a.count("k"), lambda a: denotations.count(a, (0,))),
    "count of all": of_a(lambda a: a.group_by().count("n"), lambda a: denotations.count(a, ())),
    "distinct": of_a(lambda a: a.distinct(), denotations.distinct),
    "distinct keys": of_a(
        lambda a: a.select("k").distinct(), lambda a: denotations.distinct(denotations.select(a, (0,)))
    ),
    "threshold": of_a(
        lambda a: a.select("k", "v").threshold(2), lambda a: denotations.threshold(denotations.select(a, (0, 1)), 2)
    ),
    "sum": of_a(lambda a: a.group_by("k").sum("v"), lambda a: denotations.sum(a, (0,), 1)),
    "avg": of_a(lambda a: a.group_by("k").avg(mean="v"), lambda a: denotations.avg(a, (0,), 1)),
    "aggregate": of_a(lambda a: a.group_by("k").aggregate(n="count", v=("sum", "v"), w=("avg", "w")), totals),
    "sum of sums": of_a(
        lambda a: a.group_by("k", "w").sum("v").group_by().sum("v"),
        lambda a: denotations.sum(denotations.sum(a, (0, 2), 1), (), 2),
    ),
    "count of counts": of_a(
        lambda a: a.count("k", "v").count("count", name="n"),
        lambda a: denotations.count(denotations.count(a, (0, 1)), (2,)),
    ),
}


def least(a: Multiset) -> Multiset:
    """The least v of each k: only these two columns matter, so other columns cannot hide a negative count."""
    return denotations.min(denotations.select(a, (0, 1)), (0,), 1)


ORDERED = {
    "min": of_a(lambda a: a.group_by("k").min("v"), least),
    "max": of_a(lambda a: a.group_by("k").max("w"), lambda a: denotations.max(denotations.select(a, (0, 2)), (0,), 1)),
    "min of all": of_a(
        lambda a: a.group_by().min("v", name="m"), lambda a: denotations.min(denotations.select(a, (1,)), (), 0)
    ),
    "argmin": of_a(lambda a: a.group_by("k").argmin("v"), lambda a: denotations.argmin(a, (0,), 1)),
    "argmax": of_a(lambda a: a.group_by("k").argmax("w"), lambda a: denotations.argmax(a, (0,), 2)),
    "top_k": of_a(lambda a: a.group_by("k").top_k(2, by="-v"), lambda a: denotations.top_k(a, (0,), 1, 2)),
    "least three": of_a(
        lambda a: a.group_by("k").top_k(3, by="w"), lambda a: denotations.top_k(a, (0,), 2, 3, largest=False)
    ),
    "hierarchical min": of_a(lambda a: a.group_by("k").min("v", hierarchical=True), least),
    "hierarchical argmax": of_a(
        lambda a: a.group_by("k").argmax("v", hierarchical=True), lambda a: denotations.argmax(a, (0,), 1)
    ),
    "hierarchical top_k": of_a(
        lambda a: a.group_by("k").first(2, "-v", copies=True, hierarchical=True),
        lambda a: denotations.top_k(a, (0,), 1, 2),
    ),
    "reduce": of_a(
        lambda a: a.group_by("k").reduce(middle, v=int, w=int, n=int), lambda a: denotations.reduce(a, (0,), middle_of)
    ),
    "reduce of all": of_a(
        lambda a: a.group_by().reduce(middle, k=int, v=int, w=int, n=int),
        lambda a: denotations.reduce(a, (), middle_of),
    ),
    "join of a reduction with its input": of_a(
        lambda a: a.group_by("k").max("v").join(a, on="k").filter(kpg.col("v") == kpg.col("v_right")).select("k", "w"),
        lambda a: denotations.select(
            denotations.filter(
                denotations.join(denotations.max(denotations.select(a, (0, 1)), (0,), 1), a, (0,), (0,)),
                lambda row: row[1] == row[2],
            ),
            (0, 3),
        ),
    ),
}


@examples(0.5)
@given(plays(ROWS))
def test_counts_and_sums(play):
    check(play, SCHEMAS, REDUCTIONS)


@examples(0.4)
@given(plays(ROWS, coordinates=2, max_size=8))
def test_counts_and_sums_where_times_have_two_coordinates(play):
    check(play, SCHEMAS, REDUCTIONS)


@examples(0.3)
@given(plays(ROWS, coordinates=3, largest=1, max_size=8))
def test_counts_and_sums_where_times_have_three_coordinates(play):
    check(play, SCHEMAS, REDUCTIONS)


@examples(0.4)
@given(plays(ROWS))
def test_first_rows_and_any_function(play):
    check(play, SCHEMAS, ORDERED)


@examples(0.3)
@given(plays(ROWS, coordinates=2, max_size=8))
def test_first_rows_and_any_function_where_times_have_two_coordinates(play):
    check(play, SCHEMAS, ORDERED)


@examples(0.2)
@given(plays(ROWS, coordinates=3, largest=1, max_size=8))
def test_first_rows_and_any_function_where_times_have_three_coordinates(play):
    check(play, SCHEMAS, ORDERED)


@examples(0.2)
@given(plays(ROWS, max_size=12))
def test_first_rows_where_the_histories_of_some_keys_are_long(play):
    """Short histories take one pass and long ones the general tactic: both may change in one step."""
    with patch.object(one_pass_tactic, "MAX_HISTORY_ROWS", 3):
        check(play, SCHEMAS, {name: ORDERED[name] for name in ("min", "argmin", "argmax", "hierarchical argmax")})
