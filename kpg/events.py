"""What the engine says about itself, kept in columns until somebody takes it.

A worker has an `Events`, or none; so has each of its dataflows, unless it was installed unlogged. Whoever does
something tests one attribute, and if somebody listens appends a few numbers to a list: no object is made for an event.

    built        operators, channels and imports: rare, told as tuples
    shut         operators and channels that are gone
    steps        operator, when it began, how long it took                    (ns)
    messages     channel, rows
    batches      operator, rows, bytes                                        what a trace got
    merges       operator, rows before and after, bytes before and after      what it did with it
    freed        operators whose trace is gone
    progress     how many changes of counts the peers were told, for each message to them

What something is told of is a number that no other thing has, on any worker: `entity`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

PLACES = 20  # bits that number the things of a dataflow: operators, then channels
CHANNEL = 1 << (PLACES - 1)
DATAFLOWS = 32  # bits that number dataflows


class Operates(NamedTuple):
    """An operator was added to a dataflow; the dataflow itself is told with place -1."""

    entity: int
    dataflow: int  # as an entity
    place: int  # within the dataflow
    name: str
    depth: int  # how many loops it is inside of, plus the coordinates of a time outside


class Connects(NamedTuple):
    """A channel was added between two operators."""

    entity: int
    dataflow: int
    source: int
    source_port: int
    target: int
    target_port: int


class Imports(NamedTuple):
    """An operator was tied to an arrangement of another dataflow."""

    entity: int
    publisher: int


Built: TypeAlias = Operates | Connects | Imports


class Sized(Protocol):
    """A batch, as far as events go."""

    def __len__(self) -> int: ...

    @property
    def updates(self) -> SizedColumns: ...


class SizedColumns(Protocol):
    """Its columns; what else a batch keeps to be read faster comes and goes."""

    @property
    def nbytes(self) -> int: ...


class Events:
    """What happened on one worker since it was last taken."""

    __slots__ = ("built", "shut", "steps", "messages", "batches", "merges", "freed", "progress")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all."""
        self.built: list[Built] = []
        self.shut: list[int] = []
        self.steps: list[int] = []
        self.messages: list[int] = []
        self.batches: list[int] = []
        self.merges: list[int] = []
        self.freed: list[int] = []
        self.progress: list[int] = []

    @property
    def numbers(self) -> int:
        """How many numbers wait in the longest columns."""
        return len(self.steps) + len(self.messages) + len(self.batches) + len(self.merges)

    def take(self) -> Events:
        """All that happened; from here on anew."""
        taken = Events()
        for name in Events.__slots__:
            setattr(taken, name, getattr(self, name))
        self.clear()
        return taken


class TraceEvents:
    """What a trace says: what it got and what it merged. It belongs to the trace, and so tells of its end."""

    __slots__ = ("_events", "entity")

    def __init__(self, events: Events, entity: int) -> None:
        self._events = events
        self.entity = entity

    def inserted(self, batch: Sized) -> None:
        """The trace got a batch."""
        self._events.batches += (self.entity, len(batch), batch.updates.nbytes)

    def merged(self, batches: tuple[Sized, ...], result: Sized) -> None:
        """Some batches were replaced by one; or one alone was compacted."""
        rows, nbytes = sum(map(len, batches)), sum(batch.updates.nbytes for batch in batches)
        self._events.merges += (self.entity, rows, len(result), nbytes, result.updates.nbytes)

    def __del__(self) -> None:
        self._events.freed.append(self.entity)


class Recorder(Protocol):
    """Who takes the events of a db."""

    def publish(self) -> None:
        """Write what happened into relations; called before each epoch is closed."""

    def spent(self, dataflow: int) -> tuple[float, int]:
        """The seconds and steps of a dataflow, by its entity, since somebody listens."""


def entity_of(worker: int, dataflow: int, place: int = -1) -> int:
    """The number of a dataflow, or of one of its operators (`place` is its index) or channels (after CHANNEL)."""
    return (((worker << DATAFLOWS) | dataflow) << PLACES) + place + 1


def worker_entity(worker: int) -> int:
    """The number of a worker: that of no dataflow."""
    return -1 - worker
