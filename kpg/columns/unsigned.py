"""Functions of unsigned numbers with overflow detection, and checks of ranges.

    function(a, ...) -> (values, failed)      on lanes of uint64, as kpg.columns.overflow on lanes of int64

A result below 0 or above 2**64 - 1 fails its row. A lane is the number minus 2**63: equal bits, except the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from kpg.columns.bound_nodes import BindingScope, BoundNode, PartialFunctionNode, TotalFunctionNode
from kpg.columns.coercion import refuse
from kpg.columns.column_types.uint64_type import from_unsigned_lane, to_unsigned_lane
from kpg.columns.expression import FunctionCall
from kpg.columns.lane_values import NULL
from kpg.columns.overflow import (
    Checked,
    absolute_ints,
    add_ints,
    apply_within_limits,
    floor_divide_ints,
    modulo_ints,
    multiply_ints,
    negate_ints,
    subtract_ints,
)
from kpg.columns.schema import INT64, UINT64
from kpg.columns.updates import Ints

_MAX_SAFE_PRODUCT: Final = 1.8e19  # below 2**64 by more than the rounding error of a float product


def _add(a: Any, b: Any) -> tuple[Any, Any]:
    total = a + b
    return total, total < a


def _subtract(a: Any, b: Any) -> tuple[Any, Any]:
    return a - b, a < b


def _multiply(a: Any, b: Any) -> tuple[Any, Any]:
    product = a * b
    near = np.multiply(a, b, dtype=np.float64) > _MAX_SAFE_PRODUCT
    return product, near & (product // np.where(b == 0, np.uint64(1), b) != a) & (b != 0)


def _divide(a: Any, b: Any) -> tuple[Any, Any]:
    return a // np.where(b == 0, np.uint64(1), b), b == 0


def _modulo(a: Any, b: Any) -> tuple[Any, Any]:
    return a % np.where(b == 0, np.uint64(1), b), b == 0


def _negate(a: Any) -> tuple[Any, Any]:
    return a, a != 0


def _absolute(a: Any) -> tuple[Any, Any]:
    return a, None


_COUNTERPARTS: Final[dict[Callable[..., Checked], Callable[..., tuple[Any, Any]]]] = {
    add_ints: _add, subtract_ints: _subtract, multiply_ints: _multiply, floor_divide_ints: _divide,
    modulo_ints: _modulo, negate_ints: _negate, absolute_ints: _absolute,
}  # fmt: skip


def on_unsigned(on_ints: Callable[..., Checked]) -> Callable[..., Checked]:
    """Return the function of uint64 lanes that corresponds to one of int64 lanes."""
    return partial(_on_lanes, _COUNTERPARTS[on_ints])


def _on_lanes(function: Callable[..., tuple[Any, Any]], *lanes: Ints) -> Checked:
    with np.errstate(over="ignore"):
        values, failed = function(*map(from_unsigned_lane, lanes))
    return to_unsigned_lane(values), failed


def reinterpret(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind unsigned.reinterpret: the number of the other signedness with the same 64 bits."""
    (argument,) = arguments
    if argument.type.kind not in ("int64", "uint64"):
        refuse(call, arguments, "Only int64 and uint64 have a counterpart with the same bits.")
    other = UINT64 if argument.type.kind == "int64" else INT64
    return TotalFunctionNode(other.optional(argument.type.nullable), arguments, _flip_first_bit)


def _flip_first_bit(lane: Ints) -> Ints:
    return lane ^ NULL


def within(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind within: the value, if it is in the range of a smaller type; otherwise the row fails."""
    (argument,) = arguments
    low, high, name = call.options
    bias = 2**63 if argument.type.kind == "uint64" else 0
    code = scope.code(f"a value is out of the range of {name}, {low:,} to {high:,}")
    return PartialFunctionNode(
        argument.type, arguments, partial(apply_within_limits, low - bias, high - bias, _unchanged), code
    )


def _unchanged(lane: Ints) -> Checked:
    return lane, None
