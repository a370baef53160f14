"""Extend: one step of a delta query, a half join with one or several arrangements.

    output  =  Σ over tuples (initial time s, time t) and rows (time u) of the extenders that agree with each other
               and are before s:   project(tuple, row) at  t ∨ u ...

*Before* is lexicographic on (initial time, number of the relation): a strict extender's rows count at times before s,
another's also at s. So of the changes that meet in one result exactly one, the last, finds all others. Only the output
time is the product join. Nothing is kept but tuples that wait:

- A tuple is released when no element of any extender's frontier is lexicographically at or before its initial time:
  whatever it has to meet is in the traces then.
- The since of the handles is (e − 1, 0, …), e the least epoch in flight: to compact further would turn (e − 1, 9) into
  (e, 9), after (e, 3). All times before e stay before e, and the product join with a time of epoch e forgets the rest.
- Times are joined with the `floor`: the least time as of which everything this dataflow imports is known.

`gates` are the extenders of later steps, where this worker has all of them: if one holds nothing before s, the tuple
need not be extended at all. At the first load of all relations all but one of the delta queries end here.
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
from kpg.columns.updates import Updates
from kpg.dataflow.operator import Inputs, Operator, Times
from kpg.operators.arrange import Arranged
from kpg.operators.futures import SLICE, Futures
from kpg.operators.payload import updates_of
from kpg.trace.batch import Batch
from kpg.trace.batcher import earliest
from kpg.trace.extension import Extender, Extension, ExtensionShape
from kpg.trace.handle import TraceHandle

LOOKS = 8  # rows that are looked at in the time that it takes to send one


@dataclass(slots=True)
class Floor:
    """The least time that everything in a dataflow is known as of; it is final once the dataflow is built."""

    time: Time

    def raise_to(self, since: Frontier) -> None:
        """Take in what one more import is known as of."""
        for element in since.elements:
            self.time = join(self.time, element[: len(self.time)])

    def at(self, depth: int) -> Time:
        """The same inside a loop."""
        return self.time + (0,) * (depth - len(self.time))


class ExtenderIndex:
    """What this operator knows of one arrangement: its trace, and how its rows count."""

    def __init__(self, arranged: Arranged, extender: Extender, name: str) -> None:
        self.handle: TraceHandle | None = arranged.handle.clone(name)
        self.handle.set_physical(CLOSED)  # times tell what counts, so batches may be merged at will
        self.trace_depth = arranged.trace_depth
        self.extender = extender

    def batches(self) -> list[Batch]:
        """All batches with something in them."""
        return [] if self.handle is None else [batch for batch in self.handle.batches(None) if len(batch)]

    def release(self) -> None:
        """Let go of the trace."""
        if self.handle is not None:
            self.handle.release()
            self.handle = None


@dataclass(slots=True)
class WaitingTuples:
    """Tuples, their earliest times, and the least and greatest initial time among them.

    These times are held while they wait, and not those of the message they came in, which may be earlier: to hold an
    earlier time than one's own may be what one waits for.
    """

    tuples: Updates
    times: Times
    earliest: Time
    latest: Time

    @classmethod
    def of(cls, tuples: Updates) -> WaitingTuples:
        """Some tuples, to be released."""
        if tuples.depth == 1 and tuples.times.shape[1] == 1:
            time = (int(tuples.times[0, 0]),)
            return cls(tuples, (time,), time, time)
        return cls(tuples, earliest(tuples.times).elements, *initial_bounds(tuples))


class HalfJoin(Operator):
    """Extends tuples by arrangements. Input 0 are the tuples, input 1 all extenders and gates together.

    Of these only the frontier is followed: their rows are in the traces before it passes.
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
        self.futures: Futures[Extension] = Futures()
        self.proposed = 0  # rows looked at, over all time

    # Compaction

    def follow_frontiers(self) -> None:
        """Tie the traces' since to the tuples that are under way, once the operator is placed."""
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
        for message in inputs[0]:
            for tuples in updates_of(message.payload):
                if len(tuples):
                    self.waiting.append(WaitingTuples.of(tuples))
        if self.depth > 1:  # before frontiers are asked for: what these tuples lead to may come round
            self._hold()
        self._release_tuples()
        self.futures.work_off(self._next, self.send)
        self._hold()
        return bool(self.futures)

    def is_due(self) -> bool:
        passed = self._passed()
        return any(passed is None or each.earliest < passed for each in self.waiting)

    def _passed(self) -> Time | None:
        """All that is lexicographically before this time is in the traces; None if nothing more will come."""
        elements = self.frontier(1).elements
        return min(elements) if elements else None

    def _release_tuples(self) -> None:
        passed = self._passed() if self.waiting else None
        kept: list[WaitingTuples] = []
        for each in self.waiting:
            if passed is None or each.latest < passed:
                self._begin(each)
            elif each.earliest < passed:
                early = initial_before(each.tuples, passed)
                self._begin(WaitingTuples.of(keep(each.tuples, early)))
                kept.append(WaitingTuples.of(keep(each.tuples, ~early)))
            else:
                kept.append(each)
        self.waiting = kept

    def _begin(self, each: WaitingTuples) -> None:
        floor = self.floor.at(self.depth)
        batches = []
        for index in self.extenders:
            found = [batch for batch in index.batches() if may_count(batch, index.extender, each.latest, floor)]
            if not found and not index.extender.negative:
                return
            batches.append(found)
        for gate in self.gates:
            if not any(may_count(batch, gate.extender, each.latest, floor) for batch in gate.batches()):
                return
        extenders = [index.extender for index in self.extenders]
        self.futures.append(Extension(each.tuples, extenders, batches, self.shape, floor), each.times)

    def _next(self, extension: Extension, _: int) -> tuple[Updates | None, int]:
        """More extended tuples, None at their end; and what that costs, rows that were looked at in vain too."""
        before = extension.proposed
        updates = extension.next(SLICE)
        looked = extension.proposed - before
        self.proposed += looked
        return updates, 1 + looked // LOOKS + (0 if updates is None else len(updates))

    def _hold(self) -> None:
        under_way = [time for each in self.waiting for time in each.times] + list(self.futures.times())
        self.hold(minimal(under_way) if under_way else ())

    # State

    def state(self) -> Iterator[Updates]:
        for each in self.waiting:
            yield each.tuples

    def release_unneeded(self) -> None:
        if self.frontier(0) == CLOSED and not self.held:
            self.release()

    def release(self) -> None:
        self.waiting.clear()
        self.futures.clear()
        for index in (*self.extenders, *self.gates):
            index.release()


def may_count(batch: Batch, extender: Extender, latest: Time, floor: Time) -> bool:
    """Whether a batch may hold something that counts for an initial time of at most `latest`."""
    for time in batch.earliest:
        if len(floor) == 1:
            known: Time = time if time >= floor else floor
        else:
            known = join(time + (0,) * (len(floor) - len(time)), floor)
        if known < latest or (known == latest and not extender.strict):
            return True
    return False


def initial_of(tuples: Updates) -> list[npt.NDArray[np.int64]]:
    """The coordinates of the initial times: the epoch is that of the time, the rounds are the last lanes."""
    depth = tuples.depth
    return [tuples.times[0], *tuples.data[tuples.lanes - depth + 1 :]]


def initial_bounds(tuples: Updates) -> tuple[Time, Time]:
    """The least and greatest initial time, lexicographically."""
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
    """Which tuples have an initial time before a limit, lexicographically."""
    before = np.zeros(len(tuples), np.bool_)
    equal = np.ones(len(tuples), np.bool_)
    for lane, value in zip(initial_of(tuples), limit, strict=True):
        before |= equal & (lane < value)
        equal &= lane == value
    return before
