"""The db: one clock, named inputs, and the dataflows that people install on them.

    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        ...
        t = db.advance()        # everything inserted so far is one transaction, complete at time t

Each advance takes the next epoch and moves all inputs, so a busy and a quiet one never stall each other. A db belongs
to the thread that opened it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, meet
from kpg.api.history_horizon import Horizon
from kpg.api.input import Input
from kpg.api.installer import Installer
from kpg.api.memory import Memory
from kpg.api.recursion import Recursion
from kpg.api.symbol_usage import symbols_in_use
from kpg.api.times import as_frontier, as_time, show_frontier
from kpg.api.transactions import PendingTransaction, as_origin, perform
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.config import Config
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.worker import Worker
from kpg.errors import Closed, InUse, TimeTooEarly, TypeMismatch, Unavailable, UndefinedName, WrongThread
from kpg.events import Recorder
from kpg.operators.error_rows import ErrorRows
from kpg.plan.nodes import Loop
from kpg.plan.rendered import Context
from kpg.storage.applied_batches import AppliedBatches
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Origin
from kpg.trace.merge_policy import ALL_OPERATORS, IDLE_CALL_FUEL, PRESETS
from kpg.trace.spine import Spine

if TYPE_CHECKING:
    from kpg.api.durability import DurableStore


class Database:
    """Inputs, answers and the clock they share; made by `kpg.open()`."""

    def __init__(
        self,
        config: Config,
        worker: Worker | None = None,
        symbols: Symbols | None = None,
        durable: DurableStore | None = None,
    ) -> None:
        self.config = config
        self.symbols = Symbols() if symbols is None else symbols  # one without symbols yet is false
        self.failures = ErrorRows(self.symbols)
        self.worker = worker or Worker(start=(0,) * config.coordinates)
        self.merge_policy = PRESETS[config.effort]
        self.context = Context(self.symbols, self.failures, self.merge_policy, config.coordinates)
        self.installer = Installer(self)
        self.inputs: dict[str, Input] = {}
        self.installed: weakref.WeakSet[Any] = weakref.WeakSet()
        self.outputs: dict[str, Any] = {}
        self.holders: weakref.WeakSet[Any] = weakref.WeakSet()  # of changes on their way to readers, beside outputs
        self.changed: set[Any] = set()  # outputs with changes that somebody listens for
        self.captures: list[Any] = []
        self.followers: list[Callable[[], None]] = []  # called when times are complete, after listeners
        self.dirty: dict[str, Input] = {}
        self.recorder: Recorder | None = None  # who turns what the engine does into relations, if somebody asked
        self.memory = Memory(config.memory_limit)
        if config.memory_limit is not None:
            self.worker.guard = self.memory.check
        self.sealed: Frontier | None = None
        self.durable = durable
        self.applied = AppliedBatches() if durable is None else durable.storage.applied
        self.readers: dict[str, NamedReader] = {} if durable is None else durable.storage.readers
        found = {} if durable is None else durable.found.since
        self._horizon = Horizon((0,) * config.coordinates, found, self.readers)
        self._busy_advances = 0
        self._closed = False
        self._owner = threading.get_ident()
        if durable is not None:
            self._go_on_from(durable)

    def _go_on_from(self, durable: DurableStore) -> None:
        """Set the clock to where the db was when it was last open."""
        self.worker.advance_to(durable.found.frontier)
        if self.config.coordinates == 1 and self.epoch > 0:
            self.sealed = Frontier.at((self.epoch - 1,))

    @property
    def alone(self) -> bool:
        """Whether all rows are here: no other worker has any."""
        return self.worker.peers == 1

    # Time

    @property
    def time(self) -> Frontier:
        """The times that are open: inserts go there, reads do not reach it yet."""
        return self.worker.clock.now

    @property
    def epoch(self) -> int:
        """The open epoch."""
        return self.time.elements[0][0] if self.time else -1

    def advance(self, *, origins: tuple[Origin, ...] = ()) -> int:
        """Make everything inserted so far one transaction; returns its epoch, at which all answers are now complete."""
        epoch = self.epoch
        self._require_one_coordinate()
        self.advance_to(epoch + 1, origins=origins)
        return epoch

    def transact(self, fill: Callable[[Database], Any], *, origin: tuple[str, int] | None = None) -> int:
        """Let `fill(db)` insert, and advance: all of it or, if something fails, nothing; returns the epoch.

        `origin` says that this is batch so-and-so of a writer; one that was applied before has no effect.
        """
        self.check()
        asked = PendingTransaction(fill, as_origin(origin))
        perform(self, [asked])
        return asked.future.result()

    def advance_to(self, time: int | Time | Frontier, *, origins: tuple[Origin, ...] = ()) -> None:
        """Move the clock: everything before `time` is complete, and on disk if the db is durable, when this returns."""
        busy, now = bool(self.dirty), self.time
        self.push_to(time, origins)
        self.worker.run()
        if self.durable is not None:
            self.durable.wait()
        for origin in origins:
            self.applied.add(origin)
        self.seal(now)
        for capture in tuple(self.captures):
            capture.advance()
        self.idle_merge_after_advance(busy)
        if self.durable is not None:
            self.durable.relieve(self)
        self.memory.check()
        for output in tuple(self.changed):
            output.notify()
        self.told()

    def told(self) -> None:
        """Times are complete, and listeners know what changed: so may those who follow how far all has come."""
        for follower in tuple(self.followers):
            follower()

    def push_to(self, time: int | Time | Frontier, origins: tuple[Origin, ...] = ()) -> None:
        """Give what was inserted to the dataflows and move the clock, without doing any of the work."""
        self.check()
        frontier = self._ahead(time)
        if self.durable is not None:
            self.durable.write(self, frontier, origins)
        self.flow_to(frontier)

    def flow_to(self, frontier: Frontier) -> None:
        """What was inserted, and is on its way to disk if need be, flows to the dataflows; the clock moves."""
        if self.recorder is not None:
            self.recorder.publish()  # what is told of the db itself is not written
        for source in self.dirty.values():
            source.flush()
        self.dirty.clear()
        self.worker.advance_to(frontier)
        if not frontier:
            self.worker.cleanup_due = True

    def seal(self, before: Frontier) -> None:
        """All work up to the clock is done; it was at `before` when that began."""
        self.sealed = self._last_sealed(before, self.time)

    def idle_merge_after_advance(self, busy: bool) -> None:
        """Give traces the idle work that the merge policy allows after an advance with or without new rows."""
        self._busy_advances = self._busy_advances + 1 if busy else 0
        fuel = self.merge_policy.fuel_after_advance(self._busy_advances)
        if fuel:
            self.worker.idle_merge(fuel, self.merge_policy.idle_operators)

    def _last_sealed(self, before: Frontier, frontier: Frontier) -> Frontier | None:
        if frontier == before:  # nothing more is complete
            return self.sealed
        if self.config.coordinates == 1 and frontier:
            return Frontier.at((frontier.elements[0][0] - 1,))
        return before

    def horizon(self, relations: frozenset[str] | None = None) -> Frontier:
        """The earliest time at which some relations, or all, and what is made of them can still be read.

        Of several sealed times the meet: a product of total orders cannot be compacted further for all of them
        (representative(F, t) is the join of t with the meet of F), and a late query needs one time to begin at.
        """
        if self.config.history is None or self.sealed is None:
            return self._horizon.of(None, relations)
        last = reduce(meet, self.sealed)
        if self.config.coordinates == 1:
            last = (last[0] - self.config.history,)
        return self._horizon.of(last, relations)

    def as_time(self, time: int | Time) -> Time:
        """A time as its coordinates."""
        return as_time(time, self.config.coordinates)

    def as_frontier(self, time: int | Time | Frontier) -> Frontier:
        """A frontier, or the times at and after one time."""
        return as_frontier(time, self.config.coordinates)

    def _ahead(self, time: int | Time | Frontier) -> Frontier:
        """Where to advance to; refused if the clock has passed it."""
        frontier = self.as_frontier(time)
        if not self.time.precedes(frontier):
            raise TimeTooEarly(f"cannot advance back to {time}", detail=f"The clock is at {show_frontier(self.time)}.")
        return frontier

    def _require_one_coordinate(self) -> None:
        if self.config.coordinates != 1:
            raise TimeTooEarly("advance() needs a single clock", hint="Say where to with advance_to(time).")

    # Relations and recursion

    def input(
        self,
        name: str,
        schema: Schema | None = None,
        /,
        *,
        key: Any = None,
        keep_on_disk: bool = True,
        **columns: Any,
    ) -> Input:
        """A new named, typed relation that rows are inserted into; with keep_on_disk=False, never on disk."""
        self._check_free(name)
        made = Input(self, name, schema or Schema.of(columns), key, keep_on_disk)
        if self.durable is not None and keep_on_disk:
            self.durable.declare(made)
        self.inputs[name] = made
        return made

    def _check_free(self, name: str) -> None:
        """Refuse a second input of a name."""
        self.check()
        if name in self.inputs:
            raise InUse(f"there is an input {name!r} already", hint="Choose another name, or drop() that one first.")

    def loop(self, name: str = "loop", max_rounds: int | None = None) -> Recursion:
        """A recursion with any number of variables, each defined by the others."""
        return Recursion(self, Loop(name, max_rounds or self.config.max_rounds))

    def replay(self, path: str | PathLike[str], into: Input | str, *, unfinished: bool = False) -> int:
        """Feed a captured answer into an input at its own times, advancing the clock; how many updates those were."""
        from kpg.api.capture_replay import replay_into

        self.check()
        found = self[into] if isinstance(into, str) else into
        if not isinstance(found, Input):
            raise TypeMismatch(f"cannot replay into {found!r}", hint="Only inputs take rows.")
        return replay_into(self, path, found, unfinished)

    def __getitem__(self, name: str) -> Any:
        """The input or output of that name."""
        found = self.inputs.get(name) or self.outputs.get(name)
        if found is None:
            raise UndefinedName(
                f"there is nothing called {name!r}",
                detail=f"Inputs: {sorted(self.inputs)}. Outputs: {sorted(self.outputs)}.",
            )
        return found

    # Dataflows

    def install(self, name: str, build: Callable[[Dataflow], None], logged: bool | None = None) -> Dataflow:
        """Build a dataflow."""
        self.check()
        return self.worker.install(name, build, logged)

    def settle(self) -> None:
        """Do all work that is due at the present time: after this, whatever was installed has its answer."""
        self.check()
        self.worker.run()
        self.memory.check()

    def idle(self, rows: int = IDLE_CALL_FUEL) -> bool:
        """Use a quiet moment to merge and compact about so many rows; False when nothing is left to do."""
        self.check()
        return self.worker.idle_merge(rows, ALL_OPERATORS)

    # What is kept

    def reclaim(self) -> int:
        """Forget texts that no row has any more; returns how many. Worth it after much text has come and gone."""
        self.settle()
        return self.symbols.reclaim(symbols_in_use(self))

    def set_reader(self, name: str, time: int | Time, of: Iterable[str] | None = None) -> None:
        """Keep what happens from `time` on apart for a reader that comes back for it, also after a restart: in the
        relations that it reads, or in all."""
        self.check()
        asked = NamedReader(self.as_time(time), None if of is None else frozenset(of))
        unknown = sorted((asked.of or frozenset()) - self.inputs.keys())
        if unknown:
            raise UndefinedName(f"there is no input called {unknown[0]!r}", detail=f"Inputs: {sorted(self.inputs)}.")
        held = self.horizon(asked.of)
        if not held.beyond(asked.time):
            kept = f"What it reads is kept since {show_frontier(held)}."
            raise TimeTooEarly(f"reader {name!r} cannot begin at {time}", detail=kept)
        if self.durable is not None:
            self.durable.storage.set_reader(name, asked)
        self.readers[name] = asked

    def drop_reader(self, name: str) -> None:
        """Let go of what only this reader would come back for."""
        self.check()
        if name not in self.readers:
            raise UndefinedName(f"there is no reader {name!r}", detail=f"Readers: {sorted(self.readers)}.")
        if self.durable is not None:
            self.durable.storage.drop_reader(name)
        self.readers.pop(name, None)

    def checkpoint(self) -> int:
        """Write what is not in files yet, so that opening the db again need not read the log; how many files."""
        self.check()
        if self.durable is None:
            raise Unavailable("the db is not durable", hint='Open it on a directory: kpg.open("dir").')
        return self.durable.checkpoint(self)

    # Life

    def check_thread(self) -> None:
        """Refuse use from other threads."""
        if threading.get_ident() != self._owner:
            raise WrongThread(
                "the db belongs to another thread", hint="Open it with kpg.open(background=True) to share it."
            )

    def check(self) -> None:
        """Refuse use after close, and from other threads."""
        if self._closed:
            raise Closed("the db is closed")
        self.check_thread()

    def close(self) -> None:
        """End all dataflows and release everything; may be repeated."""
        if self._closed:
            return
        self.check()
        for capture in tuple(self.captures):
            capture.close()
        self.recorder = None
        for dataflow in list(self.worker.dataflows.values())[::-1]:
            self.worker.drop(dataflow)
        self._closed = True
        if self.durable is not None:
            self.durable.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # Looking inside

    def spines(self) -> Iterator[Spine]:
        """The traces of all arrangements."""
        for dataflow in self.worker.dataflows.values():
            for operator in dataflow.operators:
                spine = getattr(operator, "spine", None)
                found = spine() if spine is not None else None
                if found is not None:
                    yield found

    def explain(self) -> str:
        """One block per arrangement: what is indexed, rows, bytes, who shares it."""
        from kpg.api.explain_dataflow import explain_database

        return explain_database(self)

    def describe(self) -> dict[str, Any]:
        """Inputs, outputs, dataflows and arrangements, as plain values."""
        from kpg.api.description import describe_database

        return describe_database(self)

    def _repr_html_(self) -> str:
        from kpg.api.notebook_html import html_database

        return html_database(self)
