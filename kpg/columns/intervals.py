"""Functions of intervals: their span, their counts, and an interval made of counts.

    interval_span(i)              decimal(38,0): microseconds, with months of 30 days and days of 24 hours
    interval_part(i, "months")    int64; also "days" and "microseconds"
    make_interval(m, d, us)       an interval; the row fails if a count is out of range

The span decides comparisons, as in PostgreSQL: '1 month' equals '30 days'. To group, join or take distinct intervals in
the same way, use the span as the key. All functions are vectorised.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from kpg.columns.bound_nodes import BindingScope, BoundNode, PartialFunctionNode, TotalFunctionNode, adapt, any_nullable
from kpg.columns.coercion import refuse
from kpg.columns.column_types.interval_type import INTERVAL_LIMITS
from kpg.columns.column_types.timestamp_type import DAY_MICROSECONDS
from kpg.columns.expression import Expression, FunctionCall, wrap
from kpg.columns.interval import MONTH_DAYS
from kpg.columns.overflow import Checked
from kpg.columns.schema import INT64, INTERVAL, decimal
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import MAX_DIGITS, add_wide, multiply_wide, wide_constant, widen

PARTS: Final = ("months", "days", "microseconds")
SPAN: Final = decimal(MAX_DIGITS)


def interval_span(value: object) -> Expression:
    """Return the length of an interval in microseconds, by which intervals compare."""
    return FunctionCall("interval.span", (wrap(value),))


def interval_part(value: object, part: str) -> Expression:
    """Return one of the counts of an interval: months, days or microseconds."""
    return FunctionCall("interval.part", (wrap(value),), (part,))


def make_interval(months: object, days: object, microseconds: object) -> Expression:
    """Return the interval with some counts."""
    return FunctionCall("interval.make", (wrap(months), wrap(days), wrap(microseconds)))


# --- binding ----------------------------------------------------------------------------------------------------------


def bind_span(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind interval_span."""
    return span_of(_interval(call, arguments, scope))


def span_of(node: BoundNode) -> BoundNode:
    """Return the span of an interval."""
    return TotalFunctionNode(SPAN.optional(node.type.nullable), (node,), span_lanes)


def span_lanes(block: Ints) -> Ints:
    """Return the span of each interval, as 128-bit integers."""
    days = block[0] * MONTH_DAYS + block[1]  # null has other counts, which may wrap
    length, _ = multiply_wide(widen(days), wide_constant(DAY_MICROSECONDS))
    return add_wide(length, widen(block[2]))[0]


def bind_part(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind interval_part."""
    node = _interval(call, arguments, scope)
    lane = PARTS.index(call.options[0])
    return TotalFunctionNode(INT64.optional(node.type.nullable), (node,), partial(_lane, lane))


def _lane(lane: int, block: Ints) -> Ints:
    count: Ints = block[lane]
    return count


def bind_make(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind make_interval."""
    counts = [adapt(argument, INT64, scope) for argument in arguments]
    if any(count.type.kind != "int64" for count in counts):
        refuse(call, arguments, "The counts of an interval are int64.")
    type_ = INTERVAL.optional(any_nullable(counts))
    return PartialFunctionNode(type_, counts, _make, scope.code("interval out of range", call))


def _make(*counts: Ints) -> Checked:
    block = np.stack(np.broadcast_arrays(*counts))
    limits = np.array(INTERVAL_LIMITS, np.int64).reshape(-1, 1)
    return block, np.logical_or.reduce((block > limits) | (block < -limits))


def _interval(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    node = adapt(arguments[0], INTERVAL, scope)
    if node.type.kind != "interval":
        refuse(call, arguments, "It is a function of intervals.")
    return node
