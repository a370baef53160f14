"""Expressions paired with their meaning for one row in plain Python, and strategies that build both together.

A meaning is a function from a row (a dict) to a value, None for null; or it raises Fails. Whether an expression may be
null does not depend on its rows: only in a nullable one is -2**63 out of range.
"""

import datetime
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kpg.columns.expression import Expression
from kpg.columns.functions import coalesce, col, lit, max_of, min_of, udf, when
from kpg.columns.schema import Schema
from tests.columns.generated_rows import DATES, FLOATS, STRINGS, values

LOWEST = -(2**63)


class Fails(Exception):
    """The row has no value."""


@dataclass(frozen=True)
class Term:
    written: Expression
    nullable: bool
    means: Callable[[dict], Any]


SCHEMA = Schema.of(
    {
        "i": int,
        "j": "int64?",
        "k": int,
        "f": float,
        "g": "float64?",
        "p": bool,
        "q": "bool?",
        "s": str,
        "t": "string?",
        "d": "date?",
        "m": "decimal(9,2)",
        "n": "decimal(6,4)?",
    }
)
LOWEST_TOO = st.sampled_from([LOWEST, LOWEST + 1])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            name: values(type_) | LOWEST_TOO if name in "ik" else values(type_)
            for name, type_ in zip(SCHEMA.names, SCHEMA.types, strict=True)
        }
    ),
    max_size=6,
)


def column(name: str) -> Term:
    return Term(col(name), SCHEMA.type_of(name).nullable, lambda row: row[name])


def constant(value: Any) -> Term:
    return Term(lit(value), False, lambda row: value)


def strict(build: Callable, means: Callable, *terms: Term) -> Term:
    """A function that is null where an argument is, and fails where one does."""

    def run(row: dict) -> Any:
        given = [term.means(row) for term in terms]
        return None if None in given else means(*given)

    return Term(build(*(term.written for term in terms)), any(term.nullable for term in terms), run)


def in_range(term: Term) -> Term:
    """An int64, or failure; a value of another type as it is."""

    def run(row: dict) -> Any:
        value = term.means(row)
        if type(value) is int and not LOWEST + term.nullable <= value < 2**63:
            raise Fails
        return value

    return Term(term.written, term.nullable, run)


def nonzero(b: Any) -> Any:
    if b == 0:
        raise Fails
    return b


