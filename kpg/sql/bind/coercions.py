"""Coercions: a scalar as another type, by PostgreSQL's rules for the place where it stands.

A string constant has no type until its place gives it one; it is then read as a value of that type, so that a wrong
one is an error of the statement. Other scalars get a `Cast`, if the place allows the cast; numbers that are constants
become constants of the other type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from kpg.columns.pause_points import pause
from kpg.errors import Closed, KpgError, ProgramError, ResourceError, TypeMismatch
from kpg.sql.functions.cast_rules import NUMERIC, CastContext, can_cast, common_type, numeric_of
from kpg.sql.functions.resolve import resolve
from kpg.sql.functions.sql_literals import read_literal
from kpg.sql.functions.text_input import EXACT
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.relational.scalars import Cast, Constant, Scalar, ScalarCall
from kpg.sql.sql_types import BOOLEAN, INTEGER_LIMITS, TEXT, UNKNOWN, SqlType


@contextmanager
def located(span: Span | None) -> Iterator[None]:
    """Give errors that are raised within a position, unless they have one."""
    try:
        yield
    except (Closed, ResourceError):  # the statement was cancelled, or took too long, at a pause
        raise
    except KpgError as error:
        if isinstance(error, ProgramError) and error.line is not None:
            raise
        kind = type(error) if isinstance(error, ProgramError) else TypeMismatch
        state = error.sqlstate or "42804"
        raise sql_failure(kind, error.what, span, state, detail=error.detail, hint=error.hint) from None


def is_unknown(scalar: Scalar) -> bool:
    """Return whether a scalar is a constant that has no type yet."""
    return scalar.type == UNKNOWN


def coerce(scalar: Scalar, target: SqlType, context: CastContext = "implicit", span: Span | None = None) -> Scalar:
    """Return a scalar as another type; raise an error if the place does not allow the cast."""
    span = span or scalar.span
    if scalar.type == target:
        return scalar
    if isinstance(scalar, Constant) and is_unknown(scalar):
        with located(scalar.span or span):
            value, type_ = read_literal(scalar.value, target, context == "explicit")
        return Constant(value, type=type_, span=span)
    if not can_cast(scalar.type, target, context):
        what = f"cannot cast type {scalar.type} to {target}"
        raise sql_failure(TypeMismatch, what, span, "42846" if context == "explicit" else "42804")
    if target == NUMERIC:
        target = numeric_of(scalar.type)
    if scalar.type == target:
        return scalar
    if isinstance(scalar, Constant) and (folded := converted_constant(scalar, target)) is not None:
        return folded
    return Cast(scalar, context == "explicit", type=target, span=span)


def converted_constant(constant: Constant, target: SqlType) -> Constant | None:
    """Return a number or null as a constant of another type; None if that is a matter of the cast."""
    value = constant.value
    if value is None:
        return Constant(None, type=target, span=constant.span)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or not target.is_number:
        return None
    if target.is_integer:
        low, high = INTEGER_LIMITS[target.name]
        fits = isinstance(value, int) and low <= value <= high
        return Constant(value, type=target, span=constant.span) if fits else None
    if target.name == "double precision":
        return Constant(float(value), type=target, span=constant.span)
    if target.name == "numeric" and target.precision is not None:
        return scaled_constant(Decimal(value), target, constant.span)
    return None


def scaled_constant(value: Decimal, target: SqlType, span: Span | None) -> Constant | None:
    """Return an exact number with the scale of a type, None if it has to be rounded or does not fit."""
    scale = target.scale or 0
    _, digits, exponent = value.as_tuple()
    whole = len(digits) + int(exponent)
    if -int(exponent) > scale or whole > (target.precision or 0) - scale:
        return None
    return Constant(value.quantize(Decimal(1).scaleb(-scale), context=EXACT), type=target, span=span)


def as_boolean(scalar: Scalar, clause: str) -> Scalar:
    """Return a condition; anything but a boolean is an error."""
    if is_unknown(scalar):
        return coerce(scalar, BOOLEAN)
    if scalar.type != BOOLEAN:
        what = f"argument of {clause} must be type boolean, not type {scalar.type}"
        raise sql_failure(TypeMismatch, what, scalar.span, "42804")
    return scalar


def resolved(scalar: Scalar) -> Scalar:
    """Return a scalar with a type: a constant that has none becomes text."""
    return coerce(scalar, TEXT) if is_unknown(scalar) else scalar


def unified(scalars: Sequence[Scalar], what: str, span: Span | None = None) -> tuple[Scalar, ...]:
    """Return scalars as their common type, as CASE, COALESCE, VALUES and arrays have it."""
    with located(span or next((scalar.span for scalar in scalars if scalar.span is not None), None)):
        target = common_type([scalar.type for scalar in scalars], what)
    target = with_constants(target, scalars)
    coerced = []
    for scalar in scalars:
        pause()
        coerced.append(coerce(scalar, target))
    return tuple(coerced)


def with_constants(target: SqlType, scalars: Sequence[Scalar]) -> SqlType:
    """Return a numeric type with digits enough for the string constants among its values."""
    texts = [s for s in scalars if isinstance(s, Constant) and is_unknown(s) and s.value is not None]
    if target.name != "numeric" or not texts:
        return target
    with located(texts[0].span):
        types = [read_literal(text.value, NUMERIC)[1] for text in texts]
    return common_type([target, *types])


def function_call(name: str, arguments: Sequence[Scalar], span: Span | None) -> Scalar:
    """Return the call of the function or operator that PostgreSQL would choose for arguments."""
    with located(span):
        resolution = resolve(name, [argument.type for argument in arguments])
    cast = tuple(coerce(a, type_) for a, type_ in zip(arguments, resolution.argument_types, strict=True))
    constants: list[Any] = [a.value if isinstance(a, Constant) else None for a in cast]
    with located(span):
        result = resolution.function.result_type([argument.type for argument in cast], constants)
    return ScalarCall(resolution.function, cast, type=result, span=span)
