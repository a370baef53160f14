"""Fair shares: which of the busy dataflows of a worker runs next.

    of the owners with a dataflow that does not wait for the helper thread, the one that has used the least time is next
    of the dataflows of this owner, the one that has used the least time runs

An owner is a session or tenant. A dataflow without one is an owner of its own. A dataflow of several, which share an
answer, runs in the share of the one with the fewest dataflows; with more than MAX_OWNERS it has its own. So the share
of a client does not depend on the number of dataflows that others have.

An owner or dataflow that becomes busy starts from its own used time, but at most HEAD_START_SECONDS below the least of
the busy ones. So light work runs before heavy work, and a heavy dataflow still proceeds while light ones come and go.
Cost: two heap operations for each choice, and one for each operator.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import count
from operator import attrgetter
from typing import Any, Final, Generic, Protocol, TypeVar

from kpg.dataflow.graph import HEAVY_SECONDS, Dataflow
from kpg.dataflow.operator import Operator

HEAD_START_SECONDS = (
    0.05  # work that a dataflow does before those that were busy already: more than a light query needs
)
OWNER_NUMBERS: Final = count(1)
dataflow_count_of: Final = attrgetter("dataflow_count")

ReadyOperator = tuple[int, int, Operator]  # the order within the worker, a number that differs, the operator


class Sharer(Protocol):
    """A dataflow, or an owner of several."""

    id: int
    used_seconds: float  # on a scale that all have in common
    has_share: bool  # whether it is among those that take turns

    @property
    def is_busy(self) -> bool:
        """Whether it has work."""

    @property
    def is_waiting(self) -> bool:
        """Whether all its work waits for the helper thread."""


Member = TypeVar("Member", bound=Sharer)


class ShareQueue(Generic[Member]):
    """The dataflows or owners that take turns: the busy ones, and some that were busy before."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, Member]] = []  # the used time when it was added, which may have grown
        self._least = 0.0  # the used time of the one that was chosen last

    def __iter__(self) -> Iterator[Member]:
        return (member for _, _, member in self.heap)

    def enter(self, member: Member) -> None:
        """Let a dataflow or owner take turns while it is busy."""
        if member.is_busy and not member.has_share:
            member.has_share = True
            member.used_seconds = max(member.used_seconds, self._least - HEAD_START_SECONDS)
            self._push(member)

    def _push(self, member: Member) -> None:
        heapq.heappush(self.heap, (member.used_seconds, member.id, member))

    def choose(self) -> Member | None:
        """Remove and return the busy one that has used the least time and does not wait, if there is one."""
        waiting, chosen = [], None
        while self.heap and chosen is None:
            used, _, member = heapq.heappop(self.heap)
            if used < member.used_seconds:
                self._push(member)
            elif member.is_waiting:
                waiting.append(member)
            else:
                member.has_share = False
                if member.is_busy:
                    self._least = max(self._least, member.used_seconds)
                    chosen = member
        for member in waiting:
            self._push(member)
        return chosen

    def forget_idle(self) -> bool:
        """Remove those at the front that are not busy; return whether some are."""
        while self.heap and not self.heap[0][2].is_busy:
            heapq.heappop(self.heap)[2].has_share = False
        return bool(self.heap)

    def clear(self) -> None:
        """Remove all."""
        for member in self:
            member.has_share = False
        self.heap.clear()


class ShareOwner:
    """A session or tenant, whose dataflows divide its share of the time of one worker."""

    def __init__(self) -> None:
        self.id = -next(OWNER_NUMBERS)  # unlike the ids of dataflows
        self.dataflow_count = 0  # of those that it owns, alone or with others
        self.used_seconds = 0.0
        self.busy_seconds = 0.0  # that its dataflows have worked since one of them became busy
        self.has_share = False
        self.queue: ShareQueue[Dataflow] = ShareQueue()

    @property
    def is_busy(self) -> bool:
        """Whether a dataflow of it has work; if none has, none takes turns."""
        return self.queue.forget_idle()

    @property
    def is_waiting(self) -> bool:
        """Whether each dataflow of it that has work waits for the helper thread."""
        return self.is_busy and all(dataflow.is_waiting or not dataflow.is_busy for dataflow in self.queue)

    @property
    def is_heavy(self) -> bool:
        """Whether it has been busy for longer than light work takes."""
        return self.busy_seconds >= HEAVY_SECONDS


