"""Updates waiting for their times to be complete.

    seal(upper)  =  consolidate({(d, t, r) pushed and not yet sealed  |  t not beyond upper})

What was pushed is kept as one sorted run and a heap of parts as they came. A seal sorts only what it gives up. When the
heap outgrows the run (and a minimum), it is sorted and merged into the run: so each update is sorted once, merged a
constant number of times, and the memory held is linear in distinct (data, time), however many updates were pushed.
Where sorting found little to sum up, the heap may grow to `PATIENT` times the run before it is sorted again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time
from kpg.columns.consolidation import consolidate_all, shrink_block
from kpg.columns.updates import Ints, Updates, no_updates
from kpg.kernels.advance_times import minimal_times, split_times
from kpg.trace.description import elements
from kpg.trace.merger import merge_updates

HEAP_ROWS = 1 << 17
PATIENT = 4


class UnsealedPart(NamedTuple):
    """Some updates, the earliest of their times, and whether they are sorted and consolidated."""

    updates: Updates
    earliest: Frontier
    tidy: bool


class Batcher:
    """Collects updates, and gives up those before a frontier in order."""

    __slots__ = ("lanes", "depth", "width", "_nothing", "_run", "_heap", "_heap_rows", "_pending", "_patience")

    def __init__(self, lanes: int, depth: int, width: int = 1) -> None:
        self.lanes, self.depth, self.width = lanes, depth, width
        self._nothing = UnsealedPart(no_updates(lanes, depth, width), CLOSED, True)
        self._run = self._nothing
        self._heap: list[UnsealedPart] = []
        self._heap_rows = 0
        self._pending: Frontier | None = CLOSED  # known, or to be worked out
        self._patience = 1

    @property
    def rows(self) -> int:
        """How many updates are held."""
        return len(self._run.updates) + self._heap_rows

    @property
    def nbytes(self) -> int:
        """What the arrays of held updates hold."""
        return self._run.updates.nbytes + sum(part.updates.nbytes for part in self._heap)

    def pending(self) -> Frontier:
        """The earliest times among what is held."""
        if self._pending is None:
            found = self._run.earliest
            for part in self._heap:
                found = found.meet(part.earliest)
            self._pending = found
        return self._pending

    def parts(self) -> list[Updates]:
        """What is held, in no order."""
        return [part.updates for part in (self._run, *self._heap) if len(part.updates)]

    def push(self, updates: Updates, tidy: bool = False) -> None:
        """Take in updates; `tidy` promises that they are sorted and consolidated."""
        rows = updates.data.shape[1]
        if rows == 0:
            return
        part = UnsealedPart(updates, earliest(updates.times), tidy)
        self._heap.append(part)
        if self._pending is not None:
            self._pending = self._pending.meet(part.earliest)
        self._heap_rows += rows
        run = self._run.updates
        if self._heap_rows > HEAP_ROWS and len(self._heap) > 1 and self._heap_rows > self._patience * len(run):
            merged = merge_updates(run, _in_order(self._heap))
            self._patience = PATIENT if 4 * len(merged) > 3 * (len(run) + self._heap_rows) else 1
            self._run = self._part(merged)
            self._heap, self._heap_rows, self._pending = [], 0, None

    def seal(self, upper: Frontier) -> Updates:
        """Give up, sorted and consolidated, exactly the updates whose time is not beyond `upper`."""
        self._pending = None
        run, self._run = self._divide(self._run, upper)
        halves = [self._divide(part, upper) for part in self._heap]
        early = [before for before, _ in halves if len(before.updates)]
        late = [after for _, after in halves if len(after.updates)]
        del halves
        self._heap = late
        self._heap_rows = sum([len(part.updates) for part in late])
        if not early:
            return run.updates
        rows = sum([len(part.updates) for part in early])
        if len(run.updates) < rows and not all(part.tidy for part in early):
            if len(run.updates):
                early.append(run)
            del run  # to sort them all is less than to sort the most of them and merge
            return _in_order(early)
        return merge_updates(run.updates, _in_order(early))

    def _part(self, updates: Updates) -> UnsealedPart:
        """A sorted and consolidated part."""
        return UnsealedPart(updates, earliest(updates.times), True) if len(updates) else self._nothing

    def _divide(self, part: UnsealedPart, upper: Frontier) -> tuple[UnsealedPart, UnsealedPart]:
        """What is not beyond `upper`, and what is."""
        if part.earliest.elements and upper.precedes(part.earliest):
            return self._nothing, part
        updates = part.updates
        times = updates.times
        if times.shape[1] == 1 or not upper:  # its only time is not beyond, or nothing is
            return part, self._nothing
        n = times.shape[1]
        early, late = np.empty(n, np.int64), np.empty(n, np.int64)
        before = split_times(times, elements(upper, self.depth), early, late)
        if before == n:
            return part, self._nothing
        halves = _select(updates, early[:before]), _select(updates, late[: n - before])
        return UnsealedPart(halves[0], CLOSED, part.tidy), UnsealedPart(halves[1], earliest(halves[1].times), part.tidy)


def _in_order(parts: list[UnsealedPart]) -> Updates:
    """What the parts hold, in order; they are taken, so that a large load is not there twice while it is sorted."""
    if all(part.tidy for part in parts):
        return _merged([part.updates for part in parts])
    taken = [part.updates for part in parts]
    parts.clear()
    return consolidate_all(taken)


def _merged(runs: list[Updates]) -> Updates:
    """Sorted runs as one, the shortest first, so that no row is merged more often than need be."""
    while len(runs) > 1:
        runs.sort(key=len, reverse=True)
        runs.append(merge_updates(runs.pop(), runs.pop()))
    return runs[0]


def _select(updates: Updates, rows: Ints) -> Updates:
    diffs = updates.diffs if updates.diffs.shape[1] == 1 else shrink_block(updates.diffs.take(rows, axis=1), len(rows))
    times = shrink_block(updates.times.take(rows, axis=1), len(rows))
    return Updates(updates.data.take(rows, axis=1), times, diffs)


def earliest(times: Ints) -> Frontier:
    """The times with none other before them."""
    depth, n = times.shape
    if n == 1:
        time: Time = tuple(times[:, 0].tolist())
        return Frontier.at(time)
    if depth == 1:
        return Frontier.at((int(times.min()),))
    out = np.empty_like(times)
    kept = minimal_times(times, out)
    return Frontier([tuple(time) for time in out[:, :kept].T.tolist()])
