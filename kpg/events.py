"""The engine's events, kept in columns until a recorder takes them.

A worker with a recorder has an `Events` object, and each of its dataflows refers to that object unless it was installed
without logging; otherwise the attribute is None. The engine tests this attribute and appends a few integers to a list;
it creates no object for an event.

    built        operators, channels and imports; rare, so these are tuples
    removed      operators and channels of dropped dataflows
    steps        operator, start, duration                                    in nanoseconds
    messages     channel, rows
    batches      operator, rows, bytes                                        inserted into its trace
    merges       operator, rows before and after, bytes before and after      of a merge or compaction
    freed        the operator of each trace that was freed
    progress     the number of progress changes in each frame to the peers

An `entity` is a number that identifies an operator, channel, dataflow or worker, unique over all workers.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

PART_BITS = 20  # bits of an entity for the number of an operator or channel in its dataflow
FIRST_CHANNEL = 1 << (PART_BITS - 1)  # smaller numbers are operators, the others channels
DATAFLOW_BITS = 32  # bits of an entity for the number of a dataflow on its worker


class Operates(NamedTuple):
    """An operator was added to a dataflow. The dataflow itself has number -1."""

    entity: int
    dataflow: int  # its entity
    number: int  # within the dataflow
    name: str
    depth: int  # the number of coordinates of its times: one more for each loop around it


class Connects(NamedTuple):
    """A channel was added between two operators."""

    entity: int
    dataflow: int
    source: int
    source_port: int
    target: int
    target_port: int


class Imports(NamedTuple):
    """An operator imports an arrangement of another dataflow."""

    entity: int
    publisher: int


Built: TypeAlias = Operates | Connects | Imports


class Sized(Protocol):
    """A batch, as events see it: with a row count and columns."""

    def __len__(self) -> int: ...

    @property
    def updates(self) -> SizedColumns: ...


class SizedColumns(Protocol):
    """The columns of a batch and their bytes. The lookup table does not count, because batches build it on demand."""

    @property
    def nbytes(self) -> int: ...


class Events:
    """The events of one worker since they were last taken."""

    __slots__ = ("built", "removed", "steps", "messages", "batches", "merges", "freed", "progress")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all events."""
        self.built: list[Built] = []
        self.removed: list[int] = []
        self.steps: list[int] = []
        self.messages: list[int] = []
        self.batches: list[int] = []
        self.merges: list[int] = []
        self.freed: list[int] = []
        self.progress: list[int] = []

    @property
    def size(self) -> int:
        """The number of integers in the columns that grow fast."""
        return len(self.steps) + len(self.messages) + len(self.batches) + len(self.merges)

    def take(self) -> Events:
        """Return all events and remove them from this object."""
        taken = Events()
        for name in Events.__slots__:
            setattr(taken, name, getattr(self, name))
        self.clear()
        return taken


class TraceEvents:
    """The events of one trace. Only the trace refers to this object, so `__del__` logs that the trace was freed."""

    __slots__ = ("_events", "entity")

    def __init__(self, events: Events, entity: int) -> None:
        self._events = events
        self.entity = entity

    def log_insert(self, batch: Sized) -> None:
        """Log that a batch was inserted."""
        self._events.batches += (self.entity, len(batch), batch.updates.nbytes)

    def log_merge(self, batches: tuple[Sized, ...], result: Sized) -> None:
        """Log that a merge replaced some batches by one, or that one batch was compacted."""
        rows, nbytes = sum(map(len, batches)), sum(batch.updates.nbytes for batch in batches)
        self._events.merges += (self.entity, rows, len(result), nbytes, result.updates.nbytes)

    def __del__(self) -> None:
        self._events.freed.append(self.entity)


class Recorder(Protocol):
    """The consumer of a database's events."""

    def publish(self) -> None:
        """Write the events into relations. Called before each epoch is closed."""

    def spent(self, dataflow: int) -> tuple[float, int]:
        """Return the seconds and steps of a dataflow, given its entity, since logging began."""


def entity_of(worker: int, dataflow: int, index: int = -1) -> int:
    """Return the entity of a dataflow, or of its operator `index`, or of its channel `index` - FIRST_CHANNEL."""
    return (((worker << DATAFLOW_BITS) | dataflow) << PART_BITS) + index + 1


def worker_entity(worker: int) -> int:
    """Return the entity of a worker: negative, unlike that of any dataflow."""
    return -1 - worker
