"""Updates waiting for their times to be complete.

    seal(upper)  =  consolidate({(d, t, r) pushed and not yet sealed  |  t not beyond upper})

What was pushed is kept as one sorted run and a heap of raw parts; when the heap outgrows the run (and a floor), it is
sorted and merged into the run. So each update is sorted once, merged a constant number of times, and the memory held
is linear in distinct (data, time), however many updates were pushed.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.consolidate import consolidate, shrunk
from kpg.columns.updates import Ints, Updates, concatenate, no_updates
from kpg.kernels.advance import minimal, split
from kpg.trace.description import elements
from kpg.trace.merger import merge_updates

HEAP_ROWS = 1 << 18


class Batcher:
    """Collects updates, and gives up those before a frontier in order."""

    __slots__ = ("lanes", "depth", "width", "_run", "_heap", "_heap_rows", "_tidy", "_pending")

    def __init__(self, lanes: int, depth: int, width: int = 1) -> None:
        self.lanes, self.depth, self.width = lanes, depth, width
        self._run = no_updates(lanes, depth, width)
        self._heap: list[Updates] = []
        self._heap_rows = 0
        self._tidy = False  # the heap is one part, in order
        self._pending: Frontier | None = CLOSED

    @property
    def rows(self) -> int:
        """How many updates are held."""
        return len(self._run) + self._heap_rows

    @property
    def nbytes(self) -> int:
        """What the arrays of held updates hold."""
        return self._run.nbytes + sum(part.nbytes for part in self._heap)

    def push(self, updates: Updates, tidy: bool = False) -> None:
        """Take in updates; `tidy` promises that they are sorted and consolidated."""
        n = len(updates)
        if n == 0:
            return
        self._tidy = tidy and not self._heap
        self._heap.append(updates)
        self._heap_rows += n
        self._pending = None
        if self._heap_rows > HEAP_ROWS and self._heap_rows > len(self._run) and len(self._heap) > 1:
            self._sort()

    def seal(self, upper: Frontier) -> Updates:
        """Give up, sorted and consolidated, exactly the updates whose time is not beyond `upper`."""
        self._sort()
        run = self._run
        nothing = no_updates(self.lanes, self.depth, self.width)
        if len(run) == 0:
            return nothing
        if not upper:
            self._keep(nothing)
            return run
        frontier = elements(upper, self.depth)
        columns = run.times.shape[1]
        early, late = np.empty(columns, np.int64), np.empty(columns, np.int64)
        n = split(run.times, frontier, early, late)
        if n == columns:
            self._keep(nothing)
            return run
        if n == 0:
            return nothing
        self._keep(_select(run, late[: columns - n]))
        return _select(run, early[:n])

    def pending(self) -> Frontier:
        """The earliest times among what is held."""
        if self._pending is None:
            self._pending = Frontier(
                time for part in (self._run, *self._heap) if len(part) for time in earliest(part.times)
            )
        return self._pending

    def parts(self) -> list[Updates]:
        """What is held, in no order."""
        return [part for part in (self._run, *self._heap) if len(part)]

    def _keep(self, run: Updates) -> None:
        self._run = run
        self._pending = None if len(run) else CLOSED

    def _sort(self) -> None:
        if not self._heap:
            return
        part = concatenate(self._heap)
        if not self._tidy:
            part = consolidate(part)
        self._heap = []
        self._heap_rows = 0
        self._tidy = False
        self._run = merge_updates(self._run, part)
        self._pending = None


def _select(updates: Updates, rows: Ints) -> Updates:
    n = len(rows)
    diffs = updates.diffs if updates.diffs.shape[1] == 1 else shrunk(updates.diffs.take(rows, axis=1), n)
    return Updates(updates.data.take(rows, axis=1), shrunk(updates.times.take(rows, axis=1), n), diffs)


def earliest(times: Ints) -> list[tuple[int, ...]]:
    """The times with none other before them."""
    if times.shape[0] == 1:
        return [(int(times.min()),)]
    out = np.empty_like(times)
    n = minimal(times, out)
    return [tuple(time) for time in out[:, :n].T.tolist()]
