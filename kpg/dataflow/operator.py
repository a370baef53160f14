"""The operator: a node of a dataflow, a small class that a worker steps.

Contract between an operator and its worker:
- `step(inputs)` gets every queued message of each input; these no longer count as in flight, but until the step ends
  the operator may still send and hold at their times.                                                       [trusted]
- It sends only at times at or after a message of this step or a time it holds.                              [checked]
- It holds only such times; held times keep the frontiers behind it from passing.                            [checked]
- It is stepped again when a message arrives, when it said so by returning True, or, if `waits`, when the frontier of
  its input 0 has passed a time it holds. A change of frontier alone is not a step.
- All state is in fields; `release()` lets go of whatever outlives a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kpg.algebra.frontier import Frontier, minimal
from kpg.algebra.order import Time, less_equal
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates
from kpg.events import Events

if TYPE_CHECKING:
    from kpg.dataflow.channel import Channel
    from kpg.dataflow.graph import Dataflow

Times = tuple[Time, ...]
Inputs = list[list["Message"]]


class Message(NamedTuple):
    """A payload, and times that are together at or before all times within it."""

    times: Times
    payload: Any


class Operator:
    """A node of a dataflow. Subclasses implement `step`."""

    waits = False
    schema: Schema | None = None  # of the rows it keeps

    dataflow: Dataflow
    index: int
    entity: int  # its number in events
    depth: int
    input_locations: list[int]
    output_location: int

    def __init__(self, name: str) -> None:
        self.name = name
        self.held: Times = ()
        self.queues: Inputs = []
        self.channels: list[list[Channel]] = []
        self.scheduled = False
        self.in_idle_queue = False
        self._current: list[Time] = []
        self._cyclic: bool | None = None

    def step(self, inputs: Inputs) -> bool:
        """Do what can be done now; True asks to be stepped again."""
        raise NotImplementedError(self.name)

    def follow_frontiers(self) -> None:
        """The dataflow is built, so that frontiers mean something: before, a loop is open and seems to have ended."""

    def listen(self, events: Events | None) -> None:
        """Have what happens outside of steps told, beginning with what is there; None: no more."""

    def release(self) -> None:
        """Let go of everything held outside this dataflow."""

    def state(self) -> Iterator[Updates]:
        """The updates it keeps between steps; what their lanes mean is told by `schema`."""
        return iter(())

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        """The same with what their lanes mean, as far as that is known."""
        if self.schema is not None:
            for updates in self.state():
                yield self.schema, updates

    @property
    def keeps(self) -> bool:
        """Whether it keeps something that others read."""
        return False

    def tidy(self) -> None:
        """An input was closed somewhere: let go of what is not needed any more."""

    def idle_merge(self, fuel: int) -> bool:
        """Do about `fuel` rows of work that can wait; False when there is no more to do now."""
        return False

    @property
    def unsettled(self) -> bool:
        """Whether there is work that can wait, now or when times have moved on."""
        return False

    def frontier(self, input_index: int = 0) -> Frontier:
        """What may still arrive at an input."""
        return self.dataflow.tracker.frontier(self.input_locations[input_index])

    def output_frontier(self) -> Frontier:
        """What may still be sent."""
        return self.dataflow.tracker.frontier(self.output_location)

    def send(self, payload: Any, times: Times, port: int = 0) -> None:
        """Send a payload at times this operator may still use."""
        self._check(times)
        message = Message(times, payload)
        for channel in self.channels[port]:
            channel.send(message)

    def hold(self, times: Times) -> None:
        """Replace the times held: what this operator may still send at after this step."""
        if times == self.held:
            return
        self._check(times)
        update = self.dataflow.tracker.update
        for time in times:
            update(self.output_location, time, 1)
        for time in self.held:
            update(self.output_location, time, -1)
        self.held = times
        if self.waits:
            waiting = self.dataflow.worker.waiting
            if times:
                waiting.add(self)
            else:
                waiting.discard(self)

    def due(self) -> bool:
        """Whether the frontier of input 0 has passed a held time."""
        frontier = self.frontier(0)
        return any(not frontier.beyond(time) for time in self.held)

    def run(self) -> bool:
        """One step, with the accounting around it."""
        inputs = self.queues
        self.queues = [[] for _ in inputs]
        update = self.dataflow.tracker.update
        current: list[Time] = []
        for index, messages in enumerate(inputs):
            if messages:
                location, summary = self.input_locations[index], self.dataflow.internal[self.index][index]
                for message in messages:
                    for time in message.times:
                        update(location, time, -1)
                        current.append(time if summary.keeps else summary.apply(time))
        self._current = current
        again = self.step(inputs)
        self._current = []
        return again

    def _check(self, times: Times) -> None:
        if times is self.held:
            return
        for time in times:
            if time not in self._current and not self._may_use(time):
                usable = (*self._current, *self.held)
                raise AssertionError(f"{self.name} uses time {time}, but may only use what is at or after {usable}")

    def _may_use(self, time: Time) -> bool:
        return any(less_equal(usable, time) for usable in (*self._current, *self.held))

    @property
    def usable(self) -> Times:
        """The earliest times this operator may send at within this step."""
        return minimal((*self.held, *self._current)) if self._current else self.held

    @property
    def cyclic(self) -> bool:
        """Whether what it sends can come round to its own input 0."""
        if self._cyclic is None:
            paths = self.dataflow.reachability.paths_to(self.input_locations[0])
            self._cyclic = self.output_location in paths
        return self._cyclic
