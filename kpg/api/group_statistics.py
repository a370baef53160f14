"""Statistics that need all values of a group: functions for `Group.reduce`, in exact arithmetic.

variance_of   the mean of the squared distances to the mean, as float64
median_of     the value in the middle; of two, the greater one
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

GroupRows = list[tuple[tuple[Any, ...], int]]  # rows of one value, sorted, and their counts


def variance_of(key: tuple[Any, ...], rows: GroupRows) -> Iterator[tuple[float]]:
    """Yield the variance of a group, if it has rows."""
    values = [(Fraction(value), count) for (value,), count in rows if count > 0]
    size = sum(count for _, count in values)
    if size:
        mean = sum((value * count for value, count in values), Fraction()) / size
        yield (float(sum(((value - mean) ** 2 * count for value, count in values), Fraction()) / size),)


def median_of(key: tuple[Any, ...], rows: GroupRows) -> Iterator[tuple[Any]]:
    """Yield the median of a group, if it has rows."""
    values = [(value, count) for (value,), count in rows if count > 0]
    before = sum(count for _, count in values) // 2  # values that come before the median
    for value, count in values:
        if before < count:
            yield (value,)
            return
        before -= count
