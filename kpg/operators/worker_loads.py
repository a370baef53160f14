"""A batcher for a reader of multisets that gets all rows of several workers: a load need not be sorted.

    seal(upper)  =  the updates pushed at times not beyond upper, each row once; sorted only where needed

If equal rows are always on one worker (`kpg.plan.placement`), messages of different workers have no row in common. So a
load that came as one consolidated message of each worker is complete as it is: a sort, which one worker does not need
for a single consolidated batch, would cost as much as all the rest of a transfer. The worker of a message is the owner
of the key of its first row. All other updates go through the batcher.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.columns.packed_updates import PackedUpdates
from kpg.columns.updates import Updates, concatenate
from kpg.trace.batcher import Batcher, earliest

MIN_LOAD_ROWS = 1 << 13  # fewer rows are sorted


class WorkerLoads(Batcher):
    """Collect updates; keep large messages of different workers apart until they are complete."""

    __slots__ = ("owner_of", "_loads")

    def __init__(self, lanes: int, depth: int, owner_of: Callable[[Updates], int]) -> None:
        super().__init__(lanes, depth)
        self.owner_of = owner_of  # the worker that has the rows of a message
        self._loads: dict[int, Updates] = {}

    @property
    def is_empty(self) -> bool:
        return not self._loads and super().is_empty

    @property
    def rows(self) -> int:
        return super().rows + sum(map(len, self._loads.values()))

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(load.nbytes for load in self._loads.values())

    def pending(self) -> Frontier:
        pending = super().pending()
        for load in self._loads.values():
            pending = pending.meet(earliest(load.times))
        return pending

    def parts(self) -> list[Updates]:
        return [*super().parts(), *self._loads.values()]

    def push(self, updates: Updates, consolidated: bool = False) -> None:
        if consolidated and len(updates) >= MIN_LOAD_ROWS and updates.times.shape[1] == 1 and super().is_empty:
            owner = self.owner_of(updates)
            if owner not in self._loads and all(load.times == updates.times for load in self._loads.values()):
                self._loads[owner] = updates
                return
        self._sort_loads()
        super().push(updates, consolidated)

    def seal(self, upper: Frontier) -> Updates:
        loads = list(self._loads.values())
        if loads and super().is_empty and not upper.precedes(earliest(loads[0].times)):
            self._loads = {}
            return concatenated_loads(loads)
        self._sort_loads()
        return super().seal(upper)

    def _sort_loads(self) -> None:
        loads, self._loads = self._loads, {}
        for load in loads.values():
            super().push(load, True)


def concatenated_loads(loads: list[Updates]) -> Updates:
    """Return loads of one time as one; packed ones are unpacked where their rows stay."""
    if len(loads) == 1 or not all(load.diffs.shape[1] == 1 and load.diffs == loads[0].diffs for load in loads):
        return concatenate(loads)
    data, end = np.empty((loads[0].lanes, sum(map(len, loads))), np.int64), 0
    for load in loads:
        begin, end = end, end + len(load)
        if isinstance(load, PackedUpdates):
            load.unpack_into(data[:, begin:end])
        else:
            data[:, begin:end] = load.data
    return Updates(data, loads[0].times, loads[0].diffs)
