"""HalfJoin: one step of a pipeline of a delta query. It extends tuples by the rows of one or several arrangements.

    output  =  Σ over tuples (initial time s, time t) and rows (time u) of the extenders that agree with each other
               and are before s:   project(tuple, row) at  t ∨ u ...

*Before* is lexicographic on (initial time, number of the relation): rows of a strict extender count at times before s,
rows of any other extender also at s. So of the changes that contribute to one result, exactly the last finds all
others. Only the output time is the product join. The operator keeps no state except waiting tuples:

- A tuple is released when no element of any extender's frontier is lexicographically at or before its initial time. All
  rows it must be paired with are in the traces then.
- The since of the handles is (e − 1, 0, …), where e is the least epoch in flight. Further compaction would turn
  (e − 1, 9) into (e, 9), which is after (e, 3). With this since, all times before e stay before e, and the product join
  with a time of epoch e makes their other coordinates irrelevant.
- Times are joined with the `floor`: the least time beyond the since of every import of this dataflow.

`gates` are the extenders of later steps, given if this worker has all of their rows. If a gate has no row before s, the
tuple is dropped. When all relations are loaded in one epoch, all pipelines but one therefore end here.
Cost: for each tuple a search in each batch, then the rows of its cheapest extender (kpg.trace.extension). The few
tuples of a direct run are one kernel call (kpg.trace.extension_of_few).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from kpg.algebra.frontier import CLOSED, Frontier, minimal
from kpg.algebra.order import Time, join
from kpg.columns.selection import keep
from kpg.columns.updates import Updates, concatenate
from kpg.dataflow.operator import Inputs, Message, Operator, Times
from kpg.operators.arrange import Arranged
from kpg.operators.deferred_work import DeferredWork, updates_per_call
from kpg.operators.payload import FEW_ROWS, joined_updates
from kpg.trace.batch import Batch
from kpg.trace.batcher import earliest
from kpg.trace.extension import Extender, Extension, ExtensionShape
from kpg.trace.extension_of_few import MAX_EXTENDERS, MAX_TUPLES, ExtensionOfFew
from kpg.trace.handle import TraceHandle
from kpg.trace.search_table import SearchTable

ROWS_READ_PER_SENT = 8  # rows that are read in the time that it takes to send one


@dataclass(slots=True)
class Floor:
    """The least time beyond the since of every import of a dataflow. It is final when the dataflow is complete."""

    time: Time

    def raise_to(self, since: Frontier) -> None:
        """Raise the floor to the since of one more import."""
        for element in since.elements:
            self.time = join(self.time, element[: len(self.time)])

    def at(self, depth: int) -> Time:
        """Return the floor with `depth` coordinates, for use in a loop."""
        return self.time + (0,) * (depth - len(self.time))


class ExtenderIndex:
    """The index of an extender: the trace of an arrangement, and how its rows count."""

    def __init__(self, arranged: Arranged, extender: Extender, name: str) -> None:
        self.handle: TraceHandle | None = arranged.handle.clone(name)
        self.handle.set_physical(CLOSED)  # times decide which rows count, so batches may be merged across any frontier
        self.trace_depth = arranged.trace_depth
        self.extender = extender

    def batches(self) -> list[Batch]:
        """Return all non-empty batches."""
        return [] if self.handle is None else [batch for batch in self.handle.batches(None) if len(batch)]

    def search_table(self, keys: int) -> SearchTable | None:
        """Return the table of all batches, to search some keys; None while it is not available."""
        if self.handle is None or self.trace_depth > 1:
            return None
        spine = self.handle.spine
        found = spine.search_table(spine.upper, keys)
        return None if found is None else found[0]

    def release(self) -> None:
        """Release the trace."""
        if self.handle is not None:
            self.handle.release()
            self.handle = None


@dataclass(slots=True)
class WaitingTuples:
    """Tuples, their minimal times, and their least and greatest initial time.

    The operator holds these times while the tuples wait, not the times of their message. Those may be earlier, and the
    tuples could wait for a frontier that their own capability holds back.
    """

    tuples: Updates
    times: Times
    earliest: Time
    latest: Time

    @classmethod
    def of(cls, tuples: Updates) -> WaitingTuples:
        """Wrap some tuples with their bounds."""
        if tuples.depth == 1 and tuples.times.shape[1] == 1:
            time = (int(tuples.times[0, 0]),)
            return cls(tuples, (time,), time, time)
        return cls(tuples, earliest(tuples.times).elements, *initial_bounds(tuples))

    def and_then(self, later: WaitingTuples) -> WaitingTuples:
        """Return these tuples and others that arrived later."""
        tuples, times = concatenate([self.tuples, later.tuples]), minimal((*self.times, *later.times))
        return WaitingTuples(tuples, times, min(self.earliest, later.earliest), max(self.latest, later.latest))


class HalfJoin(Operator):
    """Extend tuples by arrangements. Input 0 are the tuples, input 1 all extenders and gates together.

    The operator follows only the frontier of input 1: rows are in the traces before the frontier passes them.
    """

    waits_for_frontier = True

    def __init__(
        self,
        name: str,
        extenders: Sequence[ExtenderIndex],
        gates: Sequence[ExtenderIndex],
        shape: ExtensionShape,
        floor: Floor,
    ) -> None:
        super().__init__(name)
        self.extenders = tuple(extenders)
        self.gates = tuple(gates)
        self.shape = shape
        self.floor = floor
        self.waiting: list[WaitingTuples] = []
        self.deferred: DeferredWork[Extension] = DeferredWork()
        self._extension_of_few: ExtensionOfFew | None = None
        self._proposed = 0  # rows read so far by the general path

    @property
    def proposed(self) -> int:
        """The number of rows read so far: the measure of worst-case optimality."""
        return self._proposed + (0 if self._extension_of_few is None else self._extension_of_few.proposed)

    # Compaction

    def follow_frontiers(self) -> None:
        """Tie the since of the traces to the earliest epoch in flight."""
        for index in (*self.extenders, *self.gates):
            if index.handle is not None:
                index.handle.follow(partial(self._since, index.trace_depth))

    def _since(self, depth: int) -> Frontier:
        epochs = [time[0] for time in (*self.frontier(0).elements, *self.held)]
        if not epochs:
            return CLOSED
        return Frontier.at(join(self.floor.at(depth), (min(epochs) - 1,) + (0,) * (depth - 1)))

    # Work

    def step(self, inputs: Inputs) -> bool:
        if self._extend_directly(inputs[0]):
            return False
        for tuples, _ in joined_updates(inputs[0]):
            self._let_wait(WaitingTuples.of(tuples))
        if self.depth > 1:  # before reading frontiers: the results of these tuples may come back through the loop
            self._hold()
        self._release_tuples()
        self.deferred.send_slice(self._next, self.send)
        self._hold()
        return bool(self.deferred)

    def _let_wait(self, tuples: WaitingTuples) -> None:
        """Let tuples wait, few of them together with at most as many before: of n messages, about log n parts are left.

        A step costs time for each part, and many epochs wait if the query lags.
        """
        while self.waiting and len(self.waiting[-1].tuples) <= len(tuples.tuples) <= FEW_ROWS:
            tuples = self.waiting.pop().and_then(tuples)
        self.waiting.append(tuples)

    def _extend_directly(self, messages: list[Message]) -> bool:
        """Extend the few tuples of a direct run, whose traces are complete. Return False if that is impossible."""
        worker = self.dataflow.worker
        if not worker.direct.active or len(messages) != 1 or self.held or self.depth > 1:
            return False
        tuples, clock = messages[0].payload, worker.clock.frontier.elements
        if not isinstance(tuples, Updates) or len(self.extenders) > MAX_EXTENDERS:
            return False
        if tuples.data.shape[1] > MAX_TUPLES or not tuples.data.shape[1] or int(tuples.times[0, 0]) >= clock[0][0]:
            return False
        tables = [index.search_table(tuples.data.shape[1]) for index in self.extenders]
        if None in tables:
            return False
        extended = self._few().extend(tuples, [table for table in tables if table is not None])
        if extended is None:
            return False
        if extended.data.shape[1]:
            self.send(extended, messages[0].times)
        return True

    def _few(self) -> ExtensionOfFew:
        if self._extension_of_few is None:
            extenders = [index.extender for index in self.extenders]
            self._extension_of_few = ExtensionOfFew(extenders, self.shape, self.floor.time[0])
        return self._extension_of_few

    def is_due(self) -> bool:
        passed = self._complete_before()
        return any(passed is None or waiting.earliest < passed for waiting in self.waiting)

    def _complete_before(self) -> Time | None:
        """Return the time before which, lexicographically, the traces are complete; None if they are final."""
        elements = self.frontier(1).elements
        return min(elements) if elements else None

    def _release_tuples(self) -> None:
        passed = self._complete_before() if self.waiting else None
        kept: list[WaitingTuples] = []
        for waiting in self.waiting:
            if passed is None or waiting.latest < passed:
                self._begin(waiting)
            elif waiting.earliest < passed:
                early = initial_before(waiting.tuples, passed)
                self._begin(WaitingTuples.of(keep(waiting.tuples, early)))
                kept.append(WaitingTuples.of(keep(waiting.tuples, ~early)))
            else:
                kept.append(waiting)
        self.waiting = kept

    def _begin(self, released: WaitingTuples) -> None:
        floor = self.floor.at(self.depth)
        batches = []
        for index in self.extenders:
            relevant = [batch for batch in index.batches() if may_extend(batch, index.extender, released.latest, floor)]
            if not relevant and not index.extender.negative:
                return
            batches.append(relevant)
        for gate in self.gates:
            if not any(may_extend(batch, gate.extender, released.latest, floor) for batch in gate.batches()):
                return
        extenders = [index.extender for index in self.extenders]
        self.deferred.append(Extension(released.tuples, extenders, batches, self.shape, floor), released.times)

    def _next(self, extension: Extension, _: int) -> tuple[Updates | None, int]:
        """Return more extended tuples, or None at the end, and the cost, which includes rows that extended no tuple."""
        before = extension.proposed
        updates = extension.next(updates_per_call())
        read = extension.proposed - before
        self._proposed += read
        return updates, 1 + read // ROWS_READ_PER_SENT + (0 if updates is None else len(updates))

    def _hold(self) -> None:
        times = [time for waiting in self.waiting for time in waiting.times] + list(self.deferred.times())
        self.hold(minimal(times) if times else ())

    # State

    def state(self) -> Iterator[Updates]:
        for waiting in self.waiting:
            yield waiting.tuples

    def release_unneeded(self) -> None:
        if self.frontier(0) == CLOSED and not self.held:
            self.release()

    def release(self) -> None:
        self.waiting.clear()
        self.deferred.clear()
        for index in (*self.extenders, *self.gates):
            index.release()


def may_extend(batch: Batch, extender: Extender, latest: Time, floor: Time) -> bool:
    """Return whether a batch may have a row that counts for a tuple with an initial time of at most `latest`."""
    for time in batch.earliest:
        if len(floor) == 1:
            advanced: Time = time if time >= floor else floor
        else:
            advanced = join(time + (0,) * (len(floor) - len(time)), floor)
        if advanced < latest or (advanced == latest and not extender.strict):
            return True
    return False


def initial_of(tuples: Updates) -> list[npt.NDArray[np.int64]]:
    """Return the coordinates of the initial times: the epoch of the time, and the rounds in the last lanes."""
    depth = tuples.depth
    return [tuples.times[0], *tuples.data[tuples.lanes - depth + 1 :]]


def initial_bounds(tuples: Updates) -> tuple[Time, Time]:
    """Return the lexicographically least and greatest initial time."""
    coordinates = initial_of(tuples)
    if len(coordinates) == 1:
        return (int(coordinates[0].min()),), (int(coordinates[0].max()),)
    n = len(tuples)
    bounds: list[Time] = []
    for choose in (np.min, np.max):
        chosen = np.ones(n, np.bool_)
        time: list[int] = []
        for lane in coordinates:
            lane = np.broadcast_to(lane, n)
            value = int(choose(lane[chosen]))
            time.append(value)
            chosen &= lane == value
        bounds.append(tuple(time))
    return bounds[0], bounds[1]


def initial_before(tuples: Updates, limit: Time) -> npt.NDArray[np.bool_]:
    """Return which tuples have an initial time lexicographically before a limit."""
    before = np.zeros(len(tuples), np.bool_)
    equal = np.ones(len(tuples), np.bool_)
    for lane, value in zip(initial_of(tuples), limit, strict=True):
        before |= equal & (lane < value)
        equal &= lane == value
    return before
