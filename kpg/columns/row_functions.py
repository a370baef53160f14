"""Functions of columns as instructions for one row (kpg.kernels.row_expressions).

    row_function(compute)  ->  the instructions that compute the same from values on the stack, or None

`compute` is the function of a bound node: one of the table below, or `partial` of it with options before the lanes. The
instructions may fail where the function does not: then a row is left to the function. A module of functions that is not
imported here, such as those of SQL, adds its own to `ROW_FUNCTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from kpg.columns import arithmetic, coercion, comparison, decimals, logic, overflow
from kpg.kernels import row_expressions as kernel

Steps: TypeAlias = tuple[tuple[int, int], ...]  # (instruction, operand); a bound expression sets the bits of null


class RowFunction(NamedTuple):
    """Instructions on each argument as it is pushed, then instructions on all of them."""

    steps: Steps
    before: tuple[Steps, ...] = ()


ToRowFunction: TypeAlias = Callable[..., "RowFunction | None"]  # given the options of a function


def function_of(instruction: int) -> RowFunction:
    """Return a function that is one instruction."""
    return RowFunction(((instruction, 0),))


def with_constant(instruction: int, constant: int) -> Steps:
    """Return an instruction on a value and a constant."""
    return (kernel.CONSTANT, constant), (instruction, 0)


def within(function: RowFunction, low: int, high: int) -> RowFunction:
    """Return a function that fails if its result is outside of a range."""
    checks = (*with_constant(kernel.AT_LEAST, low), *with_constant(kernel.AT_MOST, high))
    return function._replace(steps=(*function.steps, *checks))


def scaled(function: RowFunction, *factors: int) -> RowFunction:
    """Return a function of two values that are multiplied by factors before."""
    return function._replace(before=tuple(scale(factor) for factor in factors))


def scale(factor: int) -> Steps:
    """Return the multiplication by a factor."""
    return () if factor == 1 else with_constant(kernel.MULTIPLY, factor)


def float_operation(ufunc: Any) -> RowFunction | None:
    """Return + - * or / of floats, given as NumPy's function; results that are not finite or underflow fail."""
    instruction = _FLOATS.get(ufunc)
    return None if instruction is None else function_of(instruction)


def row_function(compute: Callable[..., Any]) -> RowFunction | None:
    """Return a function as instructions; None if it has no such form."""
    options: tuple[Any, ...] = ()
    while isinstance(compute, partial):
        options, compute = (*compute.args, *options), compute.func
    translate = ROW_FUNCTIONS.get(compute)
    return None if translate is None else translate(*options)


def _constantly(function: RowFunction) -> ToRowFunction:
    return lambda: function


def _comparison(function: Any) -> RowFunction:
    return function_of(_COMPARISONS[function])


def _add_constant(constant: int) -> RowFunction:
    return RowFunction(with_constant(kernel.ADD, constant))


def _pick(wins: Any) -> RowFunction:
    return function_of(kernel.SMALLER if wins is np.less_equal else kernel.LARGER)


def _within_limits(low: int, high: int, function: Callable[..., Any]) -> RowFunction | None:
    inner = row_function(function)
    return None if inner is None else within(inner, low, high)


def _at_common_scale(up_a: int, up_b: int, function: Callable[..., Any]) -> RowFunction | None:
    inner = row_function(function)
    return None if inner is None else scaled(inner, up_a, up_b)


def _rescale(up: int, down: int, low: int, high: int) -> RowFunction | None:
    return within(RowFunction(scale(up)), low, high) if down == 1 else None


def _compare_scaled(function: Any, up_a: int, up_b: int) -> RowFunction:
    return scaled(_comparison(function), up_a, up_b)


_COMPARISONS: Final = {
    np.equal: kernel.EQUAL,
    np.not_equal: kernel.UNEQUAL,
    np.less: kernel.LESS,
    np.less_equal: kernel.LESS_EQUAL,
    np.greater: kernel.GREATER,
    np.greater_equal: kernel.GREATER_EQUAL,
}
_FLOATS: Final = {
    np.add: kernel.FLOAT_ADD,
    np.subtract: kernel.FLOAT_SUBTRACT,
    np.multiply: kernel.FLOAT_MULTIPLY,
    np.divide: kernel.FLOAT_DIVIDE,
}
NEGATE: Final = RowFunction(with_constant(kernel.MULTIPLY, -1))
QUOTIENT_FUNCTION: Final = function_of(kernel.QUOTIENT)  # rounded towards zero
REMAINDER_FUNCTION: Final = function_of(kernel.REMAINDER)  # with the sign of the dividend

ROW_FUNCTIONS: Final[dict[Callable[..., Any], ToRowFunction]] = {
    overflow.add_ints: _constantly(function_of(kernel.ADD)),
    overflow.add_constant: _add_constant,
    overflow.subtract_ints: _constantly(function_of(kernel.SUBTRACT)),
    overflow.multiply_ints: _constantly(function_of(kernel.MULTIPLY)),
    overflow.floor_divide_ints: _constantly(function_of(kernel.DIVIDE)),
    overflow.modulo_ints: _constantly(function_of(kernel.MODULO)),
    overflow.nonzero_ints: _constantly(RowFunction(())),  # a division fails by itself
    overflow.negate_ints: _constantly(NEGATE),
    overflow.absolute_ints: _constantly(function_of(kernel.ABSOLUTE)),
    overflow.apply_within_limits: _within_limits,
    overflow.apply_at_common_scale: _at_common_scale,
    np.subtract: _constantly(function_of(kernel.SUBTRACT)),
    np.negative: _constantly(NEGATE),
    np.abs: _constantly(function_of(kernel.ABSOLUTE)),
    arithmetic.float_function: float_operation,
    arithmetic.float_division: float_operation,
    arithmetic.pick_lanes: _pick,
    arithmetic.pick_checked: _pick,
    coercion.int_to_float: _constantly(function_of(kernel.FLOAT)),
    coercion.refuse_lowest: _constantly(function_of(kernel.NOT_NULL)),
    comparison.compare_to_lane: _comparison,
    comparison.compare_scaled: _compare_scaled,
    decimals.rescale_lane: _rescale,
    logic.invert: _constantly(function_of(kernel.NOT)),
}
