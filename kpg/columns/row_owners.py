"""The worker that owns each row, computed in NumPy for programs that only send or request rows.

    owner(row)  =  the hash of its key's values, scaled to the number of workers (kpg.kernels.key_hash)

The result equals `kpg.operators.exchange.owners_of`, which runs as a kernel. This function takes three times as long,
but does not load Numba, which each Python process of a Spark task would have to do.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.kernels.key_hash import mix64, worker_of_hash


def key_owners(keys: Ints, symbolic: tuple[bool, ...], symbols: Symbols, workers: int) -> Ints:
    """Return the worker that owns each key; `symbolic` marks the lanes that hold text."""
    hashed = np.zeros(keys.shape[1], np.uint64)
    for lane, is_symbol in enumerate(symbolic):
        values = symbols.hash_of(keys[lane]) if is_symbol else keys[lane]
        hashed = mix64(hashed ^ values.view(np.uint64))
    return worker_of_hash(hashed, np.uint64(workers)).astype(np.int64)
