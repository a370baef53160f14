"""The hashes of symbols: computed when they are asked for, and kept by id.

    hashes.of(values, ids)  =  hash_values of the values of ids; NULL for null

Cost: a microsecond for a symbol that is asked for the first time, a look-up later. A query that hashes few of many
texts therefore does not pay for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kpg.columns.hashing import hash_values
from kpg.columns.lane_values import NULL
from kpg.columns.updates import Ints


class SymbolHashes:
    """The hashes of some ids of a symbol table."""

    __slots__ = ("_hashes", "_known")

    def __init__(self) -> None:
        self._hashes: Ints = np.empty(0, np.int64)
        self._known = np.empty(0, np.bool_)

    @property
    def nbytes(self) -> int:
        """The memory of the hashes."""
        return self._hashes.nbytes + self._known.nbytes

    def of(self, values: Sequence[Any], ids: Ints) -> Ints:
        """Return the hash of the value of each id; `values` has all values by id. That of null is NULL."""
        self._grow(len(values))
        if not len(self._hashes):
            return ids
        places = np.maximum(ids, 0)
        missing = np.unique(ids[~self._known[places] & (ids >= 0)])
        if len(missing):
            self._hashes[missing] = hash_values([values[id_] for id_ in missing.tolist()])
            self._known[missing] = True
        return np.where(ids < 0, NULL, self._hashes[places])

    def forget(self, ids: list[int]) -> None:
        """Forget the hashes of freed ids, which other values may get."""
        self._known[[id_ for id_ in ids if id_ < len(self._known)]] = False

    def _grow(self, size: int) -> None:
        """Make place for the hashes of `size` ids; doubles, so that many small additions cost little."""
        if len(self._known) < size:
            grown = max(size, 2 * len(self._known))
            self._hashes = np.concatenate([self._hashes, np.zeros(grown - len(self._hashes), np.int64)])
            self._known = np.concatenate([self._known, np.zeros(grown - len(self._known), np.bool_)])
