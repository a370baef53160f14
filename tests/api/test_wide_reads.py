"""Reads in order, statistics and captures of columns of several lanes."""

import datetime
from decimal import Decimal
from pathlib import Path

import kpg
from kpg import Interval, col

BIG = [Decimal(10**30 + number) for number in range(5)]


def test_rows_are_read_in_the_order_of_wide_values() -> None:
    with kpg.open() as db:
        relation = db.input("r", x="decimal(38,0)?", i=Interval)
        rows = [(BIG[1], Interval(days=31)), (None, Interval(months=1)), (BIG[0], Interval(days=29))]
        relation.insert(rows)
        answer = relation.output("answer")
        db.advance()
        assert answer.sort("x").rows() == [rows[2], rows[0], rows[1]]
        assert answer.sort(col("x").desc(nulls_last=False)).rows() == [rows[1], rows[0], rows[2]]
        assert answer.sort("i").rows() == [rows[2], rows[1], rows[0]]
        assert answer.sort("-i").rows() == [rows[0], rows[1], rows[2]]


def test_statistics_of_wide_decimals() -> None:
    with kpg.open() as db:
        relation = db.input("r", g=int, x="decimal(38,0)")
        relation.insert([(1, value) for value in (*BIG, BIG[4])])
        answer = (
            relation.group_by("g")
            .aggregate(
                median=col("x").quantile(0.5, interpolate=False),
                mode=col("x").mode(),
                least=col("x").min(),
                n=col("x").count_distinct(),
            )
            .output("answer")
        )
        db.advance()
        ((_, median, mode, least, n),) = answer.rows()
        assert (median, mode, least, n) == (BIG[2], BIG[4], BIG[0], 5)


def test_a_capture_replays_wide_values(tmp_path: Path) -> None:
    rows = [
        (BIG[0], Interval(1, 2, 3), datetime.time(12, 30), datetime.datetime(2024, 5, 1), '{"a": 1}', (1, None)),
        (BIG[1], Interval(), datetime.time(), datetime.datetime(1, 1, 1), "null", ()),
    ]
    columns = {"x": "decimal(38,0)", "i": "interval", "t": "time", "l": "timestamp_ntz", "j": "jsonb", "a": "int64[]"}
    with kpg.open() as db:
        relation = db.input("r", kpg.Schema.of(columns))
        with relation.output("answer").capture(tmp_path / "answer.kpg"):
            relation.insert(rows)
            db.advance()
            relation.remove(rows[:1])
            db.advance()
    with kpg.open() as db:
        again = db.input("again", kpg.Schema.of(columns))
        db.replay(tmp_path / "answer.kpg", again)
        answer = again.output("answer")
        db.advance()
        assert answer.rows() == rows[1:]
