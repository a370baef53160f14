"""Named holds of external readers: a trace keeps its history from a time on until the reader releases the hold.

    put(name, installed, time)   readers can distinguish times from `time` on; a hold only moves forward
    between(…, start, end)       the updates at times in [start, end), unchanged if `start` is beyond the hold

A reader that has read everything before `start` holds start - 1: earlier times may be advanced to start - 1, never to
`start` itself. Times have one coordinate here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.columns.consolidation import consolidate
from kpg.columns.schema import Schema
from kpg.columns.selection import keep
from kpg.columns.updates import Ints, Updates, concatenate, constant, no_updates, spread
from kpg.errors import TimeTooEarly, UndefinedName
from kpg.trace.batch import Batch
from kpg.trace.handle import TraceHandle


class ReaderHold(NamedTuple):
    """A hold on one trace."""

    installed: InstalledArrangement
    handle: TraceHandle

    @property
    def since(self) -> int:
        """The first time that readers can distinguish."""
        return first_of(self.handle.since)


class ReaderHolds:
    """The holds of a rank."""

    def __init__(self) -> None:
        self._holds: dict[str, ReaderHold] = {}

    def put(self, name: str, installed: InstalledArrangement, time: int | None) -> int:
        """Begin a hold or move it forward; return its time. No time: as far back as can be read, or unchanged."""
        hold = self._holds.get(name)
        if hold is None or hold.installed is not installed:
            if hold is not None:
                hold.handle.release()
            handle = installed.handle.clone(f"reader {name}")
            handle.set_physical(CLOSED)
            hold = self._holds[name] = ReaderHold(installed, handle)
        if time is not None and time > hold.since:
            hold.handle.set_since(Frontier.at((time,)))
        if time is not None and time < hold.since:
            since = hold.since
            self.release(name)
            raise TimeTooEarly(
                f"{installed.name} cannot be followed from time {time + 1} any more",
                detail=f"Its history is kept since {since}.",
                hint="Give the reader a name, so that its history is kept, or open the db with history=; "
                "to continue from the current rows, begin with a new checkpoint.",
            )
        return hold.since

    def find(self, name: str) -> ReaderHold:
        """Return a hold by its name."""
        if name not in self._holds:
            raise UndefinedName(f"there is no reader {name}", hint="Its hold has ended: read again.")
        return self._holds[name]

    def release(self, name: str) -> None:
        """End a hold; may be repeated."""
        hold = self._holds.pop(name, None)
        if hold is not None:
            hold.handle.release()

    def names(self) -> list[str]:
        """Return the names of all holds."""
        return sorted(self._holds)


def between(hold: ReaderHold, schema: Schema, start: int, end: int) -> Updates:
    """Return the updates at times in [start, end), lanes as in `schema`; a start at or before the since means all."""
    parts = [within(batch.updates, start, end, hold.since) for batch in _overlapping(hold, start, end)]
    updates = concatenate([part for part in parts if len(part)] or [no_updates(schema.width, 1)])
    order = list(hold.installed.schema.lanes_of(schema.names))
    return consolidate(Updates(np.ascontiguousarray(updates.data[order]), updates.times, updates.diffs))


def counts_between(hold: ReaderHold, start: int, end: int) -> tuple[Ints, Ints]:
    """Return the times in [start, end) that have updates, and the number of updates at each."""
    parts = [within(batch.updates, start, end, hold.since) for batch in _overlapping(hold, start, end)]
    times = [spread(part.times, len(part))[0] for part in parts if len(part)]
    return np.unique(np.concatenate(times), return_counts=True) if times else (np.empty(0, np.int64),) * 2


def within(updates: Updates, start: int, end: int, since: int) -> Updates:
    """Return the updates at times in [start, end), times before the since advanced to it."""
    times = np.maximum(updates.times, since) if start <= since else updates.times
    advanced = Updates(updates.data, times, updates.diffs)
    if times.shape[1] == 1:
        return advanced if start <= int(times[0, 0]) < end else _none(updates)
    return keep(advanced, (times[0] >= start) & (times[0] < end))


def _none(updates: Updates) -> Updates:
    return Updates(updates.data[:, :0], updates.times, constant((1,)))


def _overlapping(hold: ReaderHold, start: int, end: int) -> list[Batch]:
    return [
        batch
        for batch in hold.handle.batches(None)
        if len(batch) and first_of(batch.lower) < end and (not batch.upper or first_of(batch.upper) > start)
    ]


def first_of(frontier: Frontier) -> int:
    """Return the one time of a frontier of one coordinate; a number beyond all times for the empty frontier."""
    return int(frontier.elements[0][0]) if frontier else 1 << 62
