"""Casts: convert a value to another type. A row fails if the type has no such value; null stays null.

to int64     float64 and decimal lose their fraction (towards zero); bool is 0 or 1; string in decimal digits
to uint64    the same from 0 to 2**64 - 1
to float64   the nearest float                 to bool     int64: true unless zero; string: true or false
to decimal   rounded half away from zero from float64 (its first 15 digits) and decimal; from string exact or failed
to string    as Python prints it, dates and timestamps in ISO 8601, bool as true or false, binary read as UTF-8
to date      of a timestamp its day; string in ISO 8601       to timestamp   of a date its midnight UTC
to time      of a timestamp its time of day in UTC; string in ISO 8601
to timestamp_ntz   of a timestamp what clocks show in UTC; of a date its midnight; string in ISO 8601 without a zone
to interval, jsonb  from string

A cast concerns a pair of types, so all casts are in the table `_CASTS` below, and not in the files of the types.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final
from uuid import UUID

import numpy as np

from kpg.columns import floats
from kpg.columns.bound_nodes import (
    BindingScope,
    BoundNode,
    ConstantNode,
    PartialFunctionNode,
    TotalFunctionNode,
    as_bool,
    null_node,
)
from kpg.columns.coercion import as_float, coerce, int_to_float, refuse, unsigned_to_float
from kpg.columns.column_types.timestamp_type import DAY_MICROSECONDS
from kpg.columns.column_types.uint64_type import to_unsigned_lane
from kpg.columns.decimals import float_to_decimal, rescaled
from kpg.columns.expression import FunctionCall
from kpg.columns.interval import Interval
from kpg.columns.lane_values import NULL
from kpg.columns.overflow import Checked
from kpg.columns.schema import Type
from kpg.columns.text import PerValueNode
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import narrow_wide, truncate_wide

_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]+\s*")
_INT64_LIMIT: Final = 2.0**63  # the first float above int64


def cast(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind a cast."""
    (argument,) = arguments
    source = argument.type
    target: Type = call.options[0]
    type_ = target.optional(target.nullable or source.nullable)
    if isinstance(argument, ConstantNode) and argument.untyped:
        return null_node(target, scope)
    code = scope.code(f"the value cannot be cast to {target.optional(False)}", call)
    if source.kind == target.kind:
        return _same_kind(argument, type_, scope, code)
    convert = _CASTS.get((source.kind, target.kind))
    if convert is None:
        refuse(call, arguments, f"There is no cast from {source} to {target}.")
    return coerce(convert(argument, type_.optional(source.nullable), scope, code), type_, scope)


def _same_kind(argument: BoundNode, type_: Type, scope: BindingScope, code: int) -> BoundNode:
    if type_.kind != "decimal":
        return coerce(argument, type_, scope)
    return rescaled(argument, type_, code)


def _float_to_int(low: int, high: int, lane: Ints) -> Checked:
    values = np.trunc(floats.from_lane(lane))
    failed = ~((values >= -_INT64_LIMIT) & (values < _INT64_LIMIT))
    numbers = np.where(failed, 0.0, values).astype(np.int64)
    return numbers, failed | (numbers < low) | (numbers > high)


