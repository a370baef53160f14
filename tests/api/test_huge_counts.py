"""Arithmetic on counts never wraps: sums and products of diffs are exact, and what does not fit 64 bits is an error.

The plays are those of the other operators, with diffs near 2^31, 2^32, 2^62 and 2^63 that cancel. The error depends on
the sum at a time, never on how updates were batched: plays differ in batches, merges, compaction and schedules.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.testing import denotations
from kpg.testing.model import OVERFLOW, without_errors
from kpg.testing.strategies import huge_diffs
from tests.api import test_joins, test_operators_in_loops, test_reductions, test_row_operators
from tests.api.plays import Multiset, check, examples, plays
from tests.api.test_reductions import of_a
from tests.dataflow import test_adversarial_network as network

HUGE = huge_diffs()
MAX = 2**63 - 1
VALUES = st.sampled_from([-1, 0, 2**32 + 1, -(2**63), MAX])
ROWS = {"a": st.tuples(st.integers(0, 1), VALUES, st.integers(0, 1))}


def after(inner: Multiset, denotation) -> Multiset:
    """Return a function of the rows of an operator; its errors are errors of the result."""
    rows = dict(denotation(without_errors(inner)))
    return rows if without_errors(inner) == inner else rows | {(OVERFLOW,): 1}


def digest(key, rows):
    """Return a function of exact counts."""
    return [(row[0], count % 1_000_003) for row, count in rows]


def digest_of(key, rows):
    return [(row, 1) for row in digest(key, rows)]


REDUCTIONS = {
    name: test_reductions.REDUCTIONS[name]
    for name in ("count", "count of all", "distinct", "distinct keys", "threshold", "sum")
} | {
    "high threshold": of_a(lambda a: a.threshold(MAX), lambda a: denotations.threshold(a, MAX)),
    "count of counts": of_a(
        lambda a: a.count("k", "v").count("count", name="n"),
        lambda a: after(denotations.count(a, (0, 1)), lambda rows: denotations.count(rows, (2,))),
    ),
    "sum of counts": of_a(
        lambda a: a.count("k", "v").group_by("k").sum(s="count"),
        lambda a: after(denotations.count(a, (0, 1)), lambda rows: denotations.sum(rows, (0,), 2)),
    ),
    "count and sum": of_a(
        lambda a: a.group_by("k").aggregate(n="count", s=("sum", "v")).select("k", "s"),
        lambda a: (
            {
                row: 1
                for row in denotations.sum(a, (0,), 1)
                if not {(*row[:-1], OVERFLOW)} & denotations.count(a, (0,)).keys()
            }
            | {row: 1 for row in denotations.count(a, (0,)) if row[-1] == OVERFLOW}
        ),
    ),
}
FIRSTS = {
    name: query
    for name, query in test_reductions.ORDERED.items()
    if name not in ("reduce", "reduce of all", "argmin", "min of all", "least three", "hierarchical argmax")
} | {
    "reduce": of_a(
        lambda a: a.group_by("k").reduce(digest, v=int, n=int), lambda a: denotations.reduce(a, (0,), digest_of)
    ),
}


@examples(0.15)
@given(plays(ROWS, diffs=HUGE))
def test_counts_and_sums_of_huge_counts(play):
    check(play, test_reductions.SCHEMAS, REDUCTIONS)


@examples(0.1)
@given(plays(ROWS, diffs=HUGE, coordinates=2, max_size=7))
def test_counts_and_sums_of_huge_counts_where_times_have_two_coordinates(play):
    check(play, test_reductions.SCHEMAS, REDUCTIONS)


@examples(0.1)
@given(st.sampled_from([1, 2]).flatmap(lambda depth: plays(ROWS, diffs=HUGE, coordinates=depth, max_size=6)))
def test_first_rows_of_huge_counts(play):
    check(play, test_reductions.SCHEMAS, FIRSTS)


@examples(0.1)
@given(st.sampled_from([1, 2]).flatmap(lambda d: plays(test_row_operators.ROWS, diffs=HUGE, coordinates=d, max_size=6)))
def test_linear_operators_of_huge_counts(play):
    check(play, test_row_operators.SCHEMAS, test_row_operators.LINEAR)


@examples(0.1)
@given(st.sampled_from([1, 2]).flatmap(lambda d: plays(test_joins.ROWS, diffs=HUGE, coordinates=d, max_size=5)))
def test_joins_of_huge_counts(play):
    check(play, test_joins.SCHEMAS, test_joins.JOINS)


@examples(0.1)
@given(plays(test_operators_in_loops.ROWS, diffs=HUGE, largest=2, max_size=6))
def test_huge_counts_in_every_round_of_a_loop(play):
    operators = {name: pair for name, pair in test_operators_in_loops.OPERATORS.items() if name != "reduce"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_operators_in_loops, "OPERATORS", operators)
        patch.setitem(operators, "reduce, then join", (operators["reduce, then join"][0], count_then_join))
        test_operators_in_loops.check(play, test_operators_in_loops.in_one_loop, 1)


def count_then_join(a: Multiset, b: Multiset) -> Multiset:
    return denotations.join(without_errors(denotations.count(a, (0,))), b, (0,), (0,))


CASES = {
    "linear": (test_row_operators.ROWS, test_row_operators.SCHEMAS, test_row_operators.LINEAR),
    "joins": (test_joins.ROWS, test_joins.SCHEMAS, test_joins.JOINS),
    "counts": (ROWS, test_reductions.SCHEMAS, REDUCTIONS),
    "firsts": (ROWS, test_reductions.SCHEMAS, FIRSTS),
}


@pytest.mark.parametrize("case", CASES)
@examples(0.04)
@given(data=st.data(), peers=st.sampled_from([2, 3]), noise=network.NOISE)
def test_huge_counts_on_several_workers(case, data, peers, noise):
    rows, schemas, queries = CASES[case]
    network.check(data.draw(plays(rows, diffs=HUGE, max_size=5)), schemas, queries, peers, noise)


def test_a_self_join_of_a_row_held_2_to_the_32_times_keeps_the_row():
    with kpg.open() as db:
        a = db.input("a", x=int)
        pairs = a.join(a, on="x").output("pairs")
        there = a.join(a, on="x").distinct().output("there")
        a.update_at([(7,)], 0, 2**32)
        time = db.advance()
        assert list(pairs.changes()) == [((7,), time, 2**64)]
        assert there.rows() == [(7,)]
        with pytest.raises(kpg.DataError, match="pairs holds a row more often than 64 bits can count") as caught:
            pairs.snapshot(counts=True)
        assert caught.value.detail == f"The row is (7,); its count is {2**64}."
        with pytest.raises(kpg.DataError, match="pairs holds more rows than a table can"):
            pairs.rows()
        a.update_at([(7,)], db.epoch, 3 - 2**32)
        db.advance()
        assert pairs.snapshot(counts=True).to_pylist() == [{"x": 7, "count": 9}]


def test_a_count_past_the_last_integer_is_an_error_until_it_fits_again():
    with kpg.open() as db:
        a = db.input("a", x=int, y=int)
        counted = a.count("x").output("counted")
        a.update_at([(1, 1), (2, 1)], 0, MAX)
        db.advance()
        assert counted.rows() == [(1, MAX), (2, MAX)]
        a.insert([(1, 2)])
        db.advance()
        with pytest.raises(kpg.DataError, match="the number of rows does not fit 64 bits") as caught:
            counted.rows()
        assert caught.value.detail == "It fails for x = 1."
        a.remove([(1, 1)])
        db.advance()
        assert counted.rows() == [(1, MAX), (2, MAX)]
        assert [change for change in counted.changes() if change[0][0] == 2] == [((2, MAX), 0, 1)]


DIAMONDS = 64


def test_the_paths_through_64_diamonds_are_counted():
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        start = db.input("start", node=int)

        def step(paths):
            return start.concat(paths.join(edges, on={"node": "src"}).select(node="dst"))

        paths = start.iterate(step).output("paths")
        there = start.iterate(step).distinct().output("there")
        last = start.iterate(step).filter(col("node") == 2 * DIAMONDS).count("node").output("last")
        for diamond in range(DIAMONDS):
            a = 2 * diamond
            edges.update_at([(a, a + 2)], 0, 2)  # two ways from each node to the next
        start.insert([(0,)])
        db.advance()
        counts = {row: diff for row, _, diff in paths.changes()}
        assert counts == {(2 * n,): 2**n for n in range(DIAMONDS + 1)}
        assert there.rows() == [(2 * n,) for n in range(DIAMONDS + 1)]
        with pytest.raises(kpg.DataError, match="the number of rows does not fit 64 bits"):
            last.rows()
        edges.remove([(0, 2)])
        db.advance()
        with pytest.raises(kpg.DataError):
            last.rows()  # 2^63 paths are one too many
        edges.remove([(2, 4)])
        db.advance()
        assert last.rows() == [(2 * DIAMONDS, 2**62)]


def test_a_sum_of_exactly_the_least_integer_over_a_nullable_column_is_an_error():
    with kpg.open() as db:
        a = db.input("a", x=int | None, y=int)
        nullable, plain = a.group_by().sum(s="x").output("nullable"), a.group_by().sum(s="y").output("plain")
        a.insert([(-(2**62), -(2**62))] * 2)
        db.advance()
        assert plain.rows() == [(-(2**63),)]
        with pytest.raises(kpg.DataError, match="the sum does not fit its type"):
            nullable.rows()
        a.insert([(1, 1)])
        db.advance()
        assert nullable.rows() == plain.rows() == [(1 - 2**63,)]


def test_the_sum_of_many_copies_fits_if_the_result_does():
    with kpg.open() as db:
        a = db.input("a", x=int, y=float)
        sums = a.group_by().aggregate(s=("sum", "x"), f=("sum", "y"), m=("avg", "x")).output("sums")
        a.update_at([(-1, 0.5)], 0, 2**62)
        a.update_at([(0, 0.0)], 0, MAX)
        a.update_at([(0, 0.0)], 0, -MAX)
        db.advance()
        assert sums.rows() == [(-(2**62), 2.0**61, -1.0)]


@pytest.mark.parametrize("diff", [2**63, -(2**63), 2**70, [1, -(2**63)]])
def test_a_diff_that_does_not_fit_is_refused(diff):
    with kpg.open() as db:
        a = db.input("a", x=int)
        with pytest.raises(kpg.SchemaMismatch, match="diffs are whole numbers"):
            a.update_at([(1,), (2,)], 0, diff)


def test_huge_counts_survive_a_restart(tmp_path):
    with kpg.open(tmp_path) as db:
        a = db.input("a", x=int)
        for _ in range(3):
            a.update_at([(1,), (2,)], db.epoch, MAX)
            db.advance()
        db.idle(1000)
    with kpg.open(tmp_path) as db:
        a = db.input("a", x=int)
        assert sorted((row, diff) for row, _, diff in a.output().changes()) == [((1,), 3 * MAX), ((2,), 3 * MAX)]
        a.update_at([(1,)], db.epoch, -MAX)
        a.update_at([(1,)], db.epoch + 1, -MAX)
        db.advance()
        db.advance()
    with kpg.open(tmp_path) as db:
        a = db.input("a", x=int)
        counted = a.count("x").output()
        with pytest.raises(kpg.DataError, match="the number of rows does not fit 64 bits"):
            counted.rows()
        a.update_at([(2,)], db.epoch, -MAX)
        a.update_at([(2,)], db.epoch, -MAX)
        db.advance()
        assert counted.rows() == [(1, MAX), (2, MAX)]
