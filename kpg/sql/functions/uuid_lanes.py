"""Random identifiers on lanes."""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints

_VERSION = np.uint64(0x4000)  # random identifiers have version 4
_VARIANT = np.uint64(1 << 63)


def uuid_lanes(count: int) -> Ints:
    """Return random identifiers of version 4, two lanes each."""
    words = np.random.default_rng().integers(0, 2**64, (2, count), np.uint64, endpoint=False)
    words[0] = words[0] & np.uint64(0xFFFF_FFFF_FFFF_0FFF) | _VERSION
    words[1] = words[1] & np.uint64(0x3FFF_FFFF_FFFF_FFFF) | _VARIANT
    return (words ^ _VARIANT).view(np.int64)  # lanes sort as unsigned numbers do