class FairShares:
    """The busy dataflows of a worker, and the operators of each that are ready to step."""

    def __init__(self) -> None:
        self._queue: ShareQueue[Dataflow | ShareOwner] = ShareQueue()
        self._owner: ShareOwner | None = None  # of the dataflow that was chosen last, if it has one

    def __bool__(self) -> bool:
        heap = self._queue.heap
        return bool(heap) and any(member.is_busy for _, _, member in heap)  # mostly there is nothing: no further call

    def add(self, ready: ReadyOperator) -> None:
        """Add an operator that is ready to step."""
        order, _, operator = ready
        operator.dataflow.ready.add(operator, later=order != operator.order)
        self.enter(operator.dataflow)

    def enter(self, dataflow: Dataflow) -> None:
        """Let a dataflow take turns while it is busy."""
        if dataflow.has_share:
            return
        owner = owner_of(dataflow)
        if owner is None:
            self._queue.enter(dataflow)
        else:
            owner.queue.enter(dataflow)
            self._queue.enter(owner)

    def choose(self) -> Dataflow | None:
        """Remove and return the dataflow that runs next, if there is one that is busy and does not wait."""
        member = self._queue.choose()
        if not isinstance(member, ShareOwner):
            self._owner = None
            return member
        self._owner = member
        dataflow = member.queue.choose()
        self._queue.enter(member)  # for its other dataflows
        return dataflow

    def is_heavy(self, dataflow: Dataflow) -> bool:
        """Return whether the dataflow that was chosen, or its owner, has been busy for longer than light work takes."""
        return dataflow.is_heavy or (self._owner is not None and self._owner.is_heavy)

    def awaited(self) -> list[Future[Any]]:
        """Return the results that dataflows wait for."""
        steps = [dataflow.paused_step for dataflow in self._dataflows() if dataflow.is_waiting]
        return [step.awaited for step in steps if step is not None and step.awaited is not None]

    def _dataflows(self) -> Iterator[Dataflow]:
        for member in self._queue:
            if isinstance(member, ShareOwner):
                yield from member.queue
            else:
                yield member

    def use(self, dataflow: Dataflow, seconds: float) -> None:
        """Add time that a dataflow has used, but not in a turn."""
        dataflow.used_seconds += seconds
        owner = owner_of(dataflow)
        if owner is not None:
            owner.used_seconds += seconds

    def charge(self, dataflow: Dataflow, seconds: float) -> None:
        """Add time to the dataflow that was chosen; it stays if it is still busy."""
        dataflow.used_seconds += seconds
        if self._owner is not None:
            self._owner.used_seconds += seconds
            self._owner.busy_seconds += seconds
        if dataflow.is_busy:
            dataflow.busy_seconds += seconds
            self.enter(dataflow)
        else:
            dataflow.busy_seconds = 0.0
        if self._owner is not None and not self._owner.is_busy:
            self._owner.busy_seconds = 0.0

    def clear(self) -> list[Dataflow]:
        """Remove and return all busy dataflows."""
        busy = sorted((dataflow for dataflow in self._dataflows() if dataflow.is_busy), key=lambda each: each.id)
        for member in self._queue:
            if isinstance(member, ShareOwner):
                member.queue.clear()
                member.busy_seconds = 0.0
        self._queue.clear()
        return busy


def owner_of(dataflow: Dataflow) -> ShareOwner | None:
    """Return the owner in whose share a dataflow runs: of several, the one with the fewest dataflows."""
    return min(dataflow.owners, key=dataflow_count_of, default=None) if dataflow.owners else None
