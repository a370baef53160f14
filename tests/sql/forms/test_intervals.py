"""Intervals that are equal in PostgreSQL are equal in joins, groups, sets and orders, whatever their spelling."""

from __future__ import annotations

import random

import pytest

import kpg
from kpg import Interval

SPELLINGS = [
    "1 month", "30 days", "720:00:00", "29 days 24:00:00", "1 day", "24:00:00", "-1 month", "2 months", "0", "-30 days",
]  # fmt: skip
QUERIES = [
    "SELECT s, count(*) FROM r GROUP BY s",
    "SELECT k, s, count(*), grouping(s) FROM r GROUP BY ROLLUP (k, s)",
    "SELECT DISTINCT s FROM r",
    "SELECT a.id, b.id FROM r a JOIN r b ON a.s = b.s",
    "SELECT a.id, b.id FROM r a LEFT JOIN r b ON a.s = b.s AND a.k < b.k",
    "SELECT id FROM r WHERE s IN (SELECT s FROM r WHERE k = 1)",
    "SELECT id FROM r WHERE s NOT IN (SELECT s FROM r WHERE k = 1 AND s IS NOT NULL)",
    "SELECT (SELECT count(*) FROM r b WHERE b.s = a.s) FROM r a",
    "SELECT count(DISTINCT s), min(s), max(s), sum(s), avg(s) FROM r",
    "SELECT k, min(s), sum(s) FROM r GROUP BY k",
    "SELECT s FROM r WHERE k = 1 UNION SELECT s FROM r WHERE k = 2",
    "SELECT s FROM r WHERE k = 1 INTERSECT SELECT s FROM r WHERE k = 2",
    "SELECT s FROM r WHERE k = 1 EXCEPT SELECT s FROM r WHERE k = 2",
    "SELECT s FROM r ORDER BY s DESC, id LIMIT 3",
    "SELECT DISTINCT ON (s) s FROM r ORDER BY s",
    "SELECT id, s IS NOT DISTINCT FROM interval '30 days', s < interval '1 month' FROM r",
]


@pytest.fixture(scope="module")
def db():
    """A db with the table of the test."""
    with kpg.open() as opened:
        opened.sql("CREATE TABLE r (id INT PRIMARY KEY, k INT, s INTERVAL)")
        yield opened


def spans(rows):
    """Return rows with spans in place of intervals, sorted."""
    shown = [tuple(span(v) if hasattr(v, "microseconds") and hasattr(v, "months") else v for v in row) for row in rows]
    return sorted(shown, key=repr)


def span(value) -> tuple[str, int]:
    """Return the length of an interval of kpg or of PostgreSQL."""
    return "span", Interval(value.months, value.days, value.microseconds).span


@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_compared_by_their_span(postgres, db, seed):
    rng = random.Random(seed)
    values = [rng.choice([*(f"'{text}'" for text in SPELLINGS), "NULL"]) for _ in range(8)]
    insert = "INSERT INTO r VALUES " + ", ".join(
        f"({n}, {rng.randint(1, 2)}, {value})" for n, value in enumerate(values)
    )
    postgres.reset()
    postgres.rows("CREATE TABLE r (id INT PRIMARY KEY, k INT, s INTERVAL)")
    postgres.rows(insert)
    db.sql("TRUNCATE r")
    db.sql(insert)
    for query in QUERIES:
        assert spans(db.sql(query).rows()) == spans(postgres.rows(query).rows), query


def test_a_standing_group_shows_its_least_member(db):
    db.sql("TRUNCATE r")
    db.sql("CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n FROM r GROUP BY s")
    db.sql("INSERT INTO r VALUES (1, 1, '1 month'), (2, 1, '30 days'), (3, 1, '29 days 24:00')")
    assert db.sql("SELECT * FROM v").rows() == [(Interval(days=29, microseconds=86_400_000_000), 3)]
    db.sql("DELETE FROM r WHERE id = 3")
    assert db.sql("SELECT * FROM v").rows() == [(Interval(days=30), 2)]
    db.sql("DELETE FROM r WHERE id = 2")
    assert db.sql("SELECT * FROM v").rows() == [(Interval(months=1), 1)]
    db.sql("DROP MATERIALIZED VIEW v")
