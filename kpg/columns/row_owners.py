"""Which worker a row belongs to, for those who only send rows: in NumPy, so that they need not load kernels.

    owner(row)  =  hash of its key's values, scaled to the number of workers

It is the same number as `kpg.operators.exchange.owners_of` gives; about three times its time, and no compiler.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.hashing import mix
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints


def plain_owners(keys: Ints, symbolic: tuple[bool, ...], symbols: Symbols, peers: int) -> Ints:
    """The worker of each key; `symbolic` says which lanes are text."""
    mixed = np.zeros(keys.shape[1], np.int64)
    for lane, is_symbol in enumerate(symbolic):
        values = symbols.hash_of(keys[lane]) if is_symbol else keys[lane]
        mixed = mix(mixed ^ values)
    half = np.uint64(32)
    return (((mixed.view(np.uint64) >> half) * np.uint64(peers)) >> half).astype(np.int64)
