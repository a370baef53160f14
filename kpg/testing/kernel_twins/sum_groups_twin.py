"""Twin of kpg.kernels.sum_groups: sums by group in a dictionary."""

from __future__ import annotations

from collections.abc import Sequence

PART_MASK = 2**32 - 1


def number_groups(keys: Sequence[tuple[int, ...]]) -> list[int]:
    """Return the number of each key, in the order in which keys are first seen."""
    numbers: dict[tuple[int, ...], int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def parts_of(value: int | None, lanes: int) -> tuple[int, ...]:
    """Return the count and the parts of a number of 32 bits each, the last one with the sign; zeros for null."""
    count = 2 * lanes
    if value is None:
        return (0,) * (count + 1)
    lower = [(value >> 32 * part) & PART_MASK for part in range(count - 1)]
    return (1, *lower, value >> 32 * (count - 1))


def sum_groups(
    rows: Sequence[tuple[tuple[int, ...], tuple[int | None, ...], int]], lanes: Sequence[int]
) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return the sums of each key that are not all zero, for rows of (key, numbers, diff)."""
    sums: dict[tuple[int, ...], list[int]] = {}
    for key, numbers, diff in rows:
        parts = [1, *(part for number, count in zip(numbers, lanes, strict=True) for part in parts_of(number, count))]
        total = sums.setdefault(key, [0] * len(parts))
        for at, part in enumerate(parts):
            total[at] += diff * part
    return {key: tuple(total) for key, total in sums.items() if any(total)}
