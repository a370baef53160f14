"""Batches as numbers: where their arrays lie, for kernels that read a whole trace in one call.

A table is valid as long as the batches it was made of are kept; callers hold them over the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kpg.columns.updates import Ints, Updates
from kpg.kernels.address import FIELDS
from kpg.kernels.locate import FENCE_SPACING, place

Row = tuple[int, ...]

PLACED_ROWS = 1 << 13  # a batch with fewer rows is searched well enough without signs
FENCED_ROWS = 1 << 16  # and one of fewer rows without fences, if its keys are not spread evenly
ROWS_OF_PLACE = 8
CROWDED = 32  # keys beside which a key is found, on an average, before fences are better


class Signs(NamedTuple):
    """What tells where in a batch its keys are, if `at` holds something: places, or fences (shift -1)."""

    at: Ints
    low: int
    shift: int


NO_SIGNS = Signs(np.empty(0, np.int64), 0, -1)


def signs_of(updates: Updates) -> Signs:
    """Places or fences of the first lane of some sorted updates; of few updates none."""
    if updates.data.shape[0] == 0 or updates.data.shape[1] < PLACED_ROWS:
        return NO_SIGNS
    keys = updates.data[0]
    places = places_of(keys)
    if places is None and len(keys) >= FENCED_ROWS:
        return Signs(np.ascontiguousarray(keys[::FENCE_SPACING]), 0, -1)
    return places or NO_SIGNS


def places_of(keys: Ints) -> Signs | None:
    """Where the keys of each of some equal intervals begin, unless too many of them are in a few of these."""
    low, high = int(keys[0]), int(keys[-1])
    shift = max(0, (high - low).bit_length() - (len(keys) // ROWS_OF_PLACE).bit_length())
    if (high - low).bit_length() > 62:
        return None
    places = np.empty(((high - low) >> shift) + 2, np.int64)
    differing, squares = place(keys, low, shift, places)
    return Signs(places, low, shift) if squares <= CROWDED * differing else None


def describe(updates: Updates, signs: Signs = NO_SIGNS) -> Row:
    """The addresses and sizes of the arrays of some updates, and of the signs of their keys."""
    return (
        address(updates.data),
        updates.data.shape[1],
        address(updates.times),
        updates.times.shape[1],
        address(updates.diffs),
        updates.diffs.shape[1],
        updates.times.shape[0],
        address(signs.at),
        signs.at.shape[0],
        signs.low,
        signs.shift,
    )


def address(array: Ints) -> int:
    """Where an array begins."""
    assert array.flags.c_contiguous, "kernels read arrays row after row"
    return int(array.__array_interface__["data"][0])


def table_of(rows: Sequence[Row]) -> Ints:
    """Some batches as int64[batches, FIELDS]."""
    return np.array(rows, np.int64).reshape(len(rows), FIELDS)
