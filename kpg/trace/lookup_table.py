"""Signposts of a batch: an array that tells which few of its rows may have a key.

Where the values of the first lane are spread evenly it holds places, where the rows of each 2^shift values begin;
otherwise, in a large batch, fences, every so manieth value (kpg.kernels.lookup_tables). Where a lane is all there is to a
row it holds marks, a bit for each value (kpg.kernels.bitmap_lookup). They are made once a batch was asked for enough keys
(kpg.trace.batch), as looking for a key is then a look and a short search. Cost: one pass over the lane, and 0.8 to 1.6
bytes a row; marks take a quarter of a byte where values are dense, at most 4; fences an eighth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.bitmap_lookup import BITMAP_FLAG, EXACT_BITMAP_SHIFT, fill_bitmap
from kpg.kernels.lookup_tables import SPARSE_SHIFT, SPARSE_SPACING, fill_intervals

LEAST = 4096  # a batch with fewer rows is searched well enough without
FENCED_ROWS = 1 << 16  # likewise if its keys are not spread evenly
CELLS_A_ROW = 16  # of marks, at most: the more there are, the fewer keys share one that are not there
ROWS_A_PLACE = 5  # at least, on an average; at most twice as many where values are many
CROWDED = 32  # values beside which a value is found, on an average, before fences are better
WORTH = 128  # signposts are made when a batch was asked for a key for each so many of its rows


class LookupTable(NamedTuple):
    """Marks, places, or fences, or nothing if `at` is empty."""

    at: Ints
    base: int
    shift: int  # -1 for fences; see kpg.kernels.bitmap_lookup for marks


NONE = LookupTable(np.empty(0, np.int64), 0, SPARSE_SHIFT)


def signposts_of(lane: Ints, alone: bool) -> LookupTable:
    """The signposts of a sorted lane, not empty, perhaps all there is to a row; none where they would tell little."""
    marks = marks_of(lane) if alone else None
    if marks is not None:
        return marks
    places = places_of(lane)
    if places is not None:
        return places
    return fences_of(lane) if len(lane) >= FENCED_ROWS else NONE


def marks_of(lane: Ints) -> LookupTable | None:
    """Which values there are, and the row of each, unless too many of them share a cell."""
    low, high = int(lane[0]), int(lane[-1])
    shift = 0
    while (high >> shift) - (low >> shift) >= max(2, CELLS_A_ROW * len(lane)):
        shift += 1
    base = low >> shift
    marks = np.empty(2 * (((high >> shift) - base >> 6) + 2), np.int64)
    cells = fill_bitmap(lane, base, shift, marks)
    if 2 * cells < len(lane):
        return None
    return LookupTable(marks, base, EXACT_BITMAP_SHIFT if shift == 0 and cells == len(lane) else BITMAP_FLAG + shift)


def places_of(lane: Ints, crowded: int = CROWDED) -> LookupTable | None:
    """Where the rows of each of some equal intervals begin, unless too many values are in a few of these."""
    low, high = int(lane[0]), int(lane[-1])
    shift = 0
    while (high >> shift) - (low >> shift) >= max(2, len(lane) // ROWS_A_PLACE):  # two: of both signs
        shift += 1
    base = low >> shift
    places = np.empty((high >> shift) - base + 2, np.int64)
    differing, squares = fill_intervals(lane, base, shift, places)
    return LookupTable(places, base, shift) if squares <= crowded * differing else None


def fences_of(lane: Ints) -> LookupTable:
    """Every so manieth value."""
    return LookupTable(np.ascontiguousarray(lane[::SPARSE_SPACING]), 0, SPARSE_SHIFT)
