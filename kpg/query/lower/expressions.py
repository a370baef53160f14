"""Compile terms and conditions to expressions over columns.

Integers are checked: a result beyond 64 bits, a division by zero and a negative unsigned fail their row. Division and
remainder round towards zero, as in Soufflé. To add a functor, see kpg/query/ir/functors.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from kpg.columns.expression import Expression, FunctionCall, Written
from kpg.columns.expression_origin import ExpressionOrigin
from kpg.columns.functions import coalesce, col, max_of, min_of, udf, when
from kpg.columns.number_functions import parse_number
from kpg.columns.schema import INT64, UINT64, Type
from kpg.errors import DataError, KpgError
from kpg.query.ir.constructors import IS_TAGGED, USER
from kpg.query.ir.fallible_terms import FAILS, can_fail
from kpg.query.ir.literals import COMPARE, Comparison, Test
from kpg.query.ir.show import show_term
from kpg.query.ir.terms import CallTerm, ConstantTerm, Kind, Term, VariableTerm, variables
from kpg.query.lower.ranges import in_ranges
from kpg.query.lower.value_expressions import (
    Functions,
    column_type,
    constant,
    structural,
    symbol_number,
    tagged,
    user_call,
)
from kpg.query.source_text import Position

LOGIC = ("land", "lor", "lxor", "lnot")
POSIX_CLASS = re.compile(r"\[:([a-z]+):\]")
POSIX_CLASSES = {
    "digit": "0-9", "alpha": "A-Za-z", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s",
    "xdigit": "0-9A-Fa-f", "word": r"\w", "blank": r" \t", "punct": r"!-/:-@\[-`{-~",
}  # fmt: skip


class TermCompiler:
    """Compiles the terms of a rule; `names` gives the column of each variable.

    `rule` identifies the rule in its errors, which show the variables of the failing expression, or all variables.
    """

    def __init__(
        self,
        names: Mapping[str, str],
        kinds: Mapping[str, Kind],
        functions: Functions,
        is_single_worker: bool,
        rule: str = "",
        show_all: bool = False,
    ) -> None:
        self.functions = functions
        self.names = names
        self.is_single_worker = is_single_worker
        self.kinds = kinds
        self.rule = rule
        self.show_all = show_all

    def expression(self, term: Term) -> Expression:
        """Return a term as an expression."""
        match term:
            case VariableTerm():
                return col(self.names[term.name])
            case ConstantTerm():
                return constant(term)
            case CallTerm():
                result = self.call(term)
                return Written(result, self.origin(term)) if can_fail(term) else result
        raise KpgError(f"no value for {term!r}")

    def origin(self, term: CallTerm) -> ExpressionOrigin:
        """Return the source text of a call, for its errors."""
        if term.span.source.text:
            return self.origin_at(term.span, term.span.text(), term)
        return self.origin_at(term.at, show_term(term).removeprefix("(").removesuffix(")"), term)

    def origin_at(self, at: Position, text: str, term: Term) -> ExpressionOrigin:
        """Return the origin of errors in a term; it shows the variables of the term, or all variables."""
        names = self.names if self.show_all else [variable.name for variable in variables(term)]
        written = {VariableTerm(name).written: self.names[name] for name in names}
        shown = tuple((name, column) for name, column in written.items() if name[:1].isalpha() or name[:1] in "_?")
        where, excerpt = (str(at), at.excerpt()) if at.source.text else ("", "")
        return ExpressionOrigin(text, where, excerpt, shown, self.rule)

    def condition(self, condition: Comparison | Test) -> Expression:
        """Return a comparison or test as a boolean expression."""
        if isinstance(condition, Test) and condition.name.startswith(IS_TAGGED):
            return tagged(condition.name, self.expression(condition.arguments[0]))
        if isinstance(condition, Test) and condition.name == FAILS:
            first, *rest = [self.expression(term).fails() for term in condition.arguments]
            for other in rest:
                first = first | other
            return first
        if isinstance(condition, Test):
            left, right = map(self.expression, condition.arguments)
            if condition.name == "contains":
                result = right.str.contains(left)
            else:
                test = CallTerm(condition.name, condition.arguments, "bool", condition.at, condition.span)
                result = Written(udf(matches, returns=bool)(left, right), self.origin(test))
            return result if condition.positive else ~result
        for value, call in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(call, CallTerm) and call.functor == "range":  # of a bound value: is it in the range?
                inside = udf(in_ranges, returns=bool)(*map(self.expression, (value, *call.arguments)))
                return Written(inside, self.origin(call))
        left, right = self.expression(condition.left), self.expression(condition.right)
        compared: Expression = COMPARE[condition.op](left, right)
        return compared

    def together(self, conditions: Iterable[Comparison | Test], terms: Iterable[Term]) -> Expression:
        """Return whether all conditions hold; it fails if none is false and a condition or a term fails."""
        parts = [self.condition(condition) for condition in conditions]
        parts += [FunctionCall("succeeds", (self.expression(term),)) for term in terms]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part
        return whole

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
        assert term.kind is not None
        kinds = [self.kind(argument) for argument in term.arguments]
        built = structural(name, arguments, kinds, term.kind, self.is_single_worker)
        if built is not None:
            return built
        if name.startswith(USER):
            return user_call(name, arguments, term.kind, self.functions)
        if name in CONVERSIONS:
            return CONVERSIONS[name](arguments[0], self.kind(term.arguments[0]))
        if name == "ord":
            return self.ord(arguments[0], self.kind(term.arguments[0]))
        if name in ("/", "^") and term.kind == "float":
            return udf(float_power, returns=float)(*arguments) if name == "^" else arguments[0] / arguments[1]
        if name in ("/", "%") and term.kind == "unsigned":
            return arguments[0] // arguments[1] if name == "/" else arguments[0] % arguments[1]
        if name in LOGIC and term.kind == "unsigned":
            return FUNCTIONS[name](*arguments).cast(UINT64)
        return FUNCTIONS[name](*arguments)

    def ord(self, value: Expression, kind: Kind) -> Expression:
        """Return the id of a symbol or record; a number is its own."""
        if column_type(kind).is_symbolic:
            return symbol_number(value, self.is_single_worker)
        return to_number(value, kind)


def divide(a: Expression, b: Expression) -> Expression:
    """Divide integers, rounded towards zero."""
    quotient = a.abs() // b.abs()
    return when((a < 0) == (b < 0), quotient).otherwise(-quotient)


def remainder(a: Expression, b: Expression) -> Expression:
    """Return the remainder of division towards zero; it has the sign of the dividend."""
    left = a.abs() % b.abs()
    return when(a < 0, -left).otherwise(left)


def substring(text: Expression, start: Expression, length: Expression) -> Expression:
    """Return a part of a string: empty if `start` is outside the string, the rest of it if `length` is negative."""
    inside = (start >= 0) & (start <= text.str.length())
    first = max_of(start, 0)
    rest = when(length < 0, text.str.length()).otherwise(length)
    return when(inside, text.str.substring(first, rest)).otherwise("")


def matches(patterns: Any, texts: Any) -> Any:
    """Return whether each pattern matches its whole text; an invalid regular expression fails its row."""
    return np.array([match_one(str(pattern), str(text)) for pattern, text in zip(patterns, texts, strict=True)], bool)


def match_one(pattern: str, text: str) -> bool:
    """Return whether a pattern matches a whole text; raise DataError if it is no regular expression."""
    translated = POSIX_CLASS.sub(lambda match: POSIX_CLASSES.get(match[1], match[0]), pattern)
    try:
        return re.fullmatch(translated, text) is not None
    except (re.error, RecursionError, OverflowError) as error:
        raise DataError(f"{pattern[:60]!r} is not a regular expression: {error}") from None


def to_number(value: Expression, kind: Kind) -> Expression:
    """Convert any value to an integer: a float is truncated, a symbol is parsed."""
    return to_integer(value, kind, INT64)


def to_unsigned(value: Expression, kind: Kind) -> Expression:
    """Convert any value to an integer without a sign; a negative one fails its row."""
    return to_integer(value, kind, UINT64)


def to_integer(value: Expression, kind: Kind, target: Type) -> Expression:
    """Convert any value to an integer: a float is truncated, a symbol is parsed; what does not fit fails its row."""
    if kind == "symbol":
        return parse_number(value, target)
    return value if column_type(kind) == target else value.cast(target)


def to_float(value: Expression, kind: Kind) -> Expression:
    """Convert any value to a float."""
    return value if kind == "float" else value.cast("float64")


def to_string(value: Expression, kind: Kind) -> Expression:
    """Convert any value to text; floats have six digits after the point."""
    if kind == "float":
        return udf(six_digits, returns=str)(value)
    return value if kind == "symbol" else value.cast("string")


def float_power(base: Any, exponent: Any) -> Any:
    """Return powers of floats; one that is too large is infinite, and a root of a negative number is not a number."""
    with np.errstate(all="ignore"):
        return np.power(base, exponent)


def six_digits(values: Any) -> list[str]:
    """Return floats as text with six digits after the point."""
    return [f"{value:f}" for value in values]


def truth(condition: Expression) -> Expression:
    """Convert a condition to 1 or 0."""
    return when(coalesce(condition, False), 1).otherwise(0)


CONVERSIONS: dict[str, Callable[[Expression, Kind], Expression]] = {
    "to_number": to_number,
    "to_unsigned": to_unsigned,
    "to_float": to_float,
    "to_string": to_string,
}

FUNCTIONS: dict[str, Callable[..., Expression]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "%": remainder,
    "neg": lambda a: -a,
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
