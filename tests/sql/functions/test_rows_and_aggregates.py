"""Functions of rows return PostgreSQL's rows; aggregates have PostgreSQL's result types and refusals."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace

import pytest

import kpg
from kpg.errors import KpgError
from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.function_tables import AGGREGATES, TABLE_FUNCTIONS
from kpg.sql.functions.resolve import argument_types_of, resolve_aggregate
from kpg.sql.functions.row_failures import state_of_reason
from kpg.sql.functions.sql_literals import read_literal
from kpg.sql.functions.text_output import write_any
from kpg.sql.sql_types import BIGINT, DATE, DOUBLE, INTEGER, TEXT, UNKNOWN, SqlType, array_of, numeric
from tests.sql.functions.argument_values import value_of
from tests.sql.functions.call_text import REGEXES
from tests.sql.functions.judged import TRY_ALL, Outcome, judge, literal
from tests.sql.functions.test_resolution import TYPES, argument, shown

CALLS = 20
SMALL = ["1", "3", "-2", "0", "7", "10"]
MEANINGFUL = {
    "regexp_matches": (None, REGEXES, ["", "g", "i", "gi"]),
    "regexp_split_to_table": (None, [",", "\\s+", "[aeiou]", "x*"], ["", "i"]),
    "string_to_table": (None, [",", " ", "a"], ["", "b", "abc"]),
}
OF_ARRAYS = ("array_agg", "percentile_cont", "percentile_disc")  # kpg does not have those of arrays
STEPS = ["1 day", "12:00:00", "1 month", "-1 day", "0"]
ENTRIES = [
    pytest.param(entry, id=f"{entry.name}({', '.join(map(str, entry.parameters))})")
    for entries in TABLE_FUNCTIONS.values()
    for entry in entries
]


@pytest.fixture(scope="module")
def judging(postgres):
    """PostgreSQL with the function that evaluates expressions."""
    postgres.sql(TRY_ALL)
    return postgres


def concrete(parameters: tuple[SqlType, ...], rng: random.Random) -> list[SqlType]:
    """Return types of arguments for parameters."""
    element = rng.choice([INTEGER, TEXT, DATE])
    chosen = {"numeric": numeric(6, 2), "anyarray": array_of(element), "anyelement": element}
    return [chosen.get(p.name, p) if p in (NUMERIC, *parameters) else p for p in parameters]


def row_argument(name: str, position: int, type_: SqlType, rng: random.Random) -> str:
    """Return the text of an argument that is not null."""
    choices = MEANINGFUL[name][position] if name in MEANINGFUL else None
    if name == "generate_series":
        moments = ["2024-01-30 00:00:00", "2024-02-02 12:00:00", "2024-03-01 00:00:00"]
        choices = STEPS if type_.name == "interval" else moments if type_.name.startswith("timestamp") else SMALL
    value = rng.choice(choices) if choices else None
    while value is None:
        value = value_of(type_, rng)
    return value


def rows_of(entry, types: list[SqlType], texts: list[str]) -> Outcome:
    """Return the rows of a function as one text."""
    returned = entry.returns(argument_types_of(entry.parameters, types))
    values = [read_literal(text, type_)[0] for text, type_ in zip(texts, types, strict=True)]
    try:
        rows = list(entry.rows(*values))
    except ValueError as error:
        return Outcome(None, state_of_reason(str(error)))
    return Outcome("".join(f"({''.join(map(shown_value, row, returned))})" for row in rows))


def shown_value(value, type_: SqlType) -> str:
    """Return a value of a row as text."""
    return "~" if value is None else f"<{write_any(type_.name, value)}>"


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_function_of_rows_returns_the_rows_of_postgresql(judging, entry):
    rng = random.Random(zlib.crc32(repr((entry.name, entry.parameters)).encode()))
    wrong = []
    for _ in range(CALLS):
        types = concrete(entry.parameters, rng)
        texts = [row_argument(entry.name, position, type_, rng) for position, type_ in enumerate(types)]
        names = ["a", "b"][: len(entry.returns(types))]
        row = " || ".join(f"COALESCE('<' || {name}::text || '>', '~')" for name in names)
        call = f"{entry.name}({', '.join(map(literal, texts, types))})"
        rows = f"{call} WITH ORDINALITY AS f({', '.join(names)}, n)"
        (theirs,) = judge(
            judging, [f"(SELECT COALESCE(string_agg('(' || {row} || ')', '' ORDER BY n), '') FROM {rows})"]
        )
        ours = rows_of(entry, types, texts)
        if ours != theirs:
            wrong.append(f"{call}: kpg {ours}, PostgreSQL {theirs}")
    assert not wrong, f"{len(wrong)} of {CALLS}\n" + "\n".join(wrong[:10])


def test_workers_compute_functions_of_rows():
    with kpg.open(workers=2) as db:
        db.sql("CREATE TABLE t (k INT)")
        db.sql("INSERT INTO t VALUES (2), (NULL), (1)")
        rows = db.sql("SELECT k, g, n FROM t, generate_series(5, 4 + k) WITH ORDINALITY AS f(g, n)").rows()
        assert sorted(rows) == [(1, 5, 1), (2, 5, 1), (2, 6, 2)]
        assert sorted(db.sql("SELECT x FROM unnest(ARRAY['b', NULL, 'a']) x WHERE x > 'a'").rows()) == [("b",)]


def typical(parameter: SqlType, rng: random.Random) -> SqlType:
    """Return a type that fits a parameter."""
    if parameter.name.startswith("any"):
        return rng.choice([INTEGER, BIGINT, DOUBLE, TEXT])
    return numeric(6, 2) if parameter == NUMERIC else parameter


def aggregate_text(name: str, types: list[SqlType], ordered: bool) -> str:
    """Return a call of an aggregate as SQL text."""
    shown_arguments = [argument(type_) for type_ in types]
    if not ordered:
        return f"{name}({', '.join(shown_arguments) or '*'})"
    *direct, last = shown_arguments
    return f"{name}({', '.join(direct)}) WITHIN GROUP (ORDER BY {last})"


def test_aggregates_resolve_as_in_postgresql(judging):
    rng = random.Random(12)
    calls = []
    for entries in AGGREGATES.values():
        for entry in entries:
            for _ in range(8):
                types = [rng.choice(TYPES) if rng.random() < 0.6 else typical(p, rng) for p in entry.parameters]
                if not (entry.name in OF_ARRAYS and any(type_.element for type_ in types)):
                    calls.append((entry, types))
    theirs = judge(judging, [f"(SELECT pg_typeof({aggregate_text(e.name, t, e.ordered)}))" for e, t in calls])
    wrong = []
    for (entry, types), outcome in zip(calls, theirs, strict=True):
        try:
            resolution = resolve_aggregate(entry.name, types)
            ours = Outcome(shown(replace(resolution.function.result_type(resolution.argument_types), length=None)))
        except KpgError as error:
            ours = Outcome(None, error.sqlstate)
        if ours != outcome and not (UNKNOWN in types and "42725" in (ours.state, outcome.state)):
            wrong.append(f"{aggregate_text(entry.name, types, entry.ordered)}: kpg {ours}, PostgreSQL {outcome}")
    assert not wrong, f"{len(wrong)} of {len(calls)}\n" + "\n".join(wrong[:30])
