"""Fair shares: which of the busy dataflows of a worker runs next.

    of those that do not wait for the helper thread, the dataflow that has used the least time runs next

A dataflow that becomes busy starts from its own used time, but at most HEAD_START_SECONDS below the least of the busy
ones. So light work runs before heavy work, and a heavy dataflow still proceeds while light ones come and go.
Cost: a heap operation for each choice and each operator.
"""

from __future__ import annotations

import heapq
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from kpg.dataflow.operator import Operator

if TYPE_CHECKING:
    from kpg.dataflow.graph import Dataflow

HEAD_START_SECONDS = (
    0.05  # work that a dataflow does before those that were busy already: more than a light query needs
)

ReadyOperator = tuple[int, int, Operator]  # the order within the worker, a number that differs, the operator


class FairShares:
    """The busy dataflows of a worker, and the operators of each that are ready to step."""

    def __init__(self) -> None:
        self._busy: list[tuple[float, int, Dataflow]] = []
        self._least = 0.0  # the used time of the dataflow that was chosen last

    def __bool__(self) -> bool:
        return bool(self._busy) and any(dataflow.is_busy for _, _, dataflow in self._busy)

    def add(self, ready: ReadyOperator) -> None:
        """Add an operator that is ready to step."""
        order, _, operator = ready
        operator.dataflow.ready.add(operator, later=order != operator.order)
        self.enter(operator.dataflow)

    def enter(self, dataflow: Dataflow) -> None:
        """Let a dataflow take turns while it is busy."""
        if dataflow.is_busy and not dataflow.has_share:
            dataflow.has_share = True
            dataflow.used_seconds = max(dataflow.used_seconds, self._least - HEAD_START_SECONDS)
            heapq.heappush(self._busy, (dataflow.used_seconds, dataflow.id, dataflow))

    def choose(self) -> Dataflow | None:
        """Remove and return the busy dataflow that has used the least time and does not wait, if there is one."""
        waiting, chosen = [], None
        while self._busy and chosen is None:
            entry = heapq.heappop(self._busy)
            dataflow = entry[2]
            if dataflow.is_waiting:
                waiting.append(entry)
            else:
                dataflow.has_share = False
                if dataflow.is_busy:
                    self._least = max(self._least, dataflow.used_seconds)
                    chosen = dataflow
        for entry in waiting:
            heapq.heappush(self._busy, entry)
        return chosen

    def awaited(self) -> list[Future[Any]]:
        """Return the results that dataflows wait for."""
        steps = [dataflow.paused_step for _, _, dataflow in self._busy if dataflow.is_waiting]
        return [step.awaited for step in steps if step is not None and step.awaited is not None]

    def charge(self, dataflow: Dataflow, seconds: float) -> None:
        """Add time to a dataflow that was chosen; it stays if it is still busy."""
        dataflow.used_seconds += seconds
        if dataflow.is_busy:
            dataflow.busy_seconds += seconds
            self.enter(dataflow)
        else:
            dataflow.busy_seconds = 0.0

    def clear(self) -> list[Dataflow]:
        """Remove and return all busy dataflows."""
        busy = [dataflow for _, _, dataflow in sorted(self._busy, key=lambda entry: entry[1]) if dataflow.is_busy]
        for _, _, dataflow in self._busy:
            dataflow.has_share = False
        self._busy.clear()
        return busy
