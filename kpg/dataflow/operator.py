"""The operator: a node of a dataflow, which a worker steps.

Contract between an operator and its worker. An assertion enforces the rules marked [checked] in each step. Nothing
enforces those marked [trusted].
- `step(inputs)` receives every queued message of each input. These messages no longer count as in flight, but until the
  step ends the operator may still send and hold at their times.                                             [trusted]
- It sends only at times at or after the time of a message of this step, or a time it holds.                  [checked]
- It holds only such times. A held time is a capability: the frontiers downstream do not pass it.             [checked]
- The worker steps it again when a message arrives, when `step` returned True, or, if `waits_for_frontier`, when the
  frontier of its input 0 has passed a time it holds. A change of a frontier alone does not cause a step.
- All state is in fields. `release()` gives up everything that outlives the dataflow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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


new_tuple = tuple.__new__


class Message(NamedTuple):
    """A payload, and times such that each of its updates is at or after one of them."""

    times: Times
    payload: Any


class Operator(ABC):
    """A node of a dataflow. Subclasses implement `step`."""

    waits_for_frontier = False
    publishes = False  # whether other dataflows may import its output
    begins_round = False  # whether its output begins the next round of a loop
    enters_loop = False  # whether its output is that of its input, in round 0 of a loop
    may_take_long = False  # whether peers must not wait for a step of it: what they wait for is sent before
    schema: Schema | None = None  # of the rows it keeps; None if unknown
    cpu_seconds = 0.0  # of its steps, if a guard measures them (kpg/api/usage_guard.py)
    relations: tuple[str, ...] = ()  # the relations of a program that it computes, or part of which it computes

    dataflow: Dataflow
    index: int
    order: int  # of all operators of the worker: after those it reads, except in loops
    entity: int  # its number in events: see kpg.events
    depth: int
    unit: Operator | None = None  # the loop that it is a member of, if direct runs step the loop as a whole
    input_locations: list[int]
    output_location: int

    def __init__(self, name: str) -> None:
        self.name = name
        self.held: Times = ()
        self.queues: Inputs = []
        self.channels: list[list[Channel]] = []
        self.scheduled = False
        self.in_idle_queue = False
        self.current: list[Time] = []  # the times of the messages of this step: it may send and hold at them
        self._taken: list[tuple[int, Times]] = []  # the input location and the times of each of these messages
        self._is_cyclic: bool | None = None

    @abstractmethod
    def step(self, inputs: Inputs) -> bool:
        """Process the messages. Return True to be stepped again."""

    def follow_frontiers(self) -> None:
        """Tie the since of traces to frontiers. Called when all loops are closed; an open one seems to have ended."""

    def set_events(self, events: Events | None) -> None:
        """Log events that happen outside of steps, beginning with the present state; None stops logging."""

    def release(self) -> None:
        """Give up everything held outside this dataflow."""

    def state(self) -> Iterator[Updates]:
        """Yield the updates it keeps between steps. `schema` describes their lanes."""
        return iter(())

    def state_size(self) -> tuple[int, int]:
        """Return the rows and the bytes that it keeps, also in the middle of a step."""
        rows = nbytes = 0
        for updates in self.state():
            rows += len(updates)
            nbytes += updates.nbytes
        return rows, nbytes

    def relation_sizes(self) -> Iterator[tuple[str, int, int]]:
        """Yield the relations that it computes, with the rows and the bytes that it keeps of each."""
        if self.relations:
            yield self.relations[0], *self.state_size()

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the updates it keeps between steps with their schema, as far as that is known."""
        if self.schema is not None:
            for updates in self.state():
                yield self.schema, updates

    @property
    def has_readers(self) -> bool:
        """Whether it keeps a trace that other operators or the program read."""
        return False

    def release_unneeded(self) -> None:
        """Release state that no later step can need. Called after an input of the database was closed."""

    def idle_merge(self, fuel: int) -> bool:
        """Do about `fuel` rows of idle work. Return whether more is left to do now."""
        return False

    @property
    def unsettled(self) -> bool:
        """Whether it has idle work, now or when frontiers have advanced."""
        return False

    def frontier(self, input_index: int = 0) -> Frontier:
        """Return the frontier of an input on this worker."""
        return self.dataflow.tracker.local_frontier(self.input_locations[input_index])

    def output_frontier(self) -> Frontier:
        """Return a frontier of the output that holds on all workers."""
        return self.dataflow.tracker.frontier(self.output_location)

    def send(self, payload: Any, times: Times, port: int = 0) -> None:
        """Send a payload at times this operator may still use."""
        if len(times) != 1 or times[0] not in self.current:  # else there is nothing to check
            self._check(times)
        message = new_tuple(Message, (times, payload))  # without the Python function that `Message(...)` calls
        for channel in self.channels[port]:
            channel.send(message)

    def hold(self, times: Times) -> None:
        """Replace the held times: after this step, the operator may send at or after these only."""
        if times == self.held:
            return
        self._check(times)
        direct = self.dataflow.worker.direct
        if direct.active:
            direct.end()
        update = self.dataflow.tracker.update
        for time in times:
            update(self.output_location, time, 1)
        for time in self.held:
            update(self.output_location, time, -1)
        self.held = times
        if self.waits_for_frontier:
            self.dataflow.set_waiting(self, bool(times))

    def is_due(self) -> bool:
        """Return whether the frontier of input 0 has passed a held time."""
        frontier = self.frontier(0)
        return any(not frontier.beyond(time) for time in self.held)

    def run(self, can_pause: bool = False) -> bool:
        """Do one step and account for the messages it consumes. Return whether to step again."""
        inputs = self.queues
        self.queues = [[] for _ in inputs]
        update = self.dataflow.tracker.update
        current: list[Time] = []
        if can_pause:
            self._note_taken(inputs)
        for index, messages in enumerate(inputs):
            if messages:
                location, summary = self.input_locations[index], self.dataflow.internal[self.index][index]
                for message in messages:
                    for time in message.times:
                        update(location, time, -1)
                        current.append(time if summary.is_identity else summary.apply(time))
        self.current = current
        again = self.step(inputs)
        self.current, self._taken = [], []
        return again

    def step_queued(self, can_pause: bool = False) -> bool:
        """Do one step with messages that were not counted, at the `current` times. Return whether to step again."""
        inputs = self.queues
        self.queues = [[]] if len(inputs) == 1 else [[] for _ in inputs]
        if can_pause:
            self._note_taken(inputs)
        again = self.step(inputs)
        self.current, self._taken = [], []
        return again

    def count_queued(self, difference: int = 1) -> None:
        """Count the queued messages, which were not counted when they were sent."""
        update = self.dataflow.tracker.update
        for location, messages in zip(self.input_locations, self.queues, strict=True):
            for message in messages:
                for time in message.times:
                    update(location, time, difference)

    @property
    def stand_in(self) -> Operator:
        """The operator to step in place of this one: itself, or the loop that does all rounds that are left."""
        unit = self.unit
        return unit if unit is not None and self.begins_round and unit.can_take_over() else self

    def can_take_over(self) -> bool:
        """Return whether this unit should do the rounds that are left of an epoch, instead of its members."""
        return False

    def return_to_worker(self) -> None:
        """Count the queued messages, and let the worker step this operator in general."""
        self.count_queued()
        self.dataflow.worker.schedule(self)

    def _note_taken(self, inputs: Inputs) -> None:
        """Note the messages of this step, so that they can count as unread while it is paused."""
        self._taken = [
            (self.input_locations[index], message.times)
            for index, messages in enumerate(inputs)
            for message in messages
        ]

    def give_messages_back(self) -> None:
        """Count the messages of this step as unread: the step pauses, and no frontier may pass them."""
        self._count_taken(1)

    def take_messages_again(self) -> None:
        """Count the messages of this step as read again: the step continues."""
        self._count_taken(-1)

    def _count_taken(self, difference: int) -> None:
        update = self.dataflow.tracker.update
        for location, times in self._taken:
            for time in times:
                update(location, time, difference)

    def _check(self, times: Times) -> None:
        if times is self.held:
            return
        for time in times:
            if time not in self.current and not self._may_use(time):
                usable = (*self.current, *self.held)
                raise AssertionError(f"{self.name} uses time {time}, but may only use times at or after {usable}")

    def _may_use(self, time: Time) -> bool:
        return any(less_equal(usable, time) for usable in (*self.current, *self.held))

    @property
    def is_stepping(self) -> bool:
        """Whether it is in the middle of a step that consumes messages."""
        return bool(self.current)

    @property
    def usable(self) -> Times:
        """The earliest times this operator may send at within this step."""
        return minimal((*self.held, *self.current)) if self.current else self.held

    @property
    def is_cyclic(self) -> bool:
        """Whether a path leads from its output to its own input 0."""
        if self._is_cyclic is None:
            self._is_cyclic = self.dataflow.reachability.reaches(self.output_location, self.input_locations[0])
        return self._is_cyclic
