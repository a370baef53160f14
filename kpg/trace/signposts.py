"""Signposts of a batch: an array that tells which few of its rows may have a key.

Where the values of the first lane are spread evenly it holds places, where the rows of each 2^shift values begin;
otherwise, in a large batch, fences, every so manieth value (kpg.kernels.signposts). They are made once a batch was
asked for enough keys (kpg.trace.batch), as looking for a key is then a look and a short search. Cost: one pass over the
lane, and 0.8 to 1.6 bytes a row; fences take an eighth of a byte.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.signposts import FENCE_SPACING, FENCES, place

LEAST = 4096  # a batch with fewer rows is searched well enough without
FENCED_ROWS = 1 << 16  # likewise if its keys are not spread evenly
ROWS_A_PLACE = 5  # at least, on an average; at most twice as many where values are many
CROWDED = 32  # values beside which a value is found, on an average, before fences are better
WORTH = 128  # signposts are made when a batch was asked for a key for each so many of its rows


class Signposts(NamedTuple):
    """Places, or fences, or nothing if `at` is empty."""

    at: Ints
    base: int
    shift: int  # -1 for fences


NONE = Signposts(np.empty(0, np.int64), 0, FENCES)


def signposts_of(lane: Ints) -> Signposts:
    """The signposts of a sorted lane that is not empty; none where they would tell little."""
    places = places_of(lane)
    if places is not None:
        return places
    return fences_of(lane) if len(lane) >= FENCED_ROWS else NONE


def places_of(lane: Ints, crowded: int = CROWDED) -> Signposts | None:
    """Where the rows of each of some equal intervals begin, unless too many values are in a few of these."""
    low, high = int(lane[0]), int(lane[-1])
    shift = 0
    while (high >> shift) - (low >> shift) >= max(2, len(lane) // ROWS_A_PLACE):  # two: of both signs
        shift += 1
    base = low >> shift
    places = np.empty((high >> shift) - base + 2, np.int64)
    differing, squares = place(lane, base, shift, places)
    return Signposts(places, base, shift) if squares <= crowded * differing else None


def fences_of(lane: Ints) -> Signposts:
    """Every so manieth value."""
    return Signposts(np.ascontiguousarray(lane[::FENCE_SPACING]), 0, FENCES)
