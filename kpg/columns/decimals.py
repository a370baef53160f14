"""Arithmetic on decimals of one lane and of two: exact, or the row fails.

    + -    at the larger scale; one digit more before the point than the wider operand has
    *      the sum of both scales and of both precisions
    quotient_at_scale   at a given scale, rounded half away from zero
    rounding to a scale is half away from zero, as in PostgreSQL

The precision of a result is at most 38; a row whose result has more digits fails. A result of up to 18 digits has one
lane, and then so have its operands: these are computed as 64-bit integers. Others are computed as 128-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from kpg.columns import floats
from kpg.columns.bound_nodes import (
    BindingScope,
    Bools,
    BoundNode,
    ConstantNode,
    PartialFunctionNode,
    TotalFunctionNode,
    any_nullable,
)
from kpg.columns.column_types.decimal_type import ONE_LANE_DIGITS
from kpg.columns.expression import FunctionCall
from kpg.columns.lane_order import compare_lanes
from kpg.columns.overflow import (
    Checked,
    add_ints,
    apply_at_common_scale,
    apply_within_limits,
    multiply_ints,
    subtract_ints,
)
from kpg.columns.schema import Type, decimal
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import (
    MAX_DIGITS,
    WideResult,
    absolute_wide,
    add_wide,
    divide_wide,
    multiply_wide,
    narrow_wide,
    negate_wide,
    rescale_wide,
    subtract_wide,
    wide_constant,
    widen,
)
from kpg.errors import TypeMismatch
from kpg.kernels.wide_arithmetic import ZERO_DIVISOR

_INT64_DIGITS = 19
FLOAT_DIGITS = 15  # significant decimal digits that every float64 holds
_WIDE: dict[Callable[..., Checked], Callable[..., WideResult]] = {
    add_ints: add_wide,
    subtract_ints: subtract_wide,
    multiply_ints: multiply_wide,
}


def as_decimal(node: BoundNode, scope: BindingScope) -> BoundNode:
    """Return an int64 as a decimal without fraction, a decimal unchanged."""
    if node.type.kind == "decimal":
        return node
    if isinstance(node, ConstantNode):
        type_ = decimal(len(str(abs(node.lane_value))))
        lanes = node.lane_values if type_.lanes == 1 else tuple(wide_constant(node.lane_value)[:, 0].tolist())
        return ConstantNode(type_, node.value, lanes, scope.symbols)
    return TotalFunctionNode(decimal(_INT64_DIGITS).optional(node.type.nullable), [node], widen)


def sum_or_product(
    call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope, on_ints: Callable[..., Checked]
) -> BoundNode:
    """Bind + - * of decimals; `on_ints` is the function of 64-bit integers."""
    a, b = (argument.type for argument in arguments)
    if on_ints is multiply_ints:
        scale, precision = a.scale + b.scale, a.precision + b.precision
        if scale > MAX_DIGITS:
            types = " and ".join(str(argument.type) for argument in arguments)
            raise TypeMismatch(
                f"{call.op!r} does not fit {types}",
                detail=f"In {call!r}.",
                hint=f"The product would have {scale} digits after the point, more than {MAX_DIGITS}.",
            )
        shifts = 0, 0
    else:
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
        shifts = scale - a.scale, scale - b.scale
    type_ = decimal(min(precision, MAX_DIGITS), scale).optional(any_nullable(arguments))
    code = scope.code(f"{type_} overflow", call)
    function: Callable[..., Checked]
    if type_.lanes == 1:
        function = partial(apply_at_common_scale, 10 ** shifts[0], 10 ** shifts[1], on_ints)
        function = partial(apply_within_limits, *type_.limits(), on_ints if shifts == (0, 0) else function)
    else:
        function = partial(_apply_wide, _WIDE[on_ints], shifts, type_.limits()[1])
    return PartialFunctionNode(type_, arguments, function, code)


def _apply_wide(function: Callable[..., WideResult], shifts: tuple[int, int], limit: int, a: Ints, b: Ints) -> Checked:
    wide_a, unfit_a = rescale_wide(widen(a), shifts[0]) if shifts[0] else (widen(a), None)
    wide_b, unfit_b = rescale_wide(widen(b), shifts[1]) if shifts[1] else (widen(b), None)
    values, failed = function(wide_a, wide_b, limit)
    for unfit in (unfit_a, unfit_b):
        if unfit is not None:
            failed = unfit if failed is None else failed | unfit
    return values, failed


def quotient_at_scale(
    call: FunctionCall, arguments: Sequence[BoundNode], type_: Type, scope: BindingScope
) -> BoundNode:
    """Return the quotient of two decimals as a decimal type, rounded half away from zero."""
    a, b = arguments
    nonzero = PartialFunctionNode(b.type, (b,), _refuse_zero, scope.code("division by zero", call))
    type_ = type_.optional(any_nullable(arguments))
    shift = type_.scale - a.type.scale + b.type.scale
    code = scope.code(f"{type_.optional(False)} overflow", call)
    return PartialFunctionNode(type_, (a, nonzero), partial(_quotient, shift, type_), code)


def _refuse_zero(divisor: Ints) -> Checked:
    return divisor, compare_lanes(np.equal, divisor, _zero_like(divisor))


def _zero_like(lane: Ints) -> Ints:
    return np.zeros(1, np.int64) if lane.ndim == 1 else wide_constant(0)


def _quotient(shift: int, type_: Type, a: Ints, b: Ints) -> Checked:
    values, marks = divide_wide(widen(a), widen(b), shift, type_.limits()[1])
    failed = (marks != 0) & (marks != ZERO_DIVISOR)
    return (values if type_.lanes == 2 else narrow_wide(values)[0]), failed


def negated(node: BoundNode) -> BoundNode:
    """Return the negation of a decimal; its range is symmetric."""
    return TotalFunctionNode(node.type, [node], np.negative if node.type.lanes == 1 else negate_wide)


def absolute(node: BoundNode) -> BoundNode:
    """Return the magnitude of a decimal."""
    return TotalFunctionNode(node.type, [node], np.abs if node.type.lanes == 1 else absolute_wide)


def rescaled(node: BoundNode, type_: Type, code: int) -> BoundNode:
    """Return a decimal or an int64 as another decimal type, rounded half away from zero; a row may fail."""
    shift = type_.scale - node.type.scale
    if type_.lanes == 1 and node.type.lanes == 1 and node.type.kind == "decimal":
        function = partial(rescale_lane, 10 ** max(0, shift), 10 ** max(0, -shift), *type_.limits())
        return PartialFunctionNode(type_, (node,), function, code)
    return PartialFunctionNode(type_, (node,), partial(_rescale_wide, shift, type_), code)


def rescale_lane(up: int, down: int, low: int, high: int, lane: Ints) -> Checked:
    """Return lane * up / down, rounded half away from zero; it fails outside of `low` to `high`."""
    whole, rest = np.divmod(np.abs(lane), down)
    rounded = whole + (rest >= down - rest)  # half away from zero
    failed = rounded > (10**ONE_LANE_DIGITS - 1) // up
    scaled = np.where(lane < 0, -rounded, rounded) * up
    return scaled, failed | (scaled < low) | (scaled > high)


def _rescale_wide(shift: int, type_: Type, lane: Ints) -> Checked:
    values, failed = rescale_wide(widen(lane), shift, type_.limits()[1])
    return (values if type_.lanes == 2 else narrow_wide(values)[0]), failed


def float_to_decimal(type_: Type, lane: Ints) -> Checked:
    """Return floats as decimals: their first 15 significant digits, rounded half away from zero, as in PostgreSQL."""
    values = floats.from_lane(lane)
    digits, exponents, failed = _significant_digits(values)
    block = np.zeros((2, len(values)), np.int64)
    block[1] = wide_constant(0)[1]
    shifts = np.where(failed, 0, exponents + type_.scale)
    for shift in np.unique(shifts[digits != 0]).tolist():
        rows = (shifts == shift) & (digits != 0)
        if shift > MAX_DIGITS:
            failed = failed | rows
        elif shift >= -FLOAT_DIGITS:  # fewer digits round to zero
            block[:, rows], unfit = rescale_wide(widen(digits[rows]), shift, type_.limits()[1])
            if unfit is not None:
                failed[rows] |= unfit
    block = np.where(values < 0, negate_wide(block), block)
    return (block if type_.lanes == 2 else narrow_wide(block)[0]), failed


def _significant_digits(values: npt.NDArray[np.float64]) -> tuple[Ints, Ints, Bools]:
    """Return |values| as integers of 15 digits times powers of ten, and which of them are not finite."""
    failed = ~np.isfinite(values)
    magnitude = np.abs(np.where(failed, 0.0, values)).astype(np.longdouble)  # a float product would round twice
    present = magnitude != 0
    exponents = np.floor(np.log10(np.where(present, magnitude, 1))).astype(np.int64) - FLOAT_DIGITS + 1
    digits = np.rint(_scaled(magnitude, -exponents))
    exponents += digits >= 10**FLOAT_DIGITS
    exponents -= present & (digits < 10 ** (FLOAT_DIGITS - 1))
    return np.rint(_scaled(magnitude, -exponents)).astype(np.int64), exponents, failed


def _scaled(values: npt.NDArray[np.longdouble], exponents: Ints) -> npt.NDArray[np.longdouble]:
    ten = np.longdouble(10)
    scaled: npt.NDArray[np.longdouble] = np.where(
        exponents >= 0, values * ten ** np.maximum(exponents, 0), values / ten ** np.maximum(-exponents, 0)
    )
    return scaled


def compare_decimals(function: object, shifts: tuple[int, int], a: Ints, b: Ints) -> Ints:
    """Return the comparison of decimals of any widths; one of them is scaled up to the scale of the other."""
    wide = [_saturated(widen(lane), shift) for lane, shift in zip((a, b), shifts, strict=True)]
    return compare_lanes(function, *wide).astype(np.int64)


def _saturated(block: Ints, shift: int) -> Ints:
    """Return the numbers at a larger scale; those that leave 38 digits become larger than any number that does not."""
    if not shift:
        return block
    scaled, failed = rescale_wide(block, shift)
    if failed is None:
        return scaled
    beyond = np.where(block[0] < 0, wide_constant(-(2**127)), wide_constant(2**127 - 1))
    return np.where(failed, beyond, scaled)
