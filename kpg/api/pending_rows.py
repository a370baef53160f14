"""The pending rows of a db: inserted, but not yet part of an epoch. This object is their only owner.

    add(name, updates)      an input accepts rows
    of(name), take(name)    the rows of one input, in the order of insertion
    mark, restore           undo the inserts of a transaction that failed

Inputs, transactions, the log and the search for symbols in use all read it. Adding costs one list append, and a mark
one dictionary entry for each input that has ever had rows; no row is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, join, least
from kpg.columns.updates import Updates


class PendingMark(NamedTuple):
    """The state of the pending rows at one moment."""

    time: Frontier  # the open times at that moment
    lengths: dict[str, int]  # of each input's list of updates
    latest: dict[str, Time]


class PendingRows:
    """Rows by the name of their input, and the latest time at which each input ever had rows."""

    def __init__(self, coordinates: int) -> None:
        self._updates: dict[str, list[Updates]] = {}  # an input without pending rows has no entry
        self._latest: dict[str, Time] = {}
        self._start = least(coordinates)

    def add(self, name: str, updates: Updates) -> None:
        """Accept rows of an input."""
        self._updates.setdefault(name, []).append(updates)
        times = updates.times
        if times.size == 1:
            latest: Time = (times.item(),)
        else:
            latest = tuple((times[:, 0] if times.shape[1] == 1 else times.max(axis=1)).tolist())
        known = self._latest.get(name)
        if known != latest:
            is_later = known is None or (len(latest) == 1 and known < latest)
            self._latest[name] = latest if known is None or is_later else join(known, latest)

    def of(self, name: str) -> list[Updates]:
        """Return the pending rows of an input."""
        return self._updates.get(name, [])

    def latest(self, name: str) -> Time:
        """Return the join of all times at which an input ever had rows."""
        return self._latest.get(name, self._start)

    def are_few(self, limit: int, time: Frontier) -> bool:
        """Return whether all pending rows are at the open time and not more than `limit`."""
        rows, elements = 0, time.elements
        for name, parts in self._updates.items():
            if (self._latest[name],) != elements:
                return False
            for updates in parts:
                rows += updates.data.shape[1]
        return rows <= limit

    def take(self, name: str) -> list[Updates]:
        """Return the pending rows of an input, which become part of the open epoch."""
        return self._updates.pop(name, [])

    def discard(self) -> None:
        """Drop all pending rows."""
        self._updates.clear()

    def forget(self, name: str) -> None:
        """Drop everything about an input that no longer exists."""
        self._updates.pop(name, None)
        self._latest.pop(name, None)

    # Undo

    def mark(self, time: Frontier) -> PendingMark:
        """Return the present state, to restore later."""
        lengths = {name: len(updates) for name, updates in self._updates.items()}
        return PendingMark(time, lengths, self._latest.copy())

    def restore(self, mark: PendingMark, time: Frontier) -> None:
        """Drop the rows that were added after a mark; do nothing once the clock has moved, for they are committed."""
        if time != mark.time:
            return
        for name in tuple(self._updates):
            del self._updates[name][mark.lengths.get(name, 0) :]
            if not self._updates[name]:
                del self._updates[name]
        self._latest = mark.latest.copy()

    # The names of the inputs with pending rows

    def __len__(self) -> int:
        return len(self._updates)

    def __iter__(self) -> Iterator[str]:
        return iter(self._updates)

    def __contains__(self, name: object) -> bool:
        return name in self._updates
