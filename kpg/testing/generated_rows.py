"""Rows that workers make for themselves, for `Input.insert_made`: each its share of a whole that is known beforehand.

Such functions are imported by name where the workers run, so they live in a module.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints


def numbers(rank: int, workers: int, total: int, modulus: int = 0) -> dict[str, Ints]:
    """The numbers below `total` in column n, and in column m what is left of them by `modulus` if given."""
    mine = np.arange(rank, total, workers)
    return {"n": mine, "m": mine % modulus} if modulus else {"n": mine}
