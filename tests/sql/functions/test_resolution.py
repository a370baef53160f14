"""Calls mean the overload that PostgreSQL chooses, or are refused with its SQLSTATE."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kpg.errors import KpgError
from kpg.sql.functions.cast_rules import common_type
from kpg.sql.functions.function_tables import SCALAR_FUNCTIONS
from kpg.sql.functions.resolve import resolve
from kpg.sql.functions.sql_sequences import SEQUENCE_FUNCTIONS
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
    UNKNOWN,
    UUID,
    SqlType,
    array_of,
    char,
    numeric,
    varchar,
)
from tests.sql.functions.call_text import call_text
from tests.sql.functions.judged import TRY_ALL, Outcome, judge

CALLS = 3000
TYPES = (
    BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, numeric(6, 2), TEXT, varchar(3), char(4), BYTEA, DATE, TIME,
    TIMESTAMP, TIMESTAMPTZ, INTERVAL, UUID, JSONB, array_of(INTEGER), array_of(TEXT), UNKNOWN, UNKNOWN, UNKNOWN,
)  # fmt: skip
# PostgreSQL has more overloads of these, of types that kpg does not have or of other numbers of arguments.
OTHER_OVERLOADS = {
    "position", "length", "overlay", "substring", "substr", "btrim", "ltrim", "rtrim", "encode", "age", "array",
    "like_escape", "trunc", "regexp_replace", "array_remove",
    "@", "@>", "<@", "&&", "+", "-", "|", "&", "#", "~", "<<", ">>", "?|", "?&", "abs", "timezone",
    "date_part", "extract", "isfinite", "to_char", "to_timestamp", "regexp_match", "^", "?", "/", "*", "subscript",
    "quote_literal", "->", "->>", "#>", "#>>",
    "array_ndims", "to_jsonb", "jsonb_build_array", "jsonb_build_object",
}  # fmt: skip
SPECIAL = {"pg_typeof", "subscript", "current_date", "current_timestamp", "localtime", "localtimestamp"}
NAMES = sorted(
    name
    for name in SCALAR_FUNCTIONS.keys() - SEQUENCE_FUNCTIONS - SPECIAL  # regclass is no type of kpg
    if not name.endswith((" any", " all"))
)


@pytest.fixture(scope="module")
def judging(postgres):
    """PostgreSQL with the function that evaluates expressions."""
    postgres.sql(TRY_ALL)
    return postgres


def shown(type_: SqlType) -> str:
    """Return a type as pg_typeof shows it."""
    return str(replace(type_, precision=None, scale=None, length=None, element=None))


def chosen(name: str, types: list[SqlType]) -> Outcome:
    """Return the result type of a call, or the SQLSTATE of its refusal."""
    try:
        resolution = resolve(name, types)
        result = resolution.function.result_type(resolution.argument_types)
    except KpgError as error:
        return Outcome(None, error.sqlstate)
    return Outcome(shown(result))


def argument(type_: SqlType) -> str:
    """Return a null of a type as SQL text."""
    return "NULL" if type_ == UNKNOWN else f"NULL::{type_}"


def random_call(rng: random.Random) -> tuple[str, list[SqlType]]:
    name = rng.choice(NAMES)
    entry = rng.choice(SCALAR_FUNCTIONS[name])
    types = [rng.choice(TYPES) for _ in entry.parameters]
    for position, parameter in enumerate(entry.parameters):
        if rng.random() < 0.6 and not parameter.name.startswith("any"):
            types[position] = numeric(6, 2) if parameter.name == "numeric" else parameter
    return name, types


def test_calls_resolve_as_in_postgresql(judging):
    rng = random.Random(12)
    calls = [random_call(rng) for _ in range(CALLS)]
    texts = [f"pg_typeof({call_text(name, list(map(argument, types)), by_unicode=False)})" for name, types in calls]
    theirs = judge(judging, texts)
    wrong = []
    for (name, types), text, theirs_one in zip(calls, texts, theirs, strict=True):
        ours = chosen(name, types)
        if theirs_one.state and theirs_one.state.startswith("22"):  # it was found, and failed
            continue
        if theirs_one.shown == "time with time zone" or ours.state == "0A000" or name == "array_position":
            continue  # a type that kpg does not have, arrays of arrays, and a second overload
        if ours != theirs_one and not (name in OTHER_OVERLOADS and "42725" in (ours.state, theirs_one.state)):
            wrong.append(f"{text}: kpg {ours}, PostgreSQL {theirs_one}")
    assert not wrong, f"{len(wrong)} of {CALLS}\n" + "\n".join(wrong[:40])


def test_the_common_type_is_that_of_postgresql(judging):
    rng = random.Random(12)
    lists = [[rng.choice(TYPES) for _ in range(rng.randint(2, 4))] for _ in range(500)]
    theirs = judge(judging, [f"pg_typeof(COALESCE({', '.join(map(argument, types))}))" for types in lists])
    for types, theirs_one in zip(lists, theirs, strict=True):
        try:
            ours = Outcome(shown(common_type(types)))
        except KpgError as error:
            ours = Outcome(None, error.sqlstate)
        assert ours == theirs_one, list(map(str, types))
