"""Compile terms and conditions to expressions over columns.

Integers are checked: a result beyond 64 bits, a division by zero and a negative unsigned fail their row. Division and
remainder round towards zero, as in Soufflé. To add a functor, see kpg/query/ir/functors.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kpg.columns.expression import Expression
from kpg.columns.functions import coalesce, col, lit, max_of, min_of, udf, when
from kpg.columns.symbols import Symbols
from kpg.errors import KpgError, Overflow
from kpg.query.ir.literals import COMPARE, Comparison, Test
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm

BIT_OPERATIONS = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}
POSIX_CLASS = re.compile(r"\[:([a-z]+):\]")
POSIX_CLASSES = {
    "digit": "0-9", "alpha": "A-Za-z", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "xdigit": "0-9A-Fa-f", "word": r"\w", "blank": r" \t", "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip
TYPES: dict[Kind, type] = {"number": int, "unsigned": int, "float": float, "symbol": str, "bool": bool}


class TermCompiler:
    """Compiles the terms of a rule; `names` gives the column of each variable."""

    def __init__(self, names: Mapping[str, str], symbols: Symbols, kinds: Mapping[str, Kind]) -> None:
        self.names = names
        self.symbols = symbols
        self.kinds = kinds

    def expression(self, term: Term) -> Expression:
        """Return a term as an expression."""
        match term:
            case VariableTerm():
                return col(self.names[term.name])
            case ConstantTerm():
                return lit(term.value)
            case CallTerm():
                result = self.call(term)
                can_be_negative = term.kind == "unsigned" and term.functor in ("-", "neg", "to_unsigned")
                return when(result >= 0, result).otherwise(None).not_null() if can_be_negative else result
        raise KpgError(f"no value for {term!r}")

    def condition(self, condition: Comparison | Test) -> Expression:
        """Return a comparison or test as a boolean expression."""
        if isinstance(condition, Test):
            left, right = map(self.expression, condition.arguments)
            result = (
                right.str.contains(left) if condition.name == "contains" else udf(matches, returns=bool)(left, right)
            )
            return result if condition.positive else ~result
        left, right = self.expression(condition.left), self.expression(condition.right)
        compared: Expression = COMPARE[condition.op](left, right)
        return compared

    def kind(self, term: Term) -> Kind:
        """Return the kind of a term."""
        if isinstance(term, VariableTerm):
            return self.kinds[term.name]
        assert isinstance(term, (ConstantTerm, CallTerm)) and term.kind is not None
        return term.kind

    def call(self, term: CallTerm) -> Expression:
        """Return a call of a functor as an expression."""
        arguments = [self.expression(argument) for argument in term.arguments]
        name = term.functor
        if name in CONVERSIONS:
            return CONVERSIONS[name](arguments[0], self.kind(term.arguments[0]))
        if name == "ord":
            return self.ord(arguments[0], self.kind(term.arguments[0]))
        if name in ("/", "%", "^") and term.kind == "float":
            return udf(np.power, returns=float)(*arguments) if name == "^" else arguments[0] / arguments[1]
        return FUNCTIONS[name](*arguments)

    def ord(self, value: Expression, kind: Kind) -> Expression:
        """Return the id of a symbol; a number is its own."""
        if kind != "symbol":
            return value if kind != "float" else to_number(value, kind)
        symbols = self.symbols
        return udf(lambda texts: symbols.intern([str(text) for text in texts]), returns=int)(value)


def divide(a: Expression, b: Expression) -> Expression:
    """Divide integers, rounded towards zero."""
    quotient = a.abs() // b.abs()
    return when((a < 0) == (b < 0), quotient).otherwise(-quotient)


def remainder(a: Expression, b: Expression) -> Expression:
    """Return the remainder of division towards zero; it has the sign of the dividend."""
    left = a.abs() % b.abs()
    return when(a < 0, -left).otherwise(left)


def power(a: Any, b: Any) -> Any:
    """Raise integers to integer powers; a negative exponent rounds the result towards zero."""
    about = np.power(a.astype(np.float64), b.astype(np.float64))
    if not np.all(np.abs(about) < 2.0**63):
        raise Overflow("a power does not fit 64 bits")
    return np.where(b >= 0, np.power(a, np.maximum(b, 0)), about.astype(np.int64))


def shift(left: bool) -> Callable[[Any, Any], Any]:
    """Return a function that shifts bits to the left or right, by the count modulo 64."""
    return lambda a, b: np.left_shift(a, b & 63) if left else np.right_shift(a, b & 63)


def substring(text: Expression, start: Expression, length: Expression) -> Expression:
    """Return a part of a string: empty if `start` is outside the string, the rest of it if `length` is negative."""
    inside = (start >= 0) & (start <= text.str.length())
    first = max_of(start, 0)
    rest = when(length < 0, text.str.length()).otherwise(length)
    return when(inside, text.str.substring(first, rest)).otherwise("")


def matches(patterns: Any, texts: Any) -> Any:
    """Return whether each pattern matches its whole text; an invalid regular expression matches nothing."""
    return np.array([match_one(str(pattern), str(text)) for pattern, text in zip(patterns, texts, strict=True)], bool)


def match_one(pattern: str, text: str) -> bool:
    try:
        return (
            re.fullmatch(POSIX_CLASS.sub(lambda match: POSIX_CLASSES.get(match[1], match[0]), pattern), text)
            is not None
        )
    except (re.error, RecursionError, OverflowError):
        return False


def to_number(value: Expression, kind: Kind) -> Expression:
    """Convert any value to an integer: a float is truncated, a symbol is parsed."""
    if kind == "float":
        return udf(truncate, returns=int)(value)
    return value.cast("int64") if kind == "symbol" else value


def truncate(values: Any) -> Any:
    """Truncate floats to integers."""
    if not np.all(np.abs(values) < 2.0**63):
        raise Overflow("a float does not fit an integer of 64 bits")
    return values.astype(np.int64)


def to_float(value: Expression, kind: Kind) -> Expression:
    """Convert any value to a float."""
    return value if kind == "float" else value.cast("float64")


def to_string(value: Expression, kind: Kind) -> Expression:
    """Convert any value to text; floats have six digits after the point."""
    if kind == "float":
        return udf(lambda values: [f"{value:f}" for value in values], returns=str)(value)
    return value if kind == "symbol" else value.cast("string")


def truth(condition: Expression) -> Expression:
    """Convert a condition to 1 or 0."""
    return when(coalesce(condition, False), 1).otherwise(0)


CONVERSIONS: dict[str, Callable[[Expression, Kind], Expression]] = {
    "to_number": to_number,
    "to_unsigned": to_number,
    "to_float": to_float,
    "to_string": to_string,
}

FUNCTIONS: dict[str, Callable[..., Expression]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "%": remainder,
    "^": lambda a, b: udf(power, returns=int)(a, b),
    "neg": lambda a: -a,
    **{
        name: lambda a, b, function=function: udf(function, returns=int)(a, b)
        for name, function in BIT_OPERATIONS.items()
    },
    "bshl": lambda a, b: udf(shift(True), returns=int)(a, b),
    "bshr": lambda a, b: udf(shift(False), returns=int)(a, b),
    "bnot": lambda a: udf(np.invert, returns=int)(a),
    "land": lambda a, b: truth((a != 0) & (b != 0)),
    "lor": lambda a, b: truth((a != 0) | (b != 0)),
    "lxor": lambda a, b: truth((a != 0) != (b != 0)),
    "lnot": lambda a: truth(a == 0),
    "min": min_of,
    "max": max_of,
    "cat": lambda first, *rest: first.str.concat(*rest) if rest else first,
    "strlen": lambda text: text.str.length(),
    "substr": substring,
}
