"""Exact diffs: sums and products of diffs never wrap, although kernels compute with 64 bits.

    diffs   int64[width, n or 1]     while every diff is at most 2^63 − 1 in magnitude
            object[width, n or 1]    otherwise: Python ints

The *mass* of updates is a bound of Σ |diff|. As long as the masses of everything that a kernel adds up stay below
MAX_MASS together, no sum in it can leave 64 bits, in any order, and it runs as it is. Otherwise the diffs are split
into *digits*, lanes of 31 bits. A kernel that only adds diffs then adds digits, which is exact, and `join_digits` makes
Python ints of the sums. Functions that are not linear (presence, counts, the first rows) read the Python ints.

So results depend on sums only, never on the order or the batches in which updates were added.
Cost: O(1) for constant diffs, one pass over other diffs, once; a few times slower where sums may leave 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from kpg.columns.lane_values import MAX
from kpg.columns.updates import Ints, Updates
from kpg.kernels.sort_rows import lane_bounds

MAX_MASS = 1 << 62  # sums of diffs with this mass fit 64 bits, with one bit to spare for a difference of two sums
MAX_LOOSE_MASS = 1 << 50  # a larger bound is computed from the diffs, so that many loose bounds do not exceed MAX_MASS
DIGIT_BITS = 31  # of a digit: 2^31 digits can be added in 64 bits
DIGIT_MASK = (1 << DIGIT_BITS) - 1


def is_exact(diffs: Ints) -> bool:
    """Return whether diffs are Python ints."""
    return diffs.dtype.hasobject  # faster than a comparison of types


def mass(updates: Updates) -> int:
    """Return a bound of Σ |diff| in each lane of the diffs, and more than `MAX_MASS` if they are Python ints.

    It exceeds the sum of int64 diffs by less than `MAX_LOOSE_MASS`.
    """
    if updates.known_mass < 0:
        object.__setattr__(updates, "known_mass", _mass_of(updates.diffs, updates.data.shape[1]))
    return updates.known_mass


def total_mass(parts: Iterable[Updates]) -> int:
    """Return the mass of several updates together."""
    total = 0
    for part in parts:
        known = part.known_mass  # read here: a call for each batch of a trace would cost more than all other checks
        total += known if known >= 0 else mass(part)
    return total


def set_mass(updates: Updates, bound: int) -> None:
    """Note a bound of the mass, so that it need not be computed; a bound that may be too loose is ignored."""
    if bound < MAX_LOOSE_MASS:
        object.__setattr__(updates, "known_mass", bound)


def largest(diffs: Ints) -> int:
    """Return the greatest magnitude of a diff; the block must have a column."""
    if diffs.size == 1:
        return abs(int(diffs.item()))
    if is_exact(diffs):
        return max([abs(int(diff)) for diff in diffs.flat], default=0)
    if diffs.shape[1] == 1:
        return max(map(abs, diffs[:, 0].tolist()), default=0)
    ends = np.empty((2, diffs.shape[0]), np.int64)
    lane_bounds(diffs, ends[0], ends[1])
    return max(map(abs, ends.ravel().tolist()), default=0)


def _mass_of(diffs: Ints, n: int) -> int:
    if is_exact(diffs):  # even if all fit by now: kernels cannot read them
        return max(MAX_MASS + 1, largest(diffs) * n)
    if n == 0:
        return 0
    bound = largest(diffs) * n
    if bound < MAX_LOOSE_MASS or diffs.shape[1] == 1:
        return bound
    sums = np.abs(diffs.astype(np.float64)).sum(axis=1)
    return int(sums.max() * (1 + 2.0**-20)) + 1  # the factor covers all rounding errors


def narrow(block: npt.NDArray[Any]) -> Ints:
    """Return a block of Python ints as int64 if all of them fit."""
    if not is_exact(block):
        return block
    fits = all(-MAX <= value <= MAX for value in block.flat)
    return block.astype(np.int64) if fits else block


def shrink_exact(block: npt.NDArray[Any]) -> Ints:
    """Return a block of Python ints as int64 if all of them fit, and as a constant if all columns are equal."""
    columns = block.shape[1]
    if columns == 0:
        return np.zeros((block.shape[0], 1), np.int64)
    if columns > 1 and (block == block[:, :1]).all():
        block = block[:, :1]
    return np.ascontiguousarray(narrow(block))


def multiply_diffs(diffs: Ints, factors: Ints) -> Ints:
    """Return the products of two blocks of diffs of one shape, or of one with a constant."""
    if diffs.size == 0 or factors.size == 0 or largest(diffs) * largest(factors) <= MAX:
        products: Ints = diffs * factors
        return products
    return narrow(diffs.astype(object) * factors.astype(object))


def sum_of(diffs: Ints) -> int:
    """Return the sum of all diffs of a block."""
    if is_exact(diffs) or (diffs.size and diffs.size * largest(diffs) > MAX):
        return sum(map(int, diffs.flat))
    return int(diffs.sum())


# Digits


def digit_count(parts: Iterable[Updates]) -> int:
    """Return the number of digits that hold every diff of several updates."""
    return _digits_for(max([largest(part.diffs) if part.diffs.size else 0 for part in parts]))


def _digits_for(magnitude: int) -> int:
    return 1 + magnitude.bit_length() // DIGIT_BITS


def split_digits(diffs: Ints, digits: int) -> Ints:
    """Return the digits of each diff, the least significant first: int64[width * digits, columns].

    All digits but the most significant are from 0 to 2^31 − 1; that one has the sign.
    """
    width, columns = diffs.shape
    lanes = np.empty((width, digits, columns), np.int64)
    rest = diffs
    for digit in range(digits - 1):
        lanes[:, digit] = rest & DIGIT_MASK
        rest = rest >> DIGIT_BITS
    lanes[:, digits - 1] = rest
    return lanes.reshape(width * digits, columns)


def join_digits(lanes: Ints, digits: int) -> Ints:
    """Return the diffs that (sums of) digits stand for: Python ints, object[width, columns]."""
    width = lanes.shape[0] // digits
    parts = lanes.reshape(width, digits, lanes.shape[1]).astype(object)
    total = parts[:, digits - 1]
    for digit in range(digits - 2, -1, -1):
        total = (total << DIGIT_BITS) + parts[:, digit]
    exact: Ints = total
    return exact


def with_digits(updates: Updates, digits: int) -> Updates:
    """Return the updates with digits as diffs."""
    return Updates(updates.data, updates.times, split_digits(updates.diffs, digits), updates.consolidated)


def without_digits(updates: Updates, digits: int) -> Updates:
    """Return consolidated updates with digits as diffs as they were, without those whose digits add up to zero."""
    n, diffs = len(updates), join_digits(updates.diffs, digits)
    if diffs.shape[1] != n:
        diffs = np.repeat(diffs, n, axis=1)
    kept = (diffs != 0).any(axis=0)
    times = updates.times if updates.times.shape[1] == 1 else np.ascontiguousarray(updates.times[:, kept])
    return Updates(np.ascontiguousarray(updates.data[:, kept]), times, shrink_exact(diffs[:, kept]))


def to_words(diffs: Ints) -> tuple[Ints, int]:
    """Return diffs as int64 lanes, to store or send, and the number of digits of a diff: 0 if they fit as they are."""
    if not is_exact(diffs):
        return diffs, 0
    digits = _digits_for(largest(diffs))
    return split_digits(diffs, digits), digits


def from_words(lanes: Ints, digits: int) -> Ints:
    """Return the diffs of the lanes of `to_words`."""
    return narrow(join_digits(lanes, digits)) if digits else lanes
