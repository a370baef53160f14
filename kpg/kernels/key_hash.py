"""The hash that decides which worker owns a row: one definition for kernels and for NumPy, and one for single rows.

    hash of no lanes            =  0
    hash of lanes and a value   =  mix64(hash of the lanes ^ value)
    owner of a row              =  the upper 32 bits of the hash of its key, scaled to the number of workers

The functions are plain uint64 arithmetic on NumPy arrays or scalars; kpg.kernels.partition_rows compiles the same
functions for kernels. This module imports no compiler, so that a Spark task can route rows without loading Numba.

The values must never change: otherwise workers would search for stored rows, and Spark would send new rows, on the
wrong worker. tests/kernels/test_key_hash.py pins some of them. Twins: kpg.testing.kernel_twins.partition_rows_twin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

MASK = (1 << 64) - 1
Words = TypeVar("Words", np.uint64, npt.NDArray[np.uint64])


def mix64(value: Words) -> Words:
    """Return the word with its bits scrambled (the finaliser of splitmix64); different words stay different."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def worker_of_hash(hashed: Words, workers: np.uint64) -> Words:
    """Return the worker that owns a key with this hash; each worker owns an equal range of hashes."""
    return ((hashed >> np.uint64(32)) * workers) >> np.uint64(32)


def owner_of_row(values: Sequence[int], workers: int) -> int:
    """Return the worker that owns one row, by the values of its key: the same as above, in Python's integers.

    Cost: one microsecond for each value, less than a call of NumPy's functions takes.
    """
    hashed = 0
    for value in values:
        hashed = ((hashed ^ (value & MASK)) + 0x9E3779B97F4A7C15) & MASK
        hashed = ((hashed ^ (hashed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        hashed = ((hashed ^ (hashed >> 27)) * 0x94D049BB133111EB) & MASK
        hashed ^= hashed >> 31
    return ((hashed >> 32) * workers) >> 32
