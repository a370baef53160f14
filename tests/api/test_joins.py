"""Joins equal their denotation, whenever and however rows arrive on either side (A2.4, A2.5, A5.3, A5.5)."""

from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.testing import denotations
from kpg.testing.strategies import rows
from tests.api.plays import Query, check, examples, plays

SCHEMAS = {"a": {"x": int, "y": int}, "b": {"x": int, "y": int}, "c": {"x": int}}
ROWS = {"a": rows(2), "b": rows(2), "c": rows(1)}
BOTH = ("a", "b")

JOINS = {
    "join": Query(lambda db, r: r["a"].join(r["b"], on="x"), lambda a, b: denotations.join(a, b, (0,), (0,)), BOTH),
    "join of other names": Query(
        lambda db, r: r["a"].join(r["b"], on={"y": "x"}).select("x", "y", "y_right"),
        lambda a, b: denotations.select(denotations.join(a, b, (1,), (0,)), (0, 1, 2)),
        BOTH,
    ),
    "join of all columns": Query(
        lambda db, r: r["a"].join(r["b"], on=("x", "y")), lambda a, b: denotations.join(a, b, (0, 1), (0, 1)), BOTH
    ),
    "join by none": Query(
        lambda db, r: r["a"].join(r["c"].rename(x="z"), on=()), lambda a, c: denotations.join(a, c, (), ()), ("a", "c")
    ),
    "join with itself": Query(
        lambda db, r: r["a"].join(r["a"], on="x"), lambda a: denotations.join(a, a, (0,), (0,)), ("a",)
    ),
    "two hops": Query(
        lambda db, r: r["a"].join(r["a"], on={"y": "x"}).select(x="x", y="y_right"),
        lambda a: denotations.select(denotations.join(a, a, (1,), (0,)), (0, 2)),
        ("a",),
    ),
    "three hops": Query(
        lambda db, r: (
            r["a"]
            .join(r["b"], on={"y": "x"})
            .select("x", z="y_right")
            .join(r["a"].rename(x="z", y="w"), on="z")
            .filter(kpg.col("x") < kpg.col("w"))
            .select("x", "w")
        ),
        lambda a, b: denotations.select(
            denotations.filter(
                denotations.join(denotations.select(denotations.join(a, b, (1,), (0,)), (0, 2)), a, (1,), (0,)),
                lambda row: row[0] < row[2],
            ),
            (0, 2),
        ),
        BOTH,
    ),
    "join of computed": Query(
        lambda db, r: r["a"].join(r["b"], on="x").select(s=kpg.col("y") + kpg.col("y_right")),
        lambda a, b: denotations.map(denotations.join(a, b, (0,), (0,)), lambda row: (row[1] + row[2],)),
        BOTH,
    ),
    "semijoin": Query(
        lambda db, r: r["a"].semijoin(r["b"], on={"x": "y"}),
        lambda a, b: denotations.semijoin(a, b, (0,), (1,)),
        BOTH,
    ),
    "antijoin": Query(
        lambda db, r: r["a"].antijoin(r["c"], on="x"), lambda a, c: denotations.antijoin(a, c, (0,), (0,)), ("a", "c")
    ),
    "intersect": Query(
        lambda db, r: r["a"].intersect(r["b"]), lambda a, b: denotations.semijoin(a, b, (0, 1), (0, 1)), BOTH
    ),
    "union": Query(
        lambda db, r: r["a"].union(r["b"]), lambda a, b: denotations.distinct(denotations.concat(a, b)), BOTH
    ),
    "intersect all": Query(lambda db, r: r["a"].intersect_all(r["b"]), denotations.intersect_all, BOTH),
    "except all": Query(lambda db, r: r["a"].except_all(r["b"]), denotations.except_all, BOTH),
    "join of an arrangement": Query(
        lambda db, r: r["a"].arrange("y").join(r["b"].arrange("x"), on={"y": "x"}).select("x", "y", "y_right"),
        lambda a, b: denotations.join(a, b, (1,), (0,)),
        BOTH,
    ),
}


@examples(0.4)
@given(plays(ROWS, max_size=8))
def test_joins(play):
    check(play, SCHEMAS, JOINS)


@examples(0.3)
@given(st.sampled_from([2, 3]).flatmap(lambda depth: plays(ROWS, coordinates=depth, largest=2, max_size=6)))
def test_joins_where_times_have_several_coordinates(play):
    check(play, SCHEMAS, JOINS)
