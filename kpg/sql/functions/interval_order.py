"""Intervals as numbers that sort and group as PostgreSQL compares intervals.

    interval_span(i)      microseconds, with months of 30 days: equal for intervals that are equal in SQL
    interval_number(i)    sorts by span, then by months, then by days; of equal intervals, one for each spelling
    interval_numbered(n)  the interval of such a number

Rewrites use them as keys of joins and groups, and for min, max and sums. They are not in the tables of functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kpg.columns.column_types.timestamp_type import DAY_MICROSECONDS
from kpg.columns.expression import Expression
from kpg.columns.intervals import interval_part, interval_span, span_lanes
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import add_wide, multiply_wide, wide_constant, widen
from kpg.sql.functions.building import lanes, total
from kpg.sql.functions.date_lanes import DAYS_PER_MONTH, INTERVAL_RANGE, interval_of
from kpg.sql.functions.function import Function
from kpg.sql.functions.integer_lanes import Computed
from kpg.sql.sql_types import BIGINT, INTERVAL, MAX_NUMERIC_DIGITS, SqlType, numeric

ORDER_NUMBER: Final = numeric(MAX_NUMERIC_DIGITS, 0)
_DAY_BITS: Final = 32
_MONTH_BITS: Final = 21  # months of 87,000 years; with the span, all fits 38 digits
_LOW_BITS: Final = _DAY_BITS + _MONTH_BITS
_MAX_MONTHS: Final = 1 << (_MONTH_BITS - 1)


def numbers_of_intervals(block: Ints) -> Computed:
    """Return the number of each interval; one of more than 87,000 years fails."""
    months, days, _ = block
    unfit = (months < -_MAX_MONTHS) | (months >= _MAX_MONTHS)
    low = ((np.where(unfit, 0, months) + _MAX_MONTHS) << _DAY_BITS) + days + (1 << (_DAY_BITS - 1))
    fitting = np.stack([np.where(unfit, 0, months), days, block[2]])
    high, _ = multiply_wide(span_lanes(fitting), wide_constant(1 << _LOW_BITS))
    return add_wide(high, widen(low))[0], ((unfit, INTERVAL_RANGE),)


def intervals_of_numbers(block: Ints) -> Ints:
    """Return the interval of each number. The arithmetic is modulo 2**64, in which every result fits."""
    word = block[1].view(np.uint64) ^ np.uint64(1 << 63)
    low = (word & np.uint64((1 << _LOW_BITS) - 1)).view(np.int64)
    days = (low & ((1 << _DAY_BITS) - 1)) - (1 << (_DAY_BITS - 1))
    months = (low >> _DAY_BITS) - _MAX_MONTHS
    shifted = (word >> np.uint64(_LOW_BITS)) | (block[0].view(np.uint64) << np.uint64(64 - _LOW_BITS))
    with np.errstate(over="ignore"):
        micros = shifted.view(np.int64) - (months * DAYS_PER_MONTH + days) * DAY_MICROSECONDS
    return interval_of(months, days, micros)


def intervals_of_sums(months: Ints, days: Ints, micros: Ints) -> Computed:
    """Return the intervals of summed counts; one out of range fails."""
    limit = 2**31
    unfit = (np.abs(months) >= limit) | (np.abs(days) >= limit)
    return interval_of(months, days, micros), ((unfit, INTERVAL_RANGE),)


def _span(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
    return interval_span(arguments[0])


def _count(part: str) -> Function:
    def build(arguments: Sequence[Expression], types: Sequence[SqlType], result: SqlType) -> Expression:
        return interval_part(arguments[0], part)

    return Function(f"interval_{part}", (INTERVAL,), BIGINT, build, total=True)


INTERVAL_SPAN: Final = Function("interval_span", (INTERVAL,), ORDER_NUMBER, _span, total=True)
INTERVAL_NUMBER: Final = Function("interval_number", (INTERVAL,), ORDER_NUMBER, lanes(numbers_of_intervals))
INTERVAL_NUMBERED: Final = Function(
    "interval_numbered", (ORDER_NUMBER,), INTERVAL, total(intervals_of_numbers), total=True
)
INTERVAL_COUNTS: Final = tuple(map(_count, ("months", "days", "microseconds")))
INTERVAL_OF_SUMS: Final = Function("interval_of_sums", (BIGINT, BIGINT, BIGINT), INTERVAL, lanes(intervals_of_sums))