def in_order(value: Any) -> Any:
    """A key that sorts as kpg does: NaN is one value above all others."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def pick(choose: Callable, build: Callable, *terms: Term) -> Term:
    """min_of or max_of, argument by argument as they are folded."""
    first, *others = terms
    for other in others:
        first = in_range(strict(lambda *_: None, lambda a, b: choose(a, b, key=in_order), first, other))
    return Term(build(*(term.written for term in terms)), first.nullable, first.means)


def choice(condition: Term, yes: Term, no: Term) -> Term:
    nullable = yes.nullable or no.nullable

    def run(row: dict) -> Any:
        chosen = yes if condition.means(row) else no
        value = chosen.means(row)
        if nullable and value == LOWEST and isinstance(value, int):
            raise Fails
        return value

    return Term(when(condition.written, yes.written).otherwise(no.written), nullable, run)


def first_present(*terms: Term) -> Term:
    def run(row: dict) -> Any:
        for term in terms:
            value = term.means(row)
            if value is not None:
                return value
        return None

    return Term(coalesce(*(term.written for term in terms)), all(term.nullable for term in terms), run)


def junction(a: Term, b: Term, decisive: bool) -> Term:
    def run(row: dict) -> Any:
        seen: list[Any] = []
        for term in (a, b):
            try:
                seen.append(term.means(row))
            except Fails:
                seen.append(Fails)
        if decisive in [value for value in seen if isinstance(value, bool)]:
            return decisive
        if Fails in seen:
            raise Fails
        return None if None in seen else not decisive

    written = a.written | b.written if decisive else a.written & b.written
    return Term(written, a.nullable or b.nullable, run)


def truncated(value: float) -> int:
    if not math.isfinite(value):
        raise Fails
    return math.trunc(value)


def substring(text: str, start: int, length: int) -> str:
    first = max(start + len(text), 0) if start < 0 else start
    return text[first : first + max(length, 0)]


COMPARE = {
    "==": (lambda a, b: a == b),
    "!=": (lambda a, b: a != b),
    "<": (lambda a, b: a < b),
    "<=": (lambda a, b: a <= b),
    ">": (lambda a, b: a > b),
    ">=": (lambda a, b: a >= b),
}


def comparisons(operand: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    def build(op: str, a: Term, b: Term) -> Term:
        function = COMPARE[op]
        return strict(function, lambda x, y: function(in_order(x), in_order(y)), a, b)

    return st.builds(build, st.sampled_from(sorted(COMPARE)), operand, operand)


SMALL = st.integers(-3, 3) | st.sampled_from([2**62, LOWEST, 2**63 - 1])

INT_LEAVES = st.sampled_from("ijk").map(column) | SMALL.map(constant)
FLOAT_LEAVES = st.sampled_from("fg").map(column) | FLOATS.map(constant)
TEXT_LEAVES = st.sampled_from("st").map(column) | STRINGS.map(constant)
DATE_LEAVES = st.just(column("d")) | DATES.map(constant)
DECIMAL_LEAVES = st.sampled_from("mn").map(column) | st.sampled_from(
    [Decimal("1.5"), Decimal("-0.25"), Decimal(3)]
).map(constant)


PATTERNS = st.sampled_from(["a", "^.", "[^a]+", "(?i)B$", ""])


def natural_power(base: int, exponent: int) -> int:
    if exponent < 0 or (abs(base) > 1 and exponent > 64):
        raise Fails
    return base ** (exponent if abs(base) > 1 else min(exponent, 2 + exponent % 2))


def real_power(base: float, exponent: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(base) ** np.float64(exponent))


def as_filled(term: Term) -> Term:
    """fill_null is coalesce with one other value."""
    call = term.written
    return Term(call.arguments[0].fill_null(call.arguments[1]), term.nullable, term.means)


@cache
def int_terms(depth: int) -> st.SearchStrategy[Term]:
    if depth == 0:
        return INT_LEAVES
    a = int_terms(depth - 1)
    text, real = text_terms(depth - 1), float_terms(depth - 1)
    pairs = [
        (lambda x, y: x + y, lambda x, y: x + y),
        (lambda x, y: x - y, lambda x, y: x - y),
        (lambda x, y: x * y, lambda x, y: x * y),
        (lambda x, y: x // y, lambda x, y: x // nonzero(y)),
        (lambda x, y: x % y, lambda x, y: x % nonzero(y)),
        (udf(lambda x, y: x ^ y, returns=int), lambda x, y: x ^ y),
    ]
    binary = st.builds(lambda pair, x, y: in_range(strict(*pair, x, y)), st.sampled_from(pairs), a, a)
    return st.one_of(
        binary,
        binary,
        INT_LEAVES,
        st.builds(lambda x: in_range(strict(lambda v: -v, lambda v: -v, x)), a),
        st.builds(lambda x: in_range(strict(lambda v: v.abs(), abs, x)), a),
        st.builds(lambda *terms: pick(min, min_of, *terms), a, a, a),
        st.builds(lambda *terms: pick(max, max_of, *terms), a, a),
        st.builds(choice, bool_terms(depth - 1), a, a),
        st.builds(first_present, a, a),
        st.builds(lambda x: strict(lambda v: v.str.length(), len, x), text),
        st.builds(lambda x: strict(lambda v: v.dt.year(), lambda v: v.year, x), DATE_LEAVES),
        st.builds(lambda x: strict(lambda v: v.dt.month(), lambda v: v.month, x), DATE_LEAVES),
        st.builds(lambda x: strict(lambda v: v.dt.day(), lambda v: v.day, x), DATE_LEAVES),
        st.builds(lambda x: strict(lambda v: v.dt.weekday(), lambda v: v.weekday(), x), DATE_LEAVES),
        st.builds(lambda x, y: strict(lambda v, w: v - w, lambda v, w: (v - w).days, x, y), DATE_LEAVES, DATE_LEAVES),
        st.builds(lambda x: in_range(strict(lambda v: v.cast(int), truncated, x)), real),
        st.builds(lambda x, y: in_range(strict(lambda v, w: v**w, natural_power, x, y)), a, INT_LEAVES),
        st.builds(lambda x, y: first_present(x, constant(y)), a, SMALL).map(as_filled),
    )


@cache
def float_terms(depth: int) -> st.SearchStrategy[Term]:
    if depth == 0:
        return FLOAT_LEAVES
    a, whole = float_terms(depth - 1), int_terms(depth - 1)
    return st.one_of(
        FLOAT_LEAVES,
        st.builds(lambda x, y: strict(lambda v, w: v + w, lambda v, w: v + w, x, y), a, a),
        st.builds(lambda x, y: strict(lambda v, w: v - w, lambda v, w: v - float(w), x, y), a, whole),
        st.builds(lambda x, y: strict(lambda v, w: v * w, lambda v, w: v * w, x, y), a, a),
        st.builds(lambda x, y: strict(lambda v, w: v / w, lambda v, w: v / nonzero(w), x, y), a, a),
        st.builds(lambda x, y: strict(lambda v, w: v / w, lambda v, w: float(v) / nonzero(w), x, y), whole, whole),
        st.builds(lambda x: strict(lambda v: v.cast(float), float, x), whole),
        st.builds(lambda x: strict(lambda v: -v, lambda v: -v, x), a),
        st.builds(lambda x: strict(lambda v: v.abs(), abs, x), a),
        st.builds(choice, bool_terms(depth - 1), a, a),
        st.builds(first_present, a, a),
        st.builds(lambda *terms: pick(max, max_of, *terms), a, a),
        st.builds(lambda x, y: strict(lambda v, w: v**w, real_power, x, y), a, FLOAT_LEAVES),
        st.builds(lambda x, n: strict(lambda v: v.round(n), lambda v: float(np.round(v, n)), x), a, st.integers(-1, 2)),
    )


@cache
def text_terms(depth: int) -> st.SearchStrategy[Term]:
    if depth == 0:
        return TEXT_LEAVES
    a = text_terms(depth - 1)
    positions = st.integers(-3, 3)
    return st.one_of(
        TEXT_LEAVES,
        st.builds(lambda x: strict(lambda v: v.str.lower(), str.lower, x), a),
        st.builds(lambda x: strict(lambda v: v.str.upper(), str.upper, x), a),
        st.builds(lambda x: strict(lambda v: v.str.strip(), str.strip, x), a),
        st.builds(lambda x, y: strict(lambda v, w: v + w, lambda v, w: v + w, x, y), a, a),
        st.builds(
            lambda *xs: strict(lambda v, *ws: v.str.concat(*ws), lambda *vs: "".join(vs), *xs), a, TEXT_LEAVES, a
        ),
        st.builds(
            lambda x, start, length: strict(
                lambda v: v.str.substring(start, length), lambda v: substring(v, start, length), x
            ),
            a,
            positions,
            positions,
        ),
        st.builds(
            lambda x, y: strict(lambda v, w: v.str.replace(w, "_"), lambda v, w: v.replace(w, "_"), x, y),
            a,
            TEXT_LEAVES,
        ),
        st.builds(
            lambda x, p: strict(lambda v: v.str.replace_regex(p, r"<\g<0>>"), lambda v: re.sub(p, r"<\g<0>>", v), x),
            a,
            PATTERNS,
        ),
        st.builds(choice, bool_terms(depth - 1), a, a),
        st.builds(first_present, a, a),
        st.builds(lambda *terms: pick(min, min_of, *terms), a, a),
        st.builds(lambda x: strict(lambda v: v.cast(str), str, x), int_terms(depth - 1)),
        st.builds(lambda x: strict(lambda v: v.cast(str), datetime.date.isoformat, x), DATE_LEAVES),
    )


@cache
def bool_terms(depth: int) -> st.SearchStrategy[Term]:
    leaves = st.sampled_from("pq").map(column) | st.booleans().map(constant)
    if depth == 0:
        return leaves
    a, text = bool_terms(depth - 1), text_terms(depth - 1)
    return st.one_of(
        leaves,
        comparisons(int_terms(depth - 1)),
        comparisons(float_terms(depth - 1)),
        comparisons(text),
        comparisons(DATE_LEAVES),
        comparisons(DECIMAL_LEAVES),
        comparisons(a),
        st.builds(junction, a, a, st.booleans()),
        st.builds(lambda x: strict(lambda v: ~v, lambda v: not v, x), a),
        st.builds(choice, a, a, a),
        st.builds(lambda x: Term(x.written.is_null(), False, lambda row: x.means(row) is None), int_terms(depth - 1)),
        st.builds(
            lambda x, few: strict(lambda v: v.is_in(few), lambda v: v in few, x),
            int_terms(depth - 1),
            st.lists(SMALL, max_size=10),
        ),
        st.builds(
            lambda x, few: strict(lambda v: v.is_in(few), lambda v: v in few, x), text, st.lists(STRINGS, max_size=3)
        ),
        *(
            st.builds(lambda x, y, b=build, m=means: strict(b, m, x, y), text, TEXT_LEAVES)
            for build, means in (
                (lambda v, w: v.str.contains(w), lambda v, w: w in v),
                (lambda v, w: v.str.starts_with(w), str.startswith),
                (lambda v, w: v.str.ends_with(w), str.endswith),
            )
        ),
        st.builds(
            lambda x, p: strict(lambda v: v.str.matches(p), lambda v: re.search(p, v) is not None, x), text, PATTERNS
        ),
    )


TERMS = {"int64": int_terms(2), "float64": float_terms(2), "string": text_terms(2), "bool": bool_terms(2)}
