"""How far back relations can be read, and what is made of them.

    of one relation    the last sealed time, or as far back as history= asks, or as its slowest reader needs;
                       but no earlier than what was found on disk
    of several         the join: what is made of them can be told apart where each of them can

It only advances, and is the same function of the same facts on all workers.
"""

from __future__ import annotations

from functools import reduce

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, join, meet
from kpg.storage.named_readers import NamedReader

ANY = frozenset({""})  # a relation that nobody has heard of


class HistoryHorizon:
    """What is known of relations' pasts: since when each was found on disk, and who reads it."""

    def __init__(self, start: Time, found: dict[str, Frontier], readers: dict[str, NamedReader]) -> None:
        self.readers = readers
        self._start = start
        self._found = {name: since.elements[0] for name, since in found.items()}

    def of(self, last: Time | None, relations: frozenset[str] | None) -> Frontier:
        """Since when what is made of some relations, or of any, can be read; all is kept if there is no `last`."""
        if not self._found and not self.readers:
            return Frontier.at(self._start if last is None else join(last, self._start))
        names = relations or (ANY if relations is not None else ANY | self._found.keys())
        return Frontier.at(reduce(join, [self._of_one(last, name) for name in names]))

    def _of_one(self, last: Time | None, relation: str) -> Time:
        earliest = self._found.get(relation, self._start)
        if last is None:
            return earliest
        return join(reduce(meet, [each.time for each in self.readers.values() if each.reads(relation)], last), earliest)
