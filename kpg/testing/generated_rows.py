"""Functions for `Input.insert_made`: each worker calls one to generate its own share of the rows.

Workers import such functions by name, so they are in a module and not in a test.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints


def numbers(rank: int, workers: int, total: int, modulus: int = 0) -> dict[str, Ints]:
    """Return a worker's share of the numbers below `total`, column n, and their remainders by `modulus`, column m."""
    share = np.arange(rank, total, workers)
    return {"n": share, "m": share % modulus} if modulus else {"n": share}