def _decimal_to_int(scale: int, lane: Ints) -> Ints:
    whole: Ints = np.sign(lane) * (np.abs(lane) // 10**scale)
    return whole


def _wide_to_int(scale: int, low: int, lane: Ints) -> Checked:
    numbers, unfit = narrow_wide(truncate_wide(lane, scale))
    return numbers, unfit | (numbers < low)


def _int_to_unsigned(lane: Ints) -> Checked:
    return lane ^ NULL, lane < 0


def _unsigned_to_int(lane: Ints) -> Checked:
    return lane ^ NULL, lane >= 0


def _float_to_unsigned(lane: Ints) -> Checked:
    values = np.trunc(floats.from_lane(lane))
    failed = ~((values >= 0.0) & (values < 2 * _INT64_LIMIT))
    return to_unsigned_lane(np.where(failed, 0.0, values).astype(np.uint64)), failed


def _unsigned_truth(lane: Ints) -> Ints:
    return as_bool(lane != NULL)


def _bool_to_unsigned(lane: Ints) -> Ints:
    return lane ^ NULL


def _truth(lane: Ints) -> Ints:
    return as_bool(lane != 0)


def _identity(lane: Ints) -> Ints:
    return lane


def _midnight(days: Ints) -> Ints:
    return days * DAY_MICROSECONDS


def _time_of_day(microseconds: Ints) -> Ints:
    return microseconds % DAY_MICROSECONDS


def _day(microseconds: Ints) -> Ints:
    return microseconds // DAY_MICROSECONDS


# --- value by value ---------------------------------------------------------------------------------------------------


def _parse_int(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _parse_float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _parse_decimal(text: str) -> Decimal:
    try:
        if "_" in text:
            raise ValueError(text)
        return Decimal(text.strip())
    except InvalidOperation:
        raise ValueError(text) from None


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(text)
    return word == "true"


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


# --- the table of casts -----------------------------------------------------------------------------------------------

Conversion = Callable[[BoundNode, Type, BindingScope, int], BoundNode]


def _total(function: Callable[..., Ints]) -> Conversion:
    return lambda node, type_, scope, code: TotalFunctionNode(type_, (node,), function)


def _by_value(function: Callable[[Any], Any]) -> Conversion:
    return lambda node, type_, scope, code: PerValueNode(type_, (node,), function, scope, code)


def _partial(function: Callable[..., Checked]) -> Conversion:
    return lambda node, type_, scope, code: PartialFunctionNode(type_, (node,), function, code)


def _from_float_to_int(node: BoundNode, type_: Type, scope: BindingScope, code: int) -> BoundNode:
    return PartialFunctionNode(type_, (node,), partial(_float_to_int, *type_.limits()), code)


def _from_float_to_decimal(node: BoundNode, type_: Type, scope: BindingScope, code: int) -> BoundNode:
    return PartialFunctionNode(type_, (node,), partial(float_to_decimal, type_), code)


def _from_decimal_to_int(node: BoundNode, type_: Type, scope: BindingScope, code: int) -> BoundNode:
    if node.type.lanes > 1:
        return PartialFunctionNode(type_, (node,), partial(_wide_to_int, node.type.scale, type_.limits()[0]), code)
    return TotalFunctionNode(type_, (node,), partial(_decimal_to_int, node.type.scale))


def _from_decimal_to_float(node: BoundNode, type_: Type, scope: BindingScope, code: int) -> BoundNode:
    return as_float(node)


def _from_int_to_decimal(node: BoundNode, type_: Type, scope: BindingScope, code: int) -> BoundNode:
    return rescaled(node, type_, code)


_CASTS: Final[dict[tuple[str, str], Conversion]] = {
    ("int64", "float64"): _total(int_to_float),
    ("int64", "bool"): _total(_truth),
    ("int64", "decimal"): _from_int_to_decimal,
    ("int64", "uint64"): _partial(_int_to_unsigned),
    ("uint64", "int64"): _partial(_unsigned_to_int),
    ("uint64", "float64"): _total(unsigned_to_float),
    ("uint64", "bool"): _total(_unsigned_truth),
    ("bool", "uint64"): _total(_bool_to_unsigned),
    ("float64", "uint64"): _partial(_float_to_unsigned),
    ("string", "uint64"): _by_value(_parse_int),
    ("string", "uuid"): _by_value(UUID),
    ("string", "time"): _by_value(datetime.time.fromisoformat),
    ("string", "timestamp_ntz"): _by_value(datetime.datetime.fromisoformat),
    ("string", "interval"): _by_value(Interval.parse),
    ("string", "jsonb"): _by_value(str),
    ("jsonb", "string"): _by_value(str),
    ("date", "timestamp_ntz"): _total(_midnight),
    ("timestamp_ntz", "date"): _total(_day),
    ("timestamp_ntz", "timestamp"): _total(_identity),
    ("timestamp", "timestamp_ntz"): _total(_identity),
    ("timestamp", "time"): _total(_time_of_day),
    ("timestamp_ntz", "time"): _total(_time_of_day),
    ("string", "record"): _by_value(str),
    ("record", "string"): _by_value(str),
    ("float64", "int64"): _from_float_to_int,
    ("float64", "decimal"): _from_float_to_decimal,
    ("bool", "int64"): _total(_identity),
    ("decimal", "int64"): _from_decimal_to_int,
    ("decimal", "float64"): _from_decimal_to_float,
    ("date", "timestamp"): _total(_midnight),
    ("timestamp", "date"): _total(_day),
    ("string", "int64"): _by_value(_parse_int),
    ("string", "float64"): _by_value(_parse_float),
    ("string", "decimal"): _by_value(_parse_decimal),
    ("string", "bool"): _by_value(_parse_bool),
    ("string", "date"): _by_value(datetime.date.fromisoformat),
    ("string", "timestamp"): _by_value(datetime.datetime.fromisoformat),
    ("string", "binary"): _by_value(str.encode),
    ("binary", "string"): _by_value(bytes.decode),
} | {
    (kind, "string"): _by_value(_show)
    for kind in (
        "int64",
        "uint64",
        "float64",
        "bool",
        "decimal",
        "date",
        "timestamp",
        "timestamp_ntz",
        "time",
        "interval",
        "uuid",
    )
}
