"""The earliest time at which relations, and the collections computed from them, can be read.

    of one relation    the last sealed time, or earlier as history= or its slowest reader asks;
                       but no earlier than the since that was recovered from disk
    of several         the join: a collection of several relations distinguishes the times that each of them does

It only advances. All workers know the same readers and agree on the sinces when they begin, so all compute the same
horizon. The cost is one pass
over the readers.
"""

from __future__ import annotations

from functools import reduce

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, join, meet
from kpg.storage.named_readers import NamedReader

UNKNOWN_RELATION = frozenset({""})  # stands for any relation without a recovered past


class HistoryHorizon:
    """The since of each relation that was recovered from disk, and the named readers."""

    def __init__(self, start: Time, recovered: dict[str, Frontier], readers: dict[str, NamedReader]) -> None:
        self.readers = readers
        self._start = start
        self.recovered = {name: since.elements[0] for name, since in recovered.items()}

    def of(self, last: Time | None, relations: frozenset[str] | None) -> Frontier:
        """Return the horizon of some relations, or of all; `last` is the latest it may be, None to keep all history."""
        if not self.recovered and not self.readers:
            return Frontier.at(self._start if last is None else join(last, self._start))
        names = relations or (UNKNOWN_RELATION if relations is not None else UNKNOWN_RELATION | self.recovered.keys())
        return Frontier.at(reduce(join, [self._of_one(last, name) for name in names]))

    def _of_one(self, last: Time | None, relation: str) -> Time:
        earliest = self.recovered.get(relation, self._start)
        if last is None:
            return earliest
        times = [reader.time for reader in self.readers.values() if reader.reads(relation)]
        return join(reduce(meet, times, last), earliest)
