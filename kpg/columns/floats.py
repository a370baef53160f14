"""Convert floats to integers that sort in the same order, and back.

    a < b  ⇔  lane(a) < lane(b)      for all floats, NaN being one value above +inf, and -0.0 the same value as 0.0

The bits of a nonnegative float sort like the number. Those of a negative float sort in reverse, so all but the sign are
flipped; a second flip restores them. No float has the lane value NULL, and NULL decodes as NaN.
"""

from __future__ import annotations

import math
import struct
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kpg.columns.lane_values import MAX
from kpg.columns.updates import Ints

Floats: TypeAlias = npt.NDArray[np.float64]

NAN = 0x7FF8 << 48  # the lane value of NaN: one of its bit patterns
_SHIFT = np.int64(63)  # an arithmetic shift by 63 bits: all ones for a negative number, else zero
_FLIP = np.int64(MAX)  # all bits but the sign


def to_lane(values: Floats) -> Ints:
    """Return the lane of floats."""
    bits: Ints = (values + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    flipped: Ints = bits ^ ((bits >> _SHIFT) & _FLIP)
    nan = values != values  # NaN differs from itself, and has many bit patterns
    if np.count_nonzero(nan):
        flipped[nan] = NAN
    return flipped


def from_lane(lane: Ints) -> Floats:
    """Return the floats of a lane."""
    bits = lane ^ ((lane >> _SHIFT) & _FLIP)
    return bits.view(np.float64)


def to_lane_one(value: float) -> int:
    """Return the lane value of one float."""
    if math.isnan(value):
        return NAN
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else bits ^ MAX
