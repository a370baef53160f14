"""Casts: which exist in which context, and what each gives for every value, as PostgreSQL says."""

from __future__ import annotations

import math
import random
import zlib
from decimal import Decimal

import pytest

from kpg.sql.functions.cast_rules import can_cast, category
from kpg.sql.functions.sql_casts import build_cast
from kpg.sql.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    REAL,
    SMALLINT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    SqlType,
    array_of,
    char,
    numeric,
    varchar,
)
from tests.sql.functions.argument_values import PLAIN, value_of
from tests.sql.functions.judged import TRY_ALL, Outcome, compute, judge, literal

ROWS = 24
TYPES = (
    BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, numeric(6, 2), numeric(25, 5), TEXT, varchar(3), char(4), BYTEA,
    DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID, JSONB, array_of(INTEGER), array_of(TEXT),
)  # fmt: skip
PAIRS = [
    pytest.param(source, target, id=f"{source} to {target}")
    for source in TYPES
    for target in TYPES
    if can_cast(source, target, "explicit")
]
MOMENTS = ("moment", "span")  # cut texts of these have many readings
READABLE = {
    "smallint": ["+7", "007", "1e3", "32768", "1.5", "x", ""],
    "integer": ["+7", "2147483648", "-2147483648", "0x10", "1_000"],
    "bigint": ["9223372036854775808", "-1"],
    "numeric": ["1e3", ".5", "5.", "-.5e1", "1.005", "1.015", "99999.994", "99999.995", "1,000", "abc", "- 1"],
    "real": ["1e39", "1e-50", "-inf", "+Infinity", "nan", "1.1.1"],
    "double precision": ["1e309", "1e-400", "Infinity", "-nan"],
    "boolean": ["t", "T", "tr", "yes", "y", "on", "of", "off", "o", "1", "0", "2", "truee"],
    "date": ["2024-1-5", "20240105", "Jan 5, 2024", "5 January 2024", "1/5/2024", "2024-13-01", "2024-02-30", "abc",
             "2024-01-05 10:00", "2024/01/05", "5-Jan-2024"],
    "time without time zone": ["1:02", "01:02:03 PM", "25:00", "12:60", "010203", "12:34:56.7891234", "noon?"],
    "timestamp without time zone": ["2024-01-05T10:20:30", "2024-01-05 10:20", "2024-01-05", "2024-01-05 10:20:30+02",
                                    "2024-01-05 24:00", "2024-01-05 10:61", "Jan 5 2024 3:04 PM"],
    "timestamp with time zone": ["2024-01-05 10:20:30+02", "2024-01-05T10:20:30Z", "2024-07-05 10:20 Europe/Berlin",
                                 "2024-01-05 10:20:30-0530", "2024-01-05", "2024-01-05 +05", "2024-01-05 UTC",
                                 "2024-01-05 10:20 Nowhere/Land"],
    "interval": ["1 day 2 hours", "P1Y2M3DT4H5M6S", "1-2", "3 4:05:06", "1.5 days", "-1 year -2 mons", "1 day ago",
                 "90 minutes", "1.5 months", "2 weeks 1.5 hours", "5", "1 fortnight", "", "4:05", "1 y 1 mon 1 d"],
    "uuid": ["{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "6BA7B8109DAD11D180B400C04FD430C8", "6ba7b810-9dad", "zz"],
    "bytea": ["\\x0", "\\xzz", "a\\\\b", "\\101", "\\9"],
    "jsonb": ['{"b": 1, "a": 2}', "[1,2", "01", '"a', "1e2", '{"a": 1, "a": 2}', "nul"],
    "integer[]": ["{1,2,NULL}", "{ 1 , 2 }", "{}", "{1,2", "{a}", "1,2"],
    "text[]": ['{a,"b c",NULL}', '{"NULL"}', '{"a\\"b"}', "{a b}"],
}  # fmt: skip


@pytest.fixture(scope="module")
def judging(postgres):
    """PostgreSQL with the function that evaluates expressions."""
    postgres.sql(TRY_ALL)
    return postgres


def value_for(source: SqlType, target: SqlType, rng: random.Random) -> str | None:
    """Return a value to cast; for text mostly one that looks like the target."""
    if not source.is_text or target.is_text or rng.random() < 0.15 or (source.length and category(target) in MOMENTS):
        return "abc" if source.is_text and category(target) in MOMENTS else value_of(source, rng)
    text = rng.choice(READABLE.get(target.name, []) * 2 + PLAIN.get(target.name, ["12.345"]))
    return text if source.length is None else text[: source.length]


def agree(ours: Outcome, theirs: Outcome, target: SqlType) -> bool:
    """Return whether both outcomes are the same, up to listed differences of range."""
    if ours == theirs:
        return True
    if ours.state is not None and theirs.shown is not None:
        return theirs.shown in ("NaN", "infinity", "-infinity", str(-(2**63))) or theirs.shown.endswith("BC")
    if ours.shown is None or theirs.shown is None:
        return False
    if target.name in ("real", "double precision"):
        return math.isclose(float(ours.shown), float(theirs.shown), rel_tol=1e-15)
    return target.name == "jsonb" and Decimal(ours.shown) == Decimal(theirs.shown)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_cast_gives_what_postgresql_gives(judging, source, target):
    rng = random.Random(zlib.crc32(f"{source} {target}".encode()))
    rows = [[value_for(source, target, rng)] for _ in range(ROWS)]
    texts = [f"{literal(row[0], source)}::{target}" for row in rows]

    def build(arguments, types, result):
        return build_cast(arguments[0], types[0], result, explicit=True)

    outcomes = zip(texts, compute(build, [source], target, rows, [False]), judge(judging, texts), strict=True)
    wrong = [
        f"{text}: kpg {ours}, PostgreSQL {theirs}" for text, ours, theirs in outcomes if not agree(ours, theirs, target)
    ]
    assert not wrong, f"{len(wrong)} of {ROWS}\n" + "\n".join(wrong[:12])


def test_casts_exist_in_the_contexts_of_postgresql(judging):
    judging.sql("CREATE TABLE targets (" + ", ".join(f"c{n} {type_}" for n, type_ in enumerate(TYPES)) + ")")
    wrong = []
    for source in TYPES:
        explicit = judge(judging, [f"NULL::{source}::{target}" for target in TYPES])
        for number, (target, outcome) in enumerate(zip(TYPES, explicit, strict=True)):
            if can_cast(source, target, "explicit") != (outcome.state is None):
                wrong.append(f"{source}::{target}: {outcome}")
            refused = judging.checked(f"INSERT INTO targets (c{number}) SELECT NULL::{source}")
            if can_cast(source, target, "assignment") != (refused is None):
                wrong.append(f"{source} assigned to {target}: {refused}")
    assert not wrong, "\n".join(wrong)
