"""Parameters of a statement as constants: each Python value has the type that a literal of it would have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID as UuidValue

from kpg.columns.interval import Interval
from kpg.errors import TypeMismatch
from kpg.sql.functions.cast_rules import common_type
from kpg.sql.functions.sql_literals import UntypedParameter, number_literal, read_literal
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.relational.scalars import Constant
from kpg.sql.sql_types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    UUID,
    SqlType,
    array_of,
)


@dataclass(frozen=True, slots=True)
class TypedParameter:
    """A parameter with a type of its own, instead of that of its Python value."""

    value: Any
    type: SqlType


def parameter_constant(value: Any, span: Span | None) -> Constant:
    """Return the constant that a parameter is. A string has no type until its place gives it one, as a literal."""
    constant, type_ = typed_value(value, span)
    return Constant(constant, type=type_, span=span)


def typed_value(value: Any, span: Span | None) -> tuple[Any, SqlType]:
    """Return a value with its type."""
    if isinstance(value, TypedParameter):
        return value.value, value.type
    if value is None or isinstance(value, (str, UntypedParameter)):
        return value, UNKNOWN
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return signed_number(str(value) if isinstance(value, int) else f"{value:f}")
    if isinstance(value, datetime):
        return value, TIMESTAMP if value.tzinfo is None else TIMESTAMPTZ
    if isinstance(value, timedelta):
        return Interval.of(value), INTERVAL
    kinds = {
        bool: BOOLEAN, float: DOUBLE, bytes: BYTEA, date: DATE, time: TIME, UuidValue: UUID, Interval: INTERVAL,
    }  # fmt: skip
    for kind, type_ in kinds.items():
        if isinstance(value, kind):
            return value, type_
    if isinstance(value, dict):
        return read_literal(json.dumps(value), JSONB)
    if isinstance(value, (list, tuple)):
        return array_value(value, span)
    what = f"a parameter cannot be a {type(value).__name__}"
    raise sql_failure(TypeMismatch, what, span, "42804", hint="Pass a number, string, date, list or dict.")


def signed_number(text: str) -> tuple[Any, SqlType]:
    """Return a number with or without a minus sign, with the type of its literal."""
    if not text.startswith("-"):
        return number_literal(text)
    value, type_ = number_literal(text[1:])
    fitting = {2**31: INTEGER, 2**63: BIGINT}  # the least integer of a type is one beyond its greatest
    if "." not in text and value in fitting:
        return -int(value), fitting[int(value)]
    return value.copy_negate() if isinstance(value, Decimal) else -value, type_  # - rounds to 28 digits


def array_value(values: Sequence[Any], span: Span | None) -> tuple[Any, SqlType]:
    """Return a list as an array of the common type of its elements."""
    typed = [typed_value(value, span) for value in values]
    element = common_type([type_ for _, type_ in typed], "ARRAY")
    elements = [read_literal(v, element)[0] if type_ == UNKNOWN else v for v, type_ in typed]
    return tuple(elements), array_of(element)
