"""Every operator inside loops, observed in every round: times of two and three coordinates (A2.4, A5.10, A17.11).

A column of each row names the round in which it enters the loop, so that updates are at any (epoch, round). `inspect`
sees the output of an operator inside the loop, with its full time.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import graphs, lit
from kpg.testing import denotations
from kpg.testing.model import Update, assert_agrees
from tests.api.plays import examples, perform, plays

col = kpg.col
FIELDS = {"x": int, "y": int, "r": int, "q": int}
SCHEMAS = {"a": FIELDS, "b": FIELDS}
ROW = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 2), st.integers(0, 1))
ROWS = {"a": ROW, "b": ROW}


def middle(key, rows):
    there = [row for row, count in rows for _ in range(count)]
    return there[len(there) // 2 : len(there) // 2 + 1]


OPERATORS = {
    "select": (lambda a, b: a.select(s=col("x") + col("y")), lambda a, b: denotations.map(a, lambda r: (r[0] + r[1],))),
    "filter": (lambda a, b: a.filter(col("x") < col("y")), lambda a, b: denotations.filter(a, lambda r: r[0] < r[1])),
    "concat": (lambda a, b: a.concat(b.negate()), lambda a, b: denotations.concat(a, denotations.negate(b))),
    "consolidate": (lambda a, b: a.concat(b).consolidate(), lambda a, b: denotations.concat(a, b)),
    "join": (lambda a, b: a.join(b, on="x"), lambda a, b: denotations.join(a, b, (0,), (0,))),
    "join of an arrangement": (
        lambda a, b: a.arrange("y").join(b, on={"y": "x"}).select("x", "y", "y_right"),
        lambda a, b: denotations.join(a, b, (1,), (0,)),
    ),
    "antijoin": (lambda a, b: a.antijoin(b, on="x"), lambda a, b: denotations.antijoin(a, b, (0,), (0,))),
    "count": (lambda a, b: a.count("x"), lambda a, b: denotations.count(a, (0,))),
    "distinct": (lambda a, b: a.distinct(), lambda a, b: denotations.distinct(a)),
    "threshold": (lambda a, b: a.select("y").threshold(2),
                  lambda a, b: denotations.threshold(denotations.select(a, (1,)), 2)),
    "sum": (lambda a, b: a.group_by("x").sum("y"), lambda a, b: denotations.sum(a, (0,), 1)),
    "max": (lambda a, b: a.group_by("x").max("y"), lambda a, b: denotations.max(a, (0,), 1)),
    "top_k": (lambda a, b: a.group_by("x").top_k(2, by="-y"), lambda a, b: denotations.top_k(a, (0,), 1, 2)),
    "reduce": (
        lambda a, b: a.group_by("x").reduce(middle, y=int),
        lambda a, b: denotations.reduce(a, (0,), lambda key, rows: [(row, 1) for row in middle(key, rows)]),
    ),
    "reduce, then join": (
        lambda a, b: a.count("x").join(b, on="x"),
        lambda a, b: denotations.join(denotations.count(a, (0,)), b, (0,), (0,)),
    ),
    "delay": (lambda a, b: a.delay(col("y") * 3), None),
}  # fmt: skip


def in_one_loop(seen: dict[str, list[Update[Any]]]):
    """Put each operator in a loop of its own, with rows that enter in round `r`."""

    def query(name: str):
        def build(db, relations):
            with db.loop() as loop:
                a, b = (loop.enter(relations[side], at=col("r")).select("x", "y") for side in "ab")
                result = OPERATORS[name][0](a, b).inspect(lambda *update: seen[name].append(update))
                return loop.leave(result)

        return build

    return {name: query(name) for name in OPERATORS}


def in_two_loops(seen: dict[str, list[Update[Any]]]):
    """The same one loop deeper, with rows that enter in rounds `r` and `q`; the inner loop reads the outer."""

    def query(name: str):
        def build(db, relations):
            with db.loop("outer") as outer, db.loop("inner") as inner:
                entered = [outer.enter(relations[side], at=col("r")) for side in "ab"]
                a, b = (inner.enter(rows, at=col("q")).select("x", "y") for rows in entered)
                result = OPERATORS[name][0](a, b).inspect(lambda *update: seen[name].append(update))
                return outer.leave(inner.leave(result))

        return build

    return {name: query(name) for name in OPERATORS}


def entered(stream: list[Update[Any]], depth: int) -> list[Update[Any]]:
    """The columns of rows inside one or two loops."""
    return [((x, y), (*time, r, q)[: len(time) + depth], diff) for (x, y, r, q), time, diff in stream]


def check(play, in_loops, depth: int) -> None:
    seen: dict[str, list[Update[Any]]] = {name: [] for name in OPERATORS}
    early_only = play.__class__(**{**play.__dict__, "install": len(play.clock) + 1})  # inspect would see both instances
    done = perform(early_only, SCHEMAS, in_loops(seen))
    inside = [entered(play.streams[side], depth) for side in "ab"]
    outside = [[((x, y), time, diff) for (x, y, _, _), time, diff in play.streams[side]] for side in "ab"]
    for name, (_, denotation) in OPERATORS.items():
        try:
            if denotation is None:
                delayed = [(row, (*time[:-1], max(time[-1], row[1] * 3)), diff) for row, time, diff in inside[0]]
                assert_agrees(seen[name], lambda rows: rows, delayed)
                assert_agrees(done.early[name], lambda rows: rows, outside[0])
            else:
                assert_agrees(seen[name], denotation, *inside)
                assert_agrees(done.early[name], denotation, *outside)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


@examples(0.4)
@given(plays(ROWS, largest=2, max_size=7))
def test_operators_in_every_round(play):
    check(play, in_one_loop, 1)


@examples(0.3)
@given(plays(ROWS, largest=2, max_size=6))
def test_operators_in_every_round_of_nested_loops(play):
    check(play, in_two_loops, 2)


@examples(0.2)
@given(plays(ROWS, coordinates=2, largest=1, max_size=6))
def test_operators_in_every_round_where_epochs_have_two_coordinates(play):
    check(play, in_one_loop, 1)


@examples(0.4)
@given(plays({"a": ROW}, largest=3))
def test_delay_outside_loops(play):
    """Rows are invisible before the epoch that they name."""
    done = perform(play, {"a": FIELDS}, {"delay": lambda db, r: r["a"].delay(col("r") + col("q"))})
    delayed = [(row, (max(time[0], row[2] + row[3]),), diff) for row, time, diff in play.streams["a"]]
    assert_agrees(done.early["delay"], lambda rows: rows, delayed)
    assert_agrees(done.late["delay"], lambda rows: rows, delayed, since=done.since)


@pytest.mark.parametrize("first", [2**16 - 10, 2**31 - 10, 2**32 - 10, 2**53 - 10])
def test_rounds_are_counted_past_the_ends_of_short_numbers(first):
    """A chain walked from a late round on to its end, and undone when its first edge is removed."""
    with kpg.open(max_rounds=2**60) as db:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        by_src = edges.arrange("src")
        with db.loop("walk") as loop:
            late = loop.enter(roots, at=lit(first))
            seen = loop.variable(node=int)
            seen.set(by_src.join(seen, on={"src": "node"}).select(node="dst").concat(late).distinct())
            answer = loop.leave(seen).output("answer")
        edges.insert([(node, node + 1) for node in range(30)])
        roots.insert([(0,)])
        db.advance()
        assert answer.rows() == [(node,) for node in range(31)]
        edges.remove([(0, 1)])
        db.advance()
        assert answer.rows() == [(0,)]


@pytest.mark.timeout(600)
def test_a_chain_of_100000_nodes_reaches_its_end():
    """A17.9: one row and one round after the other, past 65,536 of them."""
    with kpg.open() as db:
        edges, roots = db.input("edges", src=int, dst=int), db.input("roots", node=int)
        reached = graphs.reach(edges, roots).output()
        nodes = np.arange(100_000)
        edges.insert({"src": nodes[:-1], "dst": nodes[1:]})
        roots.insert([(0,)])
        db.advance()
        assert (np.sort(reached.snapshot()["node"].to_numpy()) == nodes).all()
