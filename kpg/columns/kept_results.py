"""The results of a function of one text column, kept by symbol: the function runs once for each distinct symbol.

    kept.split(ids)          the result of each row that is known, and the rows that are not
    kept.add(ids, results)   results to keep

A result is valid until symbols are reclaimed, since ids may then stand for other values; all results are then dropped,
and with them what they hold of reclaimed symbols. Symbols with ids beyond MAX_KEPT_SYMBOLS are not kept. If symbols do
not come again, as in a column of comments, nothing is kept any more. The memory is 9 bytes for each symbol of the db up
to the limit. A row costs two lookups by address.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints

MAX_KEPT_SYMBOLS = 1_000_000  # so that a function keeps at most 9 MB
TRIED_SYMBOLS = 50_000  # results that are kept before their use is judged
MIN_HITS_PER_RESULT = 0.25  # rows served by a kept result, for each result, that pay for keeping them


class KeptResults:
    """Results of one function by symbol id."""

    __slots__ = ("_generation", "_hits", "_known", "_results", "_stored", "_symbols", "is_useful")

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        self._stored = self._hits = 0
        self.is_useful = True
        self._clear()

    def _clear(self) -> None:
        self._generation = self._symbols.generation
        self._known: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._results: Ints = np.empty(0, np.int64)

    def split(self, ids: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Return a result for each row, and whether it is still to be computed."""
        if self._generation != self._symbols.generation:
            self._clear()
        if not len(self._known):
            return np.zeros(len(ids), np.int64), np.ones(len(ids), np.bool_)
        within = (ids >= 0) & (ids < len(self._known))
        slots = np.where(within, ids, 0)
        missing = ~(within & self._known[slots])
        self._hits += len(ids) - int(np.count_nonzero(missing))
        return self._results[slots], missing

    def add(self, ids: Ints, results: Ints) -> None:
        """Keep results, if keeping them has paid so far."""
        if self._stored > TRIED_SYMBOLS and self._hits < self._stored * MIN_HITS_PER_RESULT:
            self.is_useful = False
            self._clear()
            return
        chosen = (ids >= 0) & (ids < MAX_KEPT_SYMBOLS)
        ids, results = ids[chosen], results[chosen]
        if len(ids):
            self._grow(int(ids.max()) + 1)
            self._stored += int(np.count_nonzero(~self._known[ids]))
            self._known[ids] = True
            self._results[ids] = results

    def _grow(self, size: int) -> None:
        if size > len(self._known):
            size = min(MAX_KEPT_SYMBOLS, max(size, 2 * len(self._known)))
            known, results = np.zeros(size, np.bool_), np.zeros(size, np.int64)
            known[: len(self._known)] = self._known
            results[: len(self._results)] = self._results
            self._known, self._results = known, results
