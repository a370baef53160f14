"""A dataflow: a graph of operators, the channels between them, and its progress tracker.

Every worker adds the same operators in the same order, so operators, channels and locations have the same numbers on
all workers. A `Stream` names outputs of operators. The concatenation of streams is a stream with several outputs and
costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, least
from kpg.columns.updates import Ints
from kpg.columns.value_class import value_class
from kpg.dataflow.channel import BroadcastPact, Channel, ExchangePact, FollowPact, LocalPact, Pact
from kpg.dataflow.loop_units import in_order, loops_of
from kpg.dataflow.operator import Message, Operator, Times
from kpg.dataflow.ready_operators import ReadyOperators
from kpg.dataflow.usage import DataflowUsage
from kpg.errors import KpgError
from kpg.events import FIRST_CHANNEL, Connects, Events, Operates, entity_of
from kpg.progress.reachability import Reachability
from kpg.progress.summary import Summary, identity
from kpg.progress.tracker import Tracker

if TYPE_CHECKING:
    MakeUnit = Callable[["Dataflow", Sequence[Operator]], Operator | None]

    from kpg.columns.building_turns import BuildingTurns
    from kpg.dataflow.fair_shares import ShareOwner
    from kpg.dataflow.pausable_step import PausableStep
    from kpg.dataflow.worker import Worker


CHECK_SHARE = 0.1  # of the time of a busy dataflow, to look whether waiting operators are due
HEAVY_SECONDS = 0.002  # of work without a break, beyond which readers of other dataflows do not wait for a turn
MAX_CIRCULATING_VALUES = 1_000  # of rows beyond a limit of rounds: more do not tell which arguments to blame
MAX_OWNERS = 8  # of a dataflow that several sessions share; with more it has a share of its own
MAX_OPERATORS = 1 << 16  # of a dataflow; scheduling order = order of the dataflow · MAX_OPERATORS + index


@value_class
class Stream:
    """Outputs of operators, all at one depth of time."""

    ports: tuple[tuple[Operator, int], ...]
    depth: int

    def concat(self, *others: Stream) -> Stream:
        """Return the concatenation of this stream and others."""
        ports = self.ports
        for other in others:
            assert other.depth == self.depth, "streams of different scopes cannot be concatenated"
            ports += other.ports
        return Stream(ports, self.depth)


class Dataflow:
    """One graph of operators on one worker."""

    def __init__(self, worker: Worker, dataflow_id: int, name: str, logged: bool = True) -> None:
        self.worker = worker
        self.id = dataflow_id
        self.order = (
            dataflow_id  # of scheduling; set again when it is complete, so that it is after the dataflows it reads
        )
        self.entity = entity_of(worker.index, dataflow_id)
        self.name = name
        self.logged = logged
        self.events: Events | None = worker.events if logged else None
        self.operators: list[Operator] = []
        self.channels: list[Channel] = []
        self.internal: list[list[Summary]] = []
        self.reachability = Reachability()
        self.tracker = Tracker(self.reachability, worker.peers > 1, dataflow_id, worker.changed_trackers, worker.index)
        self.waiting: set[Operator] = set()  # operators that hold a time until a frontier passes it
        self.checked: tuple[int, list[Frontier]] | None = None  # counts and sources when they were last looked at
        self.check_again_at = 0.0  # while it is busy: looking at the frontiers of a large dataflow takes long
        self.building: BuildingTurns | None = None  # lets others run while it is built
        self.notes: list[str] = []  # choices of its rendering, for `explain`
        self.failure: KpgError | None = None
        self.circulating: tuple[int, ...] = ()  # distinct values of the rows beyond a limit of rounds, if they are few
        self.dropped = False
        self.readers: list[Dataflow] = []  # the dataflows that import from this one
        self.imports: list[Dataflow] = []  # the dataflows that this one imports from
        self.make_unit: MakeUnit | None = None  # returns the unit that runs a loop directly, if there is one
        self.runs_directly = False  # whether epochs of few rows need no progress counts: see kpg.dataflow.direct_run
        self.ready = ReadyOperators()  # while the worker runs in slices
        self.paused_step: PausableStep | None = None
        self.used_seconds = 0.0  # on the scale of kpg.dataflow.fair_shares
        self.busy_seconds = 0.0  # that it has worked since it became busy
        self.first_epoch = -1  # that its readers may ask for: the last one that was closed when it was installed
        self.has_share = False  # whether it is among the busy dataflows there
        self.owners: WeakSet[ShareOwner] | tuple[()] = ()  # the sessions or tenants, of those that are still there
        self.is_common = False  # whether it has a share of its own, since it had more than MAX_OWNERS owners
        self.may_have_ended = False  # whether a source of it, or of a dataflow that it reads, may have ended
        self.retired = False  # it ended because its inputs are closed and it has no readers
        self._fed_early: list[tuple[Operator, Message]] | None = []  # before it is complete
        self._has_feedback = False  # whether a channel leads to an operator that was added before its source
        self._openings: list[tuple[int, Time]] = []
        self.on_drop: list[Callable[[], None]] = []
        self.on_failure: Callable[[], None] | None = None  # called by the worker soon after a failure, between steps
        self.usage: DataflowUsage | None = None  # counted if limits hold for this dataflow
        self.is_relation = False  # whether it holds the rows of an input: no limit stops it, since they were accepted

    def add_owner(self, owner: ShareOwner) -> None:
        """Let the dataflow run in the share of a session or tenant, too."""
        if self.is_common or owner in self.owners:
            return
        if len(self.owners) == MAX_OWNERS:
            self.is_common = True
            self.leave_owners()
            return
        if isinstance(self.owners, tuple):
            self.owners = WeakSet()
        self.owners.add(owner)
        owner.dataflow_count += 1

    def leave_owners(self) -> None:
        """Let the dataflow have a share of its own."""
        for owner in self.owners:
            owner.dataflow_count -= 1
        self.owners = ()

    def take_owners(self, other: Dataflow) -> None:
        """Let the dataflow run in the share of the owners of another one, which it replaces."""
        self.leave_owners()
        self.is_common = other.is_common
        for owner in other.owners:
            self.add_owner(owner)

    def note_circulating(self, values: Ints) -> None:
        """Record the values of rows that go round in a loop beyond its limit: an argument that has no end is there."""
        distinct = np.unique(values)
        self.circulating = tuple(distinct.tolist()) if len(distinct) <= MAX_CIRCULATING_VALUES else ()

    def add(
        self,
        operator: Operator,
        inputs: Sequence[tuple[Stream, Pact]] = (),
        *,
        depth: int,
        summaries: Sequence[Summary] | None = None,
        ports: int = 1,
    ) -> Stream:
        """Add an operator that reads some streams. Return the stream of its port 0."""
        operator.dataflow, operator.index, operator.depth = self, len(self.operators), depth
        operator.entity = self.entity + 1 + operator.index
        operator.output_location = self.reachability.add_location(depth)
        operator.input_locations = []
        operator.channels = [[]] if ports == 1 else [[] for _ in range(ports)]
        operator.queues = []
        if operator.publishes and depth == self.worker.coordinates:  # no dataflow imports from a loop
            self.reachability.add_exit(operator.output_location)
        self.operators.append(operator)
        self.internal.append([])
        for index, (stream, pact) in enumerate(inputs):
            self.add_input(operator, stream.depth, summaries[index] if summaries else identity(depth))
            self.connect(stream, operator, index, pact)
        return Stream(((operator, 0),), depth)

    def add_input(self, operator: Operator, depth: int, summary: Summary) -> int:
        """Add an input to an operator, to be connected later, and return its index."""
        location = self.reachability.add_input(depth, operator.output_location, summary)
        operator.input_locations.append(location)
        operator.queues.append([])
        self.internal[operator.index].append(summary)
        return len(operator.queues) - 1

    def connect(self, stream: Stream, target: Operator, target_input: int, pact: Pact | None = None) -> None:
        """Connect a stream to an input."""
        for source, port in stream.ports:
            self._has_feedback |= source.index >= target.index
            number = len(self.channels)
            channel = Channel(
                number, self.entity + 1 + FIRST_CHANNEL + number, target, target_input, pact or LocalPact()
            )
            self.channels.append(channel)
            source.channels[port].append(channel)
            crosses = self.worker.peers > 1 and isinstance(channel.pact, ExchangePact | BroadcastPact)
            location = target.input_locations[target_input]
            self.reachability.add_edge(source.output_location, location, identity(stream.depth), crosses)

    def add_source(
        self, operator: Operator, frontier: Callable[[], Frontier], *, depth: int, opening: Times | None = None
    ) -> Stream:
        """Add an operator with one input that is fed from outside the dataflow, at times beyond `frontier()`.

        With several workers, each holds the `opening` times (the same on all) until it has built the dataflow.
        """
        stream = self.add(operator, depth=depth)
        self.add_input(operator, depth, identity(depth))
        location, peers = operator.input_locations[0], self.worker.peers
        opening = () if peers == 1 else (least(depth),) if opening is None else opening
        self.tracker.add_source(location, frontier, peers, opening)
        self._openings += [(location, time) for time in opening]
        return stream

    def close_source(self, operator: Operator) -> None:
        """Declare that this worker feeds a source no more. The source ends when all workers have done so."""
        self.tracker.close_source(operator.input_locations[0])
        stack = [self]
        while stack:
            dataflow = stack.pop()
            if not dataflow.may_have_ended:
                dataflow.may_have_ended = True
                stack += dataflow.readers

    def has_ended_source(self) -> bool:
        """Return whether some source has ended. Frontiers of imports are computed only if that may be."""
        only_imports = len(self.imports) == len(self.tracker.sources)
        if only_imports and self.worker.peers == 1 and self.worker.clock.frontier:
            for dataflow in self.imports:
                if dataflow.may_have_ended:
                    break
            else:
                return False
        return not all(self.tracker.source_frontiers())

    def feed(self, operator: Operator, message: Message) -> None:
        """Send a message from outside to the readers of a source. It is counted at their inputs, not at the source."""
        if self._fed_early is not None:
            self._fed_early.append((operator, message))  # its readers are not known before the dataflow is complete
            return
        for channel in operator.channels[0]:
            channel.send(message)

    def start(self) -> None:
        """Complete the dataflow: check its cycles, deliver messages fed so far, and let operators follow frontiers."""
        loops: list[list[Operator]] = []
        if self._has_feedback:
            self.reachability.check_cycles()
            loops = loops_of(self.operators)
        for position, operator in enumerate(in_order(self.operators, loops) if loops else self.operators):
            operator.order = self.order * MAX_OPERATORS + position
        self._set_direct(loops)
        fed_early, self._fed_early = self._fed_early or [], None
        for operator, message in fed_early:
            self.feed(operator, message)
        for location, time in self._openings:
            self.tracker.update(location, time, -1)
        for operator in self.operators:
            operator.follow_frontiers()
        if self.events is not None:
            self.log_structure()

    def _set_direct(self, loops: list[list[Operator]]) -> None:
        """Let messages outside of loops skip progress counts in a direct run, if each loop that precedes is a unit."""
        units = [self._unit_of(loop) for loop in loops] if self.worker.peers == 1 else []
        for unit, loop in zip(units, loops, strict=False):
            for operator in loop:
                operator.unit = unit
        may_run = self.worker.peers == 1 and all(dataflow.runs_directly for dataflow in self.imports)
        self.runs_directly = may_run and None not in units
        if self.runs_directly:
            for operator in self.operators:
                if operator.depth == 1:  # also if it leaves a loop
                    for channels in operator.channels:
                        for channel in channels:
                            if not isinstance(channel.pact, FollowPact):
                                channel.direct = self.worker.direct

    def _unit_of(self, loop: list[Operator]) -> Operator | None:
        return None if self.make_unit is None else self.make_unit(self, loop)

    def set_waiting(self, operator: Operator, is_waiting: bool) -> None:
        """Note that an operator holds a time until a frontier passes it, or does not any more."""
        if is_waiting:
            self.waiting.add(operator)
            self.worker.waiting.add(self)
        else:
            self.waiting.discard(operator)
            if not self.waiting:
                self.worker.waiting.discard(self)

    def due_operators(self) -> list[Operator]:
        """Return the operators that hold a time which a frontier has passed; none if nothing has changed since the
        last call that returned none."""
        state = self.tracker.version, self.tracker.source_frontiers()
        if state == self.checked:
            return []
        began = perf_counter()
        due = [operator for operator in self.waiting if operator.is_due()]
        self.checked = None if due else state
        now = perf_counter()
        self.check_again_at = now + (now - began) / CHECK_SHARE
        return due

    def set_events(self, events: Events | None) -> None:
        """Log events from now on, beginning with the present structure; None stops logging."""
        self.events = events if self.logged else None
        if self.events is not None:
            self.log_structure()
        else:
            for operator in self.operators:
                operator.set_events(None)

    def log_structure(self) -> None:
        """Log the operators and channels of this dataflow."""
        events = self.events
        assert events is not None
        events.built.append(Operates(self.entity, self.entity, -1, self.name, 0))
        for operator in self.operators:
            events.built.append(Operates(operator.entity, self.entity, operator.index, operator.name, operator.depth))
            for port, channels in enumerate(operator.channels):
                for channel in channels:
                    target = channel.target.entity
                    events.built.append(
                        Connects(channel.entity, self.entity, operator.entity, port, target, channel.target_input)
                    )
            operator.set_events(events)

    @property
    def is_busy(self) -> bool:
        """Whether a step of it is paused or an operator is ready, while the worker runs in slices."""
        return not self.dropped and (self.paused_step is not None or bool(self.ready))

    @property
    def is_heavy(self) -> bool:
        """Whether it has been busy for longer than light work takes."""
        return self.busy_seconds >= HEAVY_SECONDS

    @property
    def is_waiting(self) -> bool:
        """Whether its paused step waits for the helper thread."""
        return not self.dropped and self.paused_step is not None and self.paused_step.is_waiting

    def least_epoch(self) -> int | None:
        """Return the first epoch that is not complete; None if nothing is in flight and all sources have ended."""
        return self.tracker.least_epoch()

    @property
    def is_finished(self) -> bool:
        """Whether its sources are closed, nothing is in flight, and no operator keeps a trace with readers."""
        if not (self.tracker.is_closed and self.tracker.is_idle):
            return False
        return not any(operator.has_readers for operator in self.operators)

    def release(self) -> None:
        """End the dataflow and release everything that its operators hold."""
        if self.dropped:
            return
        self.dropped = True
        if self.paused_step is not None:
            self.paused_step.stop()
            self.paused_step = None
        self.ready.clear()
        if self.events is not None:
            self.events.removed.append(self.entity)
            self.events.removed += [operator.entity for operator in self.operators]
            self.events.removed += [channel.entity for channel in self.channels]
        self.leave_owners()
        self.waiting.clear()
        self.worker.waiting.discard(self)
        for operator in self.operators:
            operator.release()
            operator.unit = None
            operator.queues = [[] for _ in operator.queues]
        for action in self.on_drop:
            action()
        self.on_drop.clear()

    def forget_operators(self) -> None:
        """Forget the operators of a released dataflow that is not read or explained any more.

        Operators and channels refer to each other. Without these cycles, reference counts free them.
        """
        for operator in self.operators:
            operator.channels = [[] for _ in operator.channels]
        self.operators, self.channels, self.on_failure = [], [], None
