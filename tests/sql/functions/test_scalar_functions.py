"""Every scalar function and operator of the tables has PostgreSQL's value or failure for every row."""

from __future__ import annotations

import math
import random
import zlib
from decimal import Decimal, InvalidOperation

import pytest

from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.function import Function
from kpg.sql.functions.function_tables import SCALAR_FUNCTIONS
from kpg.sql.functions.resolve import argument_types_of
from kpg.sql.functions.sql_literals import read_literal
from kpg.sql.sql_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TEXT,
    SqlType,
    array_of,
    char,
    numeric,
)
from tests.sql.functions.argument_values import value_of
from tests.sql.functions.call_text import call_text, meaningful
from tests.sql.functions.judged import TRY_ALL, Outcome, compute, judge, literal

ROWS = 24  # of each call
NUMERIC_TYPES = (numeric(6, 2), numeric(4, 0), numeric(12, 5), numeric(25, 3))
ENTRIES = [
    pytest.param(entry, id=f"{entry.name}({', '.join(str(p) for p in entry.parameters)})")
    for entries in SCALAR_FUNCTIONS.values()
    for entry in entries
    if not entry.volatile and not entry.stable
]


@pytest.fixture(scope="module")
def judging(postgres):
    """PostgreSQL with the function that evaluates expressions."""
    postgres.rows("SET search_path = test, pg_catalog")
    postgres.sql(TRY_ALL)
    return postgres


def concrete_types(entry: Function, rng: random.Random) -> list[SqlType]:
    """Return types of arguments that resolve to an entry."""
    count = len(entry.parameters) + (rng.randrange(3) if entry.variadic else 0)
    parameters = (entry.parameters + entry.parameters[-1:] * 3)[:count]
    anything = rng.choice([INTEGER, TEXT, DOUBLE, DATE, BOOLEAN, BIGINT])
    chosen = []
    for parameter in parameters:
        match parameter.name:
            case "numeric" if parameter == NUMERIC:
                chosen.append(rng.choice(NUMERIC_TYPES))
            case "anyelement" | "anycompatible":
                chosen.append(anything)
            case "anyarray":
                chosen.append(array_of(anything))
            case "any" | "anynonarray":
                chosen.append(rng.choice([INTEGER, DATE, BOOLEAN, DOUBLE] + ([TEXT] if entry.variadic else [])))
            case "character":
                chosen.append(char(rng.choice([3, 8])))
            case _:
                chosen.append(parameter)
    return chosen


def agree(ours: Outcome, theirs: Outcome, result: SqlType, entry: Function) -> bool:
    """Return whether both outcomes are the same, up to rounding where a difference is listed."""
    if ours == theirs:
        return True
    if ours.state == "22003" and theirs.shown is not None:  # no nullable bigint or numeric has it
        limit = 10 ** ((result.precision or 0) - (result.scale or 0))
        return theirs.shown == str(-(2**63)) or (result.name == "numeric" and abs(Decimal(theirs.shown)) >= limit)
    if ours.state == "22008" and theirs.shown is not None:  # kpg has the years 1 to 9999
        return theirs.shown.endswith(("infinity", "BC")) or theirs.shown[4:5].isdigit()
    if ours.state or theirs.state or ours.shown is None or theirs.shown is None:
        return False
    if result.name in ("real", "double precision"):
        a, b = float(ours.shown), float(theirs.shown)
        return math.isclose(a, b, rel_tol=1e-12 if result.name != "real" else 1e-6, abs_tol=1e-300)
    if result.name == "numeric" and entry.name in ROUNDED:
        try:
            a, b = Decimal(ours.shown), Decimal(theirs.shown)
        except InvalidOperation:
            return False
        return abs(a - b) <= max(Decimal(1).scaleb(a.as_tuple().exponent), abs(b) * Decimal("1e-15"))
    return False


# Results of these have another number of digits than PostgreSQL's: a listed difference.
ROUNDED = frozenset({
    "/", "power", "pow", "^", "sqrt", "exp", "ln", "log", "log10", "extract", "round", "trunc", "greatest", "least",
    "nullif", "%", "mod", "gcd", "lcm",
})  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_function_computes_what_postgresql_computes(judging, entry):
    rng = random.Random(zlib.crc32(repr((entry.name, entry.parameters)).encode()))
    for constants in (False, True):
        types = concrete_types(entry, rng)
        rows = [[meaningful(entry, p, rng) or value_of(t, rng) for p, t in enumerate(types)] for _ in range(ROWS)]
        if constants:
            rows = [[*row[:1], *rows[0][1:]] for row in rows]
        check(judging, entry, types, rows, [constants and position > 0 for position in range(len(types))])


def check(judging, entry: Function, types: list[SqlType], rows: list[list[str | None]], constant: list[bool]) -> None:
    """Compare the outcomes of all rows."""
    resolved = argument_types_of((entry.parameters + entry.parameters[-1:] * 3)[: len(types)], types)
    known = [read_literal(rows[0][p], types[p])[0] if constant[p] else None for p in range(len(types))]
    result = entry.result_type(resolved, known)
    texts = [call_text(entry.name, [literal(v, t) for v, t in zip(row, types, strict=True)]) for row in rows]
    ours = compute(entry.build, resolved, result, rows, constant)
    wrong = [
        f"{text}: kpg {a}, PostgreSQL {b}"
        for text, a, b in zip(texts, ours, judge(judging, texts), strict=True)
        if not agree(a, b, result, entry)
    ]
    assert not wrong, f"{len(wrong)} of {ROWS}, constants: {any(constant)}\n" + "\n".join(wrong[:12])
