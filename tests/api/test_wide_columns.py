"""Queries over columns of several lanes answer as the same queries over int64 columns, value for value.

Each type has a function from small integers to its values that keeps their order. Both dbs play the same inserts and
removals, and every answer is compared after every epoch.
"""

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg import col

Rows = list[tuple[Any, ...]]
Play = list[tuple[Rows, Rows]]  # for each epoch: inserts into a, and into b; the epoch after removes some of them

TYPES: dict[str, Callable[[int], Any]] = {
    "decimal(38,2)": lambda value: Decimal(f"{value * 10**33 + value}e-2"),
    "decimal(19,0)": lambda value: Decimal(value * 10**17),
    "uuid": lambda value: UUID(int=(value + 3) * 2**62),  # some have an upper half of zero, as null has in its lanes
}
small = st.integers(-3, 3)
optional = st.none() | small
plays = st.lists(
    st.tuples(st.lists(st.tuples(small, optional), max_size=5), st.lists(st.tuples(small, small), max_size=5)),
    min_size=1,
    max_size=4,
)


def closure(db: Any, a: Any, b: Any) -> Any:
    return b.iterate(lambda paths: paths.join(b.rename(x="y", y="z"), on="y").select("x", y="z").concat(b).distinct())


def first_by_hand(key: tuple[Any, ...], rows: list[Any]) -> Any:
    yield (rows[0][0][0], sum(count for _, count in rows))


QUERIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "columns in another order": lambda db, a, b: a.select("y", "x", z="x"),
    "comparisons": lambda db, a, b: b.filter((col("x") < col("y")) | (col("x") == col("y"))),
    "null": lambda db, a, b: a.filter(col("y").is_null()).select("x"),
    "coalesce": lambda db, a, b: a.select("x", y=kpg.coalesce(col("y"), col("x"))),
    "choice": lambda db, a, b: b.select(m=kpg.when(col("x") > col("y"), col("x")).otherwise(col("y"))),
    "extremes of a row": lambda db, a, b: b.select(m=kpg.max_of(col("x"), col("y")), n=kpg.min_of(col("x"), col("y"))),
    "join": lambda db, a, b: a.join(b, on="x"),
    "join of all columns": lambda db, a, b: a.join(b.select("x", "y"), on=("x",)).select("y_right", "x"),
    "join of a filtered index": lambda db, a, b: b.arrange("x").join(
        b.arrange("y").filter(col("x") > col("y")), on={"x": "y"}
    ),
    "semijoin": lambda db, a, b: a.semijoin(b, on={"x": "y"}),
    "antijoin": lambda db, a, b: a.antijoin(b, on={"x": "y"}),
    "distinct": lambda db, a, b: a.distinct(),
    "distinct of one column": lambda db, a, b: a.select("y").distinct(),
    "count": lambda db, a, b: a.group_by("y").count(),
    "least": lambda db, a, b: a.group_by("x").min("y"),
    "greatest": lambda db, a, b: a.group_by("x").max("y"),
    "greatest of all": lambda db, a, b: b.group_by().max("y"),
    "hierarchical least": lambda db, a, b: b.group_by("x").min("y", hierarchical=True),
    "first rows": lambda db, a, b: b.group_by("x").top_k(2, by="-y"),
    "row of the greatest": lambda db, a, b: b.group_by("x").argmax("y"),
    "function of groups": lambda db, a, b: b.group_by("x").reduce(
        first_by_hand, least=b.schema.type_of("y"), n=int
    ),
    "concatenation": lambda db, a, b: b.concat(b.filter(col("x") == col("y")).negate()),
    "loop": closure,
    "join in both orders": lambda db, a, b: b.join(b, on={"y": "x"}).join(b.rename(x="y_right", y="w"), on="y_right"),
}  # fmt: skip


def mapped(rows: Any, function: Callable[[int], Any], types: tuple[Any, ...]) -> Counter[tuple[Any, ...]]:
    """Return rows of an int64 db with each value in a column of the wide type replaced."""
    return Counter(
        tuple(function(v) if wide and v is not None else v for v, wide in zip(row, types, strict=True)) for row in rows
    )


def declare(db: Any, type_: str) -> tuple[Any, Any]:
    a = db.input("a", kpg.Schema.of({"x": type_, "y": f"{type_}?"}))
    b = db.input("b", kpg.Schema.of({"x": type_, "y": type_}))
    return a, b


def play_both(
    play: Play, type_: str, names: list[str], narrow: Any, wide: Any, check: Callable[[str, Any, Any], None]
) -> None:
    function = TYPES[type_]
    inputs = [declare(narrow, "int64"), declare(wide, type_)]
    outputs = [
        {name: QUERIES[name](db, *relations).output(name.replace(" ", "_")) for name in names}
        for db, relations in zip((narrow, wide), inputs, strict=True)
    ]
    before: Rows = []
    for into_a, into_b in play:
        for (a, b), f in zip(inputs, (lambda v: v, function), strict=True):

            def convert(rows: Rows, f: Callable[[int], Any] = f) -> Rows:
                return [tuple(None if v is None else f(v) for v in row) for row in rows]

            a.insert(convert(into_a))
            b.insert(convert(into_b))
            b.remove(convert(before))
        before = into_b[::2]
        for db in (narrow, wide):
            db.advance()
        for name in names:
            check(name, outputs[0][name], outputs[1][name])


def same_answer(type_: str) -> Callable[[str, Any, Any], None]:
    def check(name: str, expected: Any, actual: Any) -> None:
        assert actual.schema.names == expected.schema.names
        wide = tuple(t.kind != "int64" for t in actual.schema.types)
        assert Counter(actual.rows()) == mapped(expected.rows(), TYPES[type_], wide), name

    return check


@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=8)
@given(play=plays)
def test_queries_answer_as_over_int64(type_: str, play: Play) -> None:
    with kpg.open() as narrow, kpg.open() as wide:
        play_both(play, type_, list(QUERIES), narrow, wide, same_answer(type_))


PLAY: Play = [
    ([(1, 2), (1, None), (2, 3), (3, 3)], [(1, 2), (2, 3), (3, 1), (0, 0)]),
    ([(1, 2), (-1, 2)], [(1, 3), (2, 3), (-2, -3)]),
    ([(0, None)], [(3, 3)]),
]


def test_two_workers_answer_as_over_int64() -> None:
    with kpg.open() as narrow, kpg.open(workers=2) as wide:
        play_both(PLAY, "decimal(38,2)", list(QUERIES), narrow, wide, same_answer("decimal(38,2)"))


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_directory_keeps_columns_of_several_lanes(tmp_path: Path, type_: str, workers: int) -> None:
    f = TYPES[type_]
    rows = [(f(1), None, "x"), (f(2), f(-3), "y"), (f(-1), f(0), "x")]
    schema = kpg.Schema.of({"x": type_, "y": f"{type_}?", "s": str})
    options: dict[str, Any] = {} if workers == 1 else {"workers": workers}
    for step in range(3):
        with kpg.open(tmp_path / "db", **options) as db:
            relation = db.input("r", schema, key=("s", "x"))
            relation.upsert(rows[step : step + 1])
            db.advance()
            answer = relation.output()
            assert Counter(answer.rows()) == Counter(rows[: step + 1])
            if step == 1:
                db.checkpoint()
