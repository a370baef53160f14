"""The db in this process: one worker, one clock, named inputs, and the dataflows that queries install.

    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        ...
        t = db.advance()        # all rows inserted so far are one transaction, complete at time t

An advance takes the next epoch and moves all inputs together, so a busy input and a quiet one never stall each other.
A db belongs to the thread that opened it. Each rank of a cluster also runs one of these, on its shard of the rows.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, meet
from kpg.api.completing_database import CompletingDatabase
from kpg.api.deferred_interrupt import forget, watch_for_interrupts
from kpg.api.embedded_completion import EmbeddedCompletion
from kpg.api.embedded_input import EmbeddedInput
from kpg.api.embedded_installer import EmbeddedInstaller
from kpg.api.embedded_output import EmbeddedOutput
from kpg.api.embedded_stream import EmbeddedStream
from kpg.api.explanation import Explanation
from kpg.api.history_horizon import HistoryHorizon
from kpg.api.input_declaration import any_column_name, existing_input
from kpg.api.kept_memory import keep_freed_memory
from kpg.api.memory import Memory, Watch
from kpg.api.output_table import OutputTable
from kpg.api.pending_rows import PendingRows
from kpg.api.query_limits import QueryLimits
from kpg.api.relation_growth import describe_largest
from kpg.api.symbol_usage import symbols_in_use
from kpg.api.times import show_frontier
from kpg.api.transactions import TransactionRequest, as_origin, perform
from kpg.api.usage_guard import UsageGuard
from kpg.columns.schema import Schema
from kpg.columns.schema_forms import schema_of
from kpg.columns.symbols import Symbols
from kpg.config import Config
from kpg.dataflow.direct_run import MAX_DIRECT_ROWS
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.worker import Worker
from kpg.errors import Closed, TimeTooEarly, Unavailable, UndefinedName, WrongThread
from kpg.events import Recorder
from kpg.operators.error_rows import ErrorRows
from kpg.plan.rendered import Context
from kpg.storage.applied_batches import AppliedBatches
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Origin
from kpg.trace.merge_policy import ALL_OPERATORS, IDLE_CALL_FUEL, policy_for
from kpg.trace.spine import Spine

if TYPE_CHECKING:
    from kpg.api.capture import Capture
    from kpg.api.durability import DurableStore
    from kpg.api.installed_arrangement import InstalledArrangement
    from kpg.api.waiting_requests import WaitingRequests


class EmbeddedDatabase(CompletingDatabase):
    """A db with one worker, in this process."""

    inputs: dict[str, EmbeddedInput]
    outputs: OutputTable[EmbeddedOutput]
    pending: PendingRows
    readers: dict[str, NamedReader]
    installer: EmbeddedInstaller
    completion: EmbeddedCompletion

    def __init__(
        self,
        config: Config,
        worker: Worker | None = None,
        symbols: Symbols | None = None,
        durable: DurableStore | None = None,
        completion_class: type[EmbeddedCompletion] = EmbeddedCompletion,
    ) -> None:
        keep_freed_memory()
        self.config = config
        self.symbols = Symbols() if symbols is None else symbols  # an empty table is false
        self.failures = ErrorRows(self.symbols)
        self.worker = worker or Worker(start=(0,) * config.coordinates)
        self.merge_policy = policy_for(config.effort)
        self.context = Context(self.symbols, self.failures, self.merge_policy, config.coordinates)
        self.installer = EmbeddedInstaller(self)
        self.inputs = {}
        self.outputs = OutputTable()
        self.pending = PendingRows(config.coordinates)
        self.installed: weakref.WeakSet[InstalledArrangement] = weakref.WeakSet()
        self.holders = weakref.WeakSet()
        self.changed: set[EmbeddedOutput] = set()  # outputs with listeners and unread changes
        self.captures: list[Capture] = []
        self.followers = []
        self.closing = []
        self.recorder: Recorder | None = None  # turns events of the engine into relations, if a log is open
        self.memory = Memory(config.memory_limit, partial(describe_largest, self.worker))
        self.watch = Watch(self.memory)
        self.admission: UsageGuard | None = None
        if config.memory_limit is not None:
            self.worker.guard = self.watch
        self.durable = durable
        self.applied = AppliedBatches() if durable is None else durable.storage.applied
        self.readers = {} if durable is None else durable.storage.readers
        recovered = {} if durable is None else durable.recovered.since
        self._stored_relations = frozenset() if durable is None else frozenset(durable.storage.relations)
        self._horizon = HistoryHorizon((0,) * config.coordinates, recovered, self.readers)
        self._horizon_sealed: Frontier | None = None  # the last complete times when these were computed:
        self._horizon_last: Time = ()  # the latest time that the horizon may be
        self._common_horizon: Frontier | None = None  # the horizon, if all relations have the same
        self.completion = completion_class(self)
        self._busy_advances = 0
        self._fuel_beside_disk = 0  # of idle work that waits for the next write to the log
        self._closed = False
        self._owner = threading.get_ident()
        if durable is not None:
            self._resume(durable)
        watch_for_interrupts(self)

    def _resume(self, durable: DurableStore) -> None:
        """Set the clock to the time at which the db was closed."""
        self.worker.advance_to(durable.recovered.frontier)
        if self.config.coordinates == 1 and self.epoch > 0:
            self.completion.sealed = Frontier.at((self.epoch - 1,))

    @property
    def is_single_worker(self) -> bool:
        return self.worker.peers == 1

    @property
    def stored_relations(self) -> frozenset[str]:
        return self._stored_relations

    @property
    def is_durable(self) -> bool:
        return self.durable is not None

    @property
    def declarations(self) -> Mapping[str, Any]:
        return {} if self.durable is None else self.durable.storage.declarations

    def declare(self, name: str, value: Any) -> None:
        if self.durable is not None:
            self.durable.storage.register(name, value)

    def undeclare(self, name: str) -> None:
        if name in self.declarations and self.durable is not None:
            self.durable.storage.unregister(name)

    # Time

    @property
    def time(self) -> Frontier:
        return self.worker.clock.now

    @property
    def sealed(self) -> Frontier | None:
        return self.completion.sealed

    def transact(self, fill: Callable[[EmbeddedDatabase], Any], *, origin: tuple[str, int] | None = None) -> int:
        self.check()
        transaction = TransactionRequest(fill, as_origin(origin))
        perform(self, [transaction])
        return transaction.future.result()

    def advance_to(self, time: int | Time | Frontier, *, origins: tuple[Origin, ...] = (), wait: bool = True) -> None:
        if self.closing and self.as_frontier(time) != self.time:
            for insert in tuple(self.closing):
                insert()
        busy, now = bool(self.pending), self.time
        if self.outputs.abandoned:
            self.outputs.release_abandoned()
        at_once = wait and self.completion.requests is None
        self.push_to(time, origins, directly=at_once or self.completion.requests is not None)
        if at_once:
            self._run_worker(now)
        is_done = not at_once and self.worker.run_directly()
        if self.durable is not None:
            self.durable.wait()
        for origin in origins:
            self.applied.add(origin)
        if not at_once:
            self.completion.leave_work(now)
            if is_done:
                self.completion.finish()
            elif self.completion.requests is not None:
                self.completion.pass_on()  # what was computed directly does not wait for the work of others
            if wait:
                self.settle()
            return
        self.seal(now)
        for capture in tuple(self.captures):
            capture.advance()
        self.work_when_idle(busy, beside_disk=busy and self.durable is not None)
        self.memory.check()
        for output in tuple(self.changed):
            output.notify()
        self.notify_followers()

    def _run_worker(self, before: Frontier) -> None:
        """Do all work now. After Ctrl-C, what is left is done when an answer is waited for, or by the next advance."""
        try:
            self.worker.run()
        except KeyboardInterrupt:
            self.completion.leave_work(before)
            raise

    def push_to(self, time: int | Time | Frontier, origins: tuple[Origin, ...] = (), directly: bool = False) -> None:
        """Log the pending rows, pass them to the dataflows and move the clock, without doing any of the work.

        With `directly`, the caller must call `worker.run` or `worker.run_directly` next: few rows need no counts.
        """
        self.check()
        frontier = self._frontier_ahead(time)
        if self.durable is not None:
            self.durable.write(self, frontier, origins)
            self._merge_beside_disk()
        self.move_clock(frontier, directly)

    def move_clock(self, frontier: Frontier, directly: bool = False) -> None:
        """Pass the pending rows, which are logged already if the db is durable, to the dataflows; move the clock."""
        if self.recorder is not None:
            self.recorder.publish()  # after the log was written: events of the engine are not durable
        names = tuple(self.pending)
        now = self.time
        is_open = bool(frontier.elements)
        if directly and is_open and frontier.elements != now.elements and self.pending.are_few(MAX_DIRECT_ROWS, now):
            for name in names:
                self.inputs[name].prepare()  # may install the arrangement
            self.worker.direct.begin()
        for name in names:
            self.inputs[name].flush()
        self.worker.advance_to(frontier)
        if not is_open:
            self.worker.cleanup_due = True

    def seal(self, before: Frontier) -> None:
        """Declare all times before the clock complete; it was at `before` when their work began."""
        self.completion.seal(before)

    def work_when_idle(self, busy: bool, beside_disk: bool = False) -> None:
        """Merge and begin a checkpoint, as far as they are due after an advance with or without new rows."""
        self.idle_merge_after_advance(busy, beside_disk)
        self.checkpoint_if_due()

    def checkpoint_if_due(self) -> None:
        """Begin to write a checkpoint if the log has grown long."""
        if self.durable is not None:
            self.durable.checkpoint_if_due(self)

    def idle_merge_after_advance(self, busy: bool, beside_disk: bool = False) -> None:
        """Give traces the idle work that the merge policy allows after an advance with or without new rows.

        With `beside_disk`, the next transaction does it, which has to wait for the disk anyway.
        """
        self._busy_advances = self._busy_advances + 1 if busy else 0
        fuel = self.merge_policy.fuel_after_advance(self._busy_advances)
        if beside_disk:
            self._fuel_beside_disk = fuel
        elif fuel:
            self.worker.idle_merge(fuel, self.merge_policy.idle_operators, can_pause=self.answers_lag)

    def _merge_beside_disk(self) -> None:
        """Do the idle work that is due, after the log was written and before the rows take effect.

        An interrupt waits until they do: otherwise the next advance would write them again.
        """
        fuel, self._fuel_beside_disk = self._fuel_beside_disk, 0
        if fuel:
            self.worker.idle_merge(fuel, self.merge_policy.idle_operators, defer_interrupt=True)

    def horizon(self, relations: frozenset[str] | None = None) -> Frontier:
        """Return the earliest time at which some relations, or all, and the collections made of them can be read.

        Of several sealed times it is the meet: a product of total orders cannot be compacted further for all of them
        (representative(F, t) is the join of t with the meet of F), and a late query needs one time to begin at.
        """
        sealed = self.completion.sealed
        if sealed is None or self.config.history is None:
            return self._horizon.of(None, relations)
        if sealed is not self._horizon_sealed:  # every read of a trace asks, so what does not change is kept
            one = self.config.coordinates == 1
            self._horizon_last = (sealed.elements[0][0] - self.config.history,) if one else reduce(meet, sealed)
            self._horizon_sealed, self._common_horizon = sealed, None
        if self._horizon.readers or self._horizon.recovered:  # relations have different horizons
            return self._horizon.of(self._horizon_last, relations)
        if self._common_horizon is None:
            self._common_horizon = self._horizon.of(self._horizon_last, relations)
        return self._common_horizon

    def share_since(self, since: dict[str, Frontier]) -> None:
        """Begin the history of recovered relations at these times: a rank has them from its peers."""
        assert self.durable is not None
        self.durable.recovered.since = since
        self._horizon = HistoryHorizon((0,) * self.config.coordinates, since, self.readers)

    # Relations and dataflows

    @any_column_name
    def input(
        self,
        name: str,
        schema: Any = None,
        /,
        *,
        key: str | Sequence[str] | None = None,
        keep: bool = True,
        keep_on_disk: bool = True,
        exist_ok: bool = False,
        **columns: Any,
    ) -> EmbeddedInput:
        existing: EmbeddedInput | None = existing_input(self, name, schema, columns, key, exist_ok)
        if existing is not None:
            return existing
        kind = EmbeddedInput if keep else EmbeddedStream
        source = kind(self, name, schema_of(schema, columns), key, keep_on_disk and keep, keep)
        if self.durable is not None and source.on_disk:
            self.durable.declare(source)
        self.inputs[name] = source
        return source

    def install(self, name: str, build: Callable[[Dataflow], None], logged: bool | None = None) -> Dataflow:
        """Install a dataflow that `build` fills with operators."""
        self.check()
        if self.outputs.abandoned:
            self.outputs.release_abandoned()
        dataflow = self.worker.install(name, build, logged)
        elements = self.worker.clock.now.elements
        dataflow.first_epoch = elements[0][0] - 1 if elements else -2
        return dataflow

    def log_input(self, name: str, schema: Schema) -> EmbeddedInput:
        """Create an input that only the db writes, with events of its engine: neither logged nor kept on disk."""
        source = EmbeddedInput(self, name, schema, None, on_disk=False)
        source.is_log = True
        self.inputs[name] = source
        return source

    def limit_queries(self, limits: QueryLimits) -> UsageGuard:
        self.admission = UsageGuard(self, limits)
        return self.admission

    def settle(self) -> None:
        self.check()
        if self.outputs.abandoned:
            self.outputs.release_abandoned()
        if self.completion.requests is not None:
            self.completion.wait_until(lambda: not (self.completion.unfinished or self.worker.is_busy))
        else:
            self.worker.run()
            if self.completion.unfinished:
                self.completion.work(0.0)
        self.memory.check()

    def serve_requests(self, requests: WaitingRequests) -> None:
        self.completion.requests = requests
        self.worker.is_called = requests.ends_slice

    def work(self, seconds: float = 0.01) -> bool:
        """Work for about this long on answers that are not complete; return False when nothing is left to do."""
        self.check()
        self.outputs.release_abandoned()
        return self.completion.work(seconds)

    def idle(self, rows: int = IDLE_CALL_FUEL) -> bool:
        self.check()
        return self.worker.idle_merge(rows, ALL_OPERATORS, can_pause=self.answers_lag)

    # Storage

    def reclaim(self) -> int:
        self.settle()
        requests = self.completion.requests
        if requests is not None and requests.some_in_turns:
            return 0  # it may hold rows that nothing else refers to
        return self.symbols.reclaim(symbols_in_use(self))

    def set_reader(self, name: str, time: int | Time, of: Iterable[str] | None = None) -> None:
        self.check()
        reader = NamedReader(self.as_time(time), None if of is None else frozenset(of))
        unknown = sorted((reader.of or frozenset()) - self.inputs.keys())
        if unknown:
            raise UndefinedName(f"there is no input called {unknown[0]!r}", detail=f"Inputs: {sorted(self.inputs)}.")
        horizon = self.horizon(reader.of)
        if not horizon.beyond(reader.time):
            raise TimeTooEarly(
                f"reader {name!r} cannot begin at {time}",
                detail=f"The history of the relations that it reads begins at {show_frontier(horizon)}.",
            )
        if self.durable is not None:
            self.durable.storage.set_reader(name, reader)
        self.readers[name] = reader

    def drop_reader(self, name: str) -> None:
        self.check()
        if name not in self.readers:
            raise UndefinedName(f"there is no reader {name!r}", detail=f"Readers: {sorted(self.readers)}.")
        if self.durable is not None:
            self.durable.storage.drop_reader(name)
        self.readers.pop(name, None)

    def checkpoint(self) -> int:
        self.check()
        if self.durable is None:
            raise Unavailable("the db is not durable", hint='Open it on a directory: kpg.open("dir").')
        return self.durable.checkpoint(self)

    # Life

    def check_thread(self) -> None:
        """Raise if the calling thread is not the owner."""
        if threading.get_ident() != self._owner:
            raise WrongThread(
                "the db belongs to another thread", hint="Open it with kpg.open(background=True) to share it."
            )

    def check(self) -> None:
        if self._closed:
            raise Closed("the db is closed")
        if threading.get_ident() != self._owner:
            self.check_thread()

    def close(self) -> None:
        if self._closed:
            return
        self.check()
        for capture in tuple(self.captures):
            capture.close()
        self.recorder = None
        for dataflow in list(self.worker.dataflows.values())[::-1]:
            self.worker.drop(dataflow)
        for arrangement in tuple(self.installed):
            arrangement.handle.release()  # so that its rows are freed now, and not with the next garbage collection
        self._closed = True
        forget(self)
        if self.durable is not None:
            self.durable.close()

    # Introspection

    def spines(self) -> Iterator[Spine]:
        """Yield the traces of all arrangements."""
        for dataflow in self.worker.dataflows.values():
            for operator in dataflow.operators:
                find_spine = getattr(operator, "spine", None)
                spine = find_spine() if find_spine is not None else None
                if spine is not None:
                    yield spine

    def explain(self) -> Explanation:
        from kpg.api.explain_dataflow import explain_database

        self.outputs.release_abandoned()
        return explain_database(self)

    def describe(self) -> dict[str, Any]:
        from kpg.api.database_description import describe_database

        self.outputs.release_abandoned()
        return describe_database(self)
