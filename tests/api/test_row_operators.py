"""Operators on single rows equal their denotation, whenever and however rows arrive (A2.1, A2.4, A2.5)."""

import numpy as np
import pyarrow as pa
from hypothesis import given

import kpg
from kpg.testing import denotations
from kpg.testing.strategies import rows
from tests.api.plays import Query, check, examples, plays

SCHEMAS = {"a": {"x": int, "y": int}, "b": {"x": int, "y": int}}
ROWS = {"a": rows(2), "b": rows(2)}


def up_to_x(table: pa.Table) -> tuple[np.ndarray, pa.Table]:
    """(x, y) becomes (0, y), ..., (x − 1, y)."""
    x, y = table["x"].to_numpy(), table["y"].to_numpy()
    positions = np.repeat(np.arange(len(x)), x)
    return positions, pa.table({"z": np.concatenate([np.arange(n) for n in x] or [x]), "y": y[positions]})


LINEAR = {
    "select": Query(
        lambda db, r: r["a"].select("y", z=kpg.col("x") + kpg.col("y")),
        lambda a: denotations.map(a, lambda row: (row[1], row[0] + row[1])),
        ("a",),
    ),
    "project": Query(lambda db, r: r["a"].select("y"), lambda a: denotations.select(a, (1,)), ("a",)),
    "swap": Query(lambda db, r: r["a"].select("y", "x"), lambda a: denotations.select(a, (1, 0)), ("a",)),
    "rename": Query(lambda db, r: r["a"].rename(x="z"), lambda a: a, ("a",)),
    "filter": Query(
        lambda db, r: r["a"].filter(kpg.col("x") < kpg.col("y")),
        lambda a: denotations.filter(a, lambda row: row[0] < row[1]),
        ("a",),
    ),
    "chain": Query(
        lambda db, r: r["a"].filter(kpg.col("x") > 0).negate().select(z=kpg.col("y") * 2).filter(kpg.col("z") < 4),
        lambda a: denotations.consolidate(((y * 2,), -n) for (x, y), n in a.items() if x > 0 and y < 2),
        ("a",),
    ),
    "flat_map": Query(
        lambda db, r: r["a"].flat_map(up_to_x, z=int, y=int),
        lambda a: denotations.flat_map(a, lambda row: [(z, row[1]) for z in range(row[0])]),
        ("a",),
    ),
    "concat": Query(lambda db, r: r["a"].concat(r["b"], r["a"]), lambda a, b: denotations.concat(a, b, a), ("a", "b")),
    "concat of swapped columns": Query(
        lambda db, r: r["a"].concat(r["b"].select("y", "x")), lambda a, b: denotations.concat(a, b), ("a", "b")
    ),
    "subtract": Query(
        lambda db, r: r["a"].subtract(r["b"]), lambda a, b: denotations.concat(a, denotations.negate(b)), ("a", "b")
    ),
    "negate": Query(lambda db, r: r["a"].negate(), lambda a: denotations.negate(a), ("a",)),
    "explode": Query(
        lambda db, r: r["a"].explode("x"), lambda a: denotations.explode(a, lambda row: [(row[1:], row[0])]), ("a",)
    ),
    "consolidate": Query(
        lambda db, r: r["a"].concat(r["b"].negate()).consolidate(),
        lambda a, b: denotations.concat(a, denotations.negate(b)),
        ("a", "b"),
    ),
    "itself": Query(lambda db, r: r["a"], lambda a: a, ("a",)),
    "arranged": Query(lambda db, r: r["a"].arrange("y").select("x", "y"), lambda a: a, ("a",)),
}


@examples(0.4)
@given(plays(ROWS))
def test_linear_operators(play):
    check(play, SCHEMAS, LINEAR)


@examples(0.3)
@given(plays(ROWS, coordinates=2))
def test_linear_operators_where_times_have_two_coordinates(play):
    check(play, SCHEMAS, LINEAR)


@examples(0.3)
@given(plays(ROWS, coordinates=3, largest=2))
def test_linear_operators_where_times_have_three_coordinates(play):
    check(play, SCHEMAS, LINEAR)
