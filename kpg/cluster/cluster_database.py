"""The db on several workers: the same contract as the embedded one, carried out by worker processes.

    with kpg.open(workers=2) as db: ...

This process describes collections and sends the descriptions as documents; it encodes rows and sends them as lanes.
Each worker returns its shard of an answer as lanes, which are decoded here. Several threads may use the db, one at a
time.

On a directory (`kpg.open("dir", workers=2)`) an acknowledged transaction is on the disks of all workers, and a lost
worker is replaced (see generations).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakSet

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.completing_database import CompletingDatabase
from kpg.api.explanation import ExplainedGraph, Explanation
from kpg.api.input_declaration import any_column_name, existing_input
from kpg.api.output_table import OutputTable
from kpg.api.query_limits import QueryLimits
from kpg.api.temporary_readers import left_behind
from kpg.api.transactions import as_origin
from kpg.api.waiting_requests import WaitingRequests
from kpg.cluster.cluster_admission import ClusterAdmission
from kpg.cluster.cluster_checkpoints import ClusterCheckpoints
from kpg.cluster.cluster_completion import ClusterCompletion
from kpg.cluster.cluster_directory import ClusterDirectory
from kpg.cluster.cluster_input import ClusterInput
from kpg.cluster.cluster_installer import ClusterInstaller
from kpg.cluster.cluster_output import ClusterOutput
from kpg.cluster.cluster_reads import ClusterReads
from kpg.cluster.cluster_transactions import ClusterTransactions
from kpg.cluster.coordinator import Coordinator, Launcher, RankReply
from kpg.cluster.generations import Generations
from kpg.cluster.rank_commands.command_kinds import Command, StructuralCommand
from kpg.cluster.rank_commands.input_commands import (
    CreateInputCommand,
    DropTemporaryCommand,
    MakeRowsCommand,
    RowsCommand,
)
from kpg.cluster.rank_commands.inspection_commands import (
    CallCommand,
    DescribeCommand,
    ExplainCommand,
    ForgetSymbolsCommand,
    ReclaimSymbolsCommand,
)
from kpg.cluster.rank_commands.query_commands import (
    BuildOutputCommand,
    BuildPartCommand,
    DiscardChangesCommand,
    OutputFrontierCommand,
    ProbeFrontierCommand,
    SkipDataflowsCommand,
    TakeChangesCommand,
    UndoInstallCommand,
)
from kpg.cluster.rank_commands.staging_commands import PublishCommand
from kpg.cluster.rank_commands.storage_commands import (
    DeclarationsCommand,
    DeclareCommand,
    DropReaderCommand,
    IsAppliedCommand,
    ReadersCommand,
    SetReaderCommand,
    UndeclareCommand,
)
from kpg.cluster.rank_commands.time_commands import ServeCommand, SettleCommand
from kpg.cluster.request_frames import RowBlock
from kpg.cluster.request_history import ALL_RANKS, RequestHistory, undo_of
from kpg.cluster.row_admission import RowAdmission
from kpg.cluster.sent_rows import SentRows
from kpg.columns.schema import Schema
from kpg.columns.schema_forms import schema_of
from kpg.columns.symbols import Symbols
from kpg.config import Config
from kpg.errors import Closed, KpgError, Unavailable, UndefinedName, WorkerLost
from kpg.events import Recorder
from kpg.plan.plan_values import write_schema
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Origin
from kpg.trace.merge_policy import IDLE_CALL_FUEL

Result = TypeVar("Result", covariant=True)


class ClusterDatabase(CompletingDatabase):
    """A db on several workers; `kpg.open(workers=N)` returns one."""

    inputs: dict[str, ClusterInput]
    outputs: OutputTable[ClusterOutput]
    pending: SentRows
    readers: dict[str, NamedReader]
    installer: ClusterInstaller
    admission: ClusterAdmission | None
    completion: ClusterCompletion

    def __init__(
        self,
        config: Config,
        workers: int,
        launcher: Launcher,
        interface: str = "127.0.0.1",
        directory: ClusterDirectory | None = None,
        output_class: type[ClusterOutput] = ClusterOutput,
    ) -> None:
        self.config = config
        self.symbols = Symbols()
        self.inputs, self.outputs, self.readers = {}, OutputTable(), {}
        self.followers, self.closing, self.holders = [], [], WeakSet()
        self.workers = workers
        self.directory = directory
        self.coordinator = Coordinator(workers, launcher, self.symbols, interface)
        self.coordinator.loss_hint = loss_hint(directory)
        self.generations = Generations(self.coordinator, config, directory)
        self.generations.after_recovery.append(self._restore_answers)
        self.pending = SentRows(
            config.coordinates,
            self.generations.history,
            keep_copies=directory is not None,
            admission=RowAdmission(config.memory_limit, workers),
        )
        self.installer = ClusterInstaller(self, output_class)
        self.admission = None
        self.completion = ClusterCompletion(self)
        self.reads = ClusterReads(self)
        self.changed: set[ClusterOutput] = set()  # outputs with unread changes
        self.failed: set[ClusterOutput] = set()  # outputs that have ended, before those that wait for that know it
        self.transactions = ClusterTransactions(self)
        self.checkpoints = None if directory is None else ClusterCheckpoints(self, directory.checkpoint_bytes)
        self.recorder: Recorder | None = None  # turns events of the workers into relations, if a log is open
        self._closed = False
        try:
            if directory is not None:
                directory.claim(workers, config.coordinates)
            self.coordinator.start(range(workers))
            self.generations.begin()
            if directory is not None:
                self._fetch_readers()
                for reader in left_behind(self.readers):
                    self.drop_reader(reader)
                self._drop_temporary()
        except BaseException:
            self.close()
            raise

    @property
    def is_single_worker(self) -> bool:
        return False

    @property
    def stored_relations(self) -> frozenset[str]:
        return self.generations.stored

    @property
    def is_durable(self) -> bool:
        return self.directory is not None

    @property
    def declarations(self) -> Mapping[str, Any]:
        return {} if self.directory is None else self.ask(DeclarationsCommand())[0].value

    def declare(self, name: str, value: Any) -> None:
        if self.directory is not None:
            self.ask(DeclareCommand(name, value))

    def undeclare(self, name: str) -> None:
        if self.directory is not None:
            self.ask(UndeclareCommand(name))

    def _drop_temporary(self) -> None:
        """Drop the relations that an earlier process created with keep_on_disk=False."""
        dropped = {name for reply in self.ask(DropTemporaryCommand()) for name in reply.value}
        self.generations.stored -= dropped

    @property
    def recoveries(self) -> int:
        """The number of recoveries: a worker was lost, and all workers began a new generation."""
        return self.generations.recoveries

    # Requests

    def install_on_workers(self, command: StructuralCommand) -> int:
        """Make all workers install something; return the number of the command."""
        with self.coordinator.lock:
            self.ask(command)
            return self.completion.note_install()

    def build_on_workers(
        self, command: BuildOutputCommand | BuildPartCommand, install: StructuralCommand
    ) -> int | None:
        """Make all workers build a part of something; return the number of the command if it is installed now."""
        recoveries = self.recoveries
        with self.coordinator.lock:
            done = {reply.value for reply in self.ask(command, undo=undo_of(install, command.number))}
            if self.recoveries != recoveries:
                return None
            if len(done) > 1:
                self._undo_on_all()
                return None
            if not done.pop():
                return None
            self.generations.history.record(install)
            return self.completion.note_install()

    def ask(
        self, command: Command[Result], blocks: Sequence[RowBlock] = (), undo: UndoInstallCommand | None = None
    ) -> list[RankReply[Result]]:
        """Send a command to all workers and return their replies; `undo` if some perform it and others refuse it."""
        self.check()
        with self.coordinator.lock:
            try:
                replies = self.generations.retrying(lambda: self.coordinator.ask(command, blocks))
            except KpgError:
                if self.coordinator.partly_done and RequestHistory.is_kept(command):
                    self._undo(undo or undo_of(command))
                raise
            self.generations.history.record(command)
            return replies

    def _undo(self, undo: UndoInstallCommand | None) -> None:
        """Let no worker have what some have installed and others refused: what it reads has failed there already."""
        if undo is None:
            self._undo_on_all()
            return
        next_ids = [reply.value for reply in self.ask(undo)]
        self.ask(SkipDataflowsCommand(max(next_ids)))

    def _undo_on_all(self) -> None:
        """Return to the state before a command that some workers performed and others refused."""
        if self.directory is not None:
            self.generations.recover()
        else:
            self.coordinator.fail("the workers do not agree", "Some performed a command, others refused it.")

    def tell(self, rank: int, command: RowsCommand, blocks: Sequence[RowBlock] = ()) -> None:
        """Send rows to one worker, without waiting for it."""
        self.check()
        with self.coordinator.lock:
            self.pending.keep_copy(rank, command, blocks)
            try:
                self.coordinator.tell(rank, command, blocks)
            except WorkerLost:
                if self.directory is None:
                    raise
                self.generations.recover()  # which sends these rows, too

    def tell_all(self, command: MakeRowsCommand) -> None:
        """Make all workers make rows, without waiting for them: the command leaves with the next one."""
        with self.coordinator.lock:
            self.pending.keep_copy(ALL_RANKS, command, ())
            try:
                self.coordinator.tell_all(command, hold=True)
            except WorkerLost:
                if self.directory is None:
                    raise
                self.generations.recover()  # which sends this command, too

    # Time

    @property
    def time(self) -> Frontier:
        return self.generations.now

    @property
    def sealed(self) -> Frontier | None:
        """The last complete time; None also for times of several coordinates, which only the workers know."""
        if self.config.coordinates != 1 or self.epoch <= 0:
            return None
        held = self.completion.lags or self.completion.is_held
        return self.completion.sealed if held else Frontier.at((self.epoch - 1,))

    def horizon(self, relations: frozenset[str] | None = None) -> Frontier:
        """Return the beginning of time: a lower bound, since only the workers know how far they have compacted."""
        return Frontier.start(self.config.coordinates)

    def advance_to(self, time: int | Time | Frontier, *, origins: tuple[Origin, ...] = (), wait: bool = True) -> None:
        at_once = (wait and not self.answers_lag) or self.config.coordinates != 1
        with self.coordinator.lock:
            self.check()
            frontier = self._frontier_ahead(time)
            if frontier != self.time:
                self.insert_before_closing()
            self.outputs.release_abandoned()
            replies = self.transactions.advance(frontier, origins, at_once)
        if at_once:
            self.transactions.notify(replies)
            return
        self.completion.notify()
        if wait:
            self.settle()

    def insert_before_closing(self) -> None:
        """Insert the rows that belong to the open time, which is about to be closed."""
        for insert in tuple(self.closing):
            insert()
        if self.recorder is not None:
            self.recorder.publish()

    def publish(self, command: PublishCommand, rows: int, origins: tuple[Origin, ...] = ()) -> int:
        """Make staged rows one transaction and return its epoch; `rows` is their number. Does not retry."""
        with self.coordinator.lock:
            self.check()
            epoch, replies = self.transactions.publish(command, rows, origins)
        if self.completion.requests is None:
            self.transactions.notify(replies)
        else:
            self.completion.requests.wake()  # the thread that serves requests notifies, when answers are complete
        return epoch

    def _restore_answers(self) -> None:
        """Bring the answers of workers that began again to what this process knows of them.

        The workers drop the changes that this process has received from their predecessors, and get the limits that
        tenants have added up.
        """
        held = [name for name, output in self.outputs.items() if output.is_held]
        followed = {name: output for name, output in self.outputs.items() if output.followed and not output.is_held}
        through = tuple([output.begin_generation() for output in followed.values()])
        self.completion.begin_generation()
        if followed:
            command = DiscardChangesCommand(tuple(followed), through if self.answers_lag else None)
            for rank, reply in enumerate(self.coordinator.ask(command)):
                for output, failure in zip(followed.values(), reply.value, strict=True):
                    output.report_failure(rank, failure)
        for name in held:
            for rank, held_reply in enumerate(self.coordinator.ask(TakeChangesCommand(name, hold=True))):
                self.outputs[name].report_failure(rank, held_reply.value)
        number = self.completion.note_install()
        for output in self.outputs.values():
            output.note_install(number)

    @property
    def is_lost(self) -> bool:
        """Whether a worker is lost for ever: the db is in memory."""
        return self.directory is None and self.coordinator.failure is not None

    def recover_or_fail(self) -> None:
        """Begin a new generation of workers; if the db is in memory, do nothing: every call raises the loss."""
        if self.directory is not None:
            try:
                self.generations.recover()
            except KpgError:
                pass  # the next call tries again

    def transact(self, fill: Callable[[ClusterDatabase], Any], *, origin: tuple[str, int] | None = None) -> int:
        batch = as_origin(origin)
        with self.coordinator.lock:
            if batch is not None and self.was_applied(batch):
                return self.epoch - 1
            mark = self.transactions.begin()
            epoch = self.epoch
            try:
                fill(self)
                return self.advance(origins=() if batch is None else (batch,), wait=not self.answers_lag)
            except BaseException:
                if self.epoch == epoch:  # otherwise a listener failed after the transaction
                    self.transactions.undo(mark)
                raise

    def take_back(self) -> None:
        """Drop all pending rows, here and on the workers."""
        self.transactions.take_back()

    def limit_queries(self, limits: QueryLimits) -> ClusterAdmission:
        self.admission = ClusterAdmission(self, limits)
        return self.admission

    def settle(self) -> None:
        self.outputs.release_abandoned()
        if self.answers_lag:
            self.completion.wait_until(lambda: self.completion.all_complete >= self.epoch - 1)
        else:
            self.ask(SettleCommand())
            self.completion.finish()

    def serve_requests(self, requests: WaitingRequests) -> None:
        """Let requests wait for answers without blocking each other: workers work in slices from now on."""
        self.ask(ServeCommand())
        self.completion.serve(requests)
        self.generations.sealed = lambda: max(0, self.completion.sealed_epoch)

    def wake(self) -> None:
        self.completion.alarm.ring()

    def work(self, seconds: float = 0.01) -> bool:
        """Wait up to this long for what workers complete; return False when nothing is left to do."""
        self.check()
        self.outputs.release_abandoned()
        return self.completion.work(seconds)

    def idle(self, rows: int = IDLE_CALL_FUEL) -> bool:
        """Return False: workers use their quiet moments by themselves."""
        return False

    # Storage

    def checkpoint(self) -> int:
        if self.checkpoints is None:
            raise Unavailable("the db is not durable", hint='Open it on a directory: kpg.open("dir", workers=N).')
        with self.coordinator.lock:
            self.check()
            return self.checkpoints.write()

    def set_reader(self, name: str, time: int | Time, of: Iterable[str] | None = None) -> None:
        relations = None if of is None else tuple(sorted(of))
        self.ask(SetReaderCommand(name, self.as_time(time), relations))
        self._fetch_readers()

    def drop_reader(self, name: str) -> None:
        self._fetch_readers()
        if name not in self.readers:
            raise UndefinedName(f"there is no reader {name!r}", detail=f"Readers: {sorted(self.readers)}.")
        self.ask(DropReaderCommand(name))
        self._fetch_readers()

    def _fetch_readers(self) -> None:
        readers = self.ask(ReadersCommand())[0].value
        self.readers.clear()
        self.readers.update({name: NamedReader.from_json(reader) for name, reader in readers.items()})

    def was_applied(self, origin: Origin) -> bool:
        """Return whether a batch of a writer was applied, now or before the db was opened."""
        return self.ask(IsAppliedCommand((origin.source, origin.batch)))[0].value

    def reclaim(self) -> int:
        with self.coordinator.lock:
            self.settle()
            self.ask(ForgetSymbolsCommand())
            for member in self.coordinator.members.values():
                member.dictionary.forget()
            return sum(reply.value for reply in self.ask(ReclaimSymbolsCommand()))

    # Relations and queries

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
    ) -> ClusterInput:
        existing: ClusterInput | None = existing_input(self, name, schema, columns, key, exist_ok)
        if existing is not None:
            return existing
        source = ClusterInput(self, name, schema_of(schema, columns), key, keep)
        key = tuple(source.key) or None
        self.ask(CreateInputCommand(name, write_schema(source.schema), key, keep, keep_on_disk))
        self.inputs[name] = source
        return source

    def log_input(self, name: str, schema: Schema) -> ClusterInput:
        """Create an input that only the db writes, with events of its workers: neither logged nor kept on disk."""
        source = ClusterInput(self, name, schema, None)
        self.ask(CreateInputCommand(name, write_schema(schema), None, keep_on_disk=False, is_log=True))
        source.is_log = True
        self.inputs[name] = source
        return source

    def forget_input(self, name: str) -> None:
        """Drop everything about an input that the workers have dropped."""
        self.pending.forget(name)
        self.inputs.pop(name, None)
        self.transactions.forget_input(name)

    def frontier_of(self, command: OutputFrontierCommand | ProbeFrontierCommand) -> Frontier:
        """Return the times at which an output or probe may still change on some worker."""
        return Frontier(time for reply in self.ask(command) for time in reply.value)

    def tell_output(self, output: ClusterOutput, command: Command[None]) -> None:
        """Send a command about an output to all workers, without waiting for them; nothing if it has ended."""
        if not output.ended:
            self.tell_workers(command)

    def tell_workers(self, command: Command[None]) -> None:
        """Send a command to all workers, without waiting for them; nothing if the db is closed."""
        if not self._closed:
            self.generations.history.record(command)
            try:
                self.coordinator.tell_all(command)
            except WorkerLost:
                self.recover_or_fail()

    def release_on_workers(self, command: Command[None]) -> None:
        """Make the workers release a handle; do nothing if the db is closed, or was in memory and has lost a worker."""
        if not self._closed and (self.directory is not None or self.coordinator.failure is None):
            self.ask(command)

    # Introspection

    def call_workers(self, function: str, **options: Any) -> list[Any]:
        """Call `function(db, **options)` on each worker and return the results; for measurements and tests."""
        return [reply.value for reply in self.ask(CallCommand(function, options))]

    def explain(self) -> Explanation:
        return self.explain_workers(None)

    def explain_workers(self, name: str | None) -> Explanation:
        """Return what each worker explains of itself, or of one answer; all have the graph of the first one."""
        self.outputs.release_abandoned()
        replies = self.ask(ExplainCommand(name))
        text = "\n\n".join(f"worker {rank}\n{reply.value['text']}" for rank, reply in enumerate(replies))
        return Explanation(text, ExplainedGraph.from_json(replies[0].value["graph"]))

    def describe(self) -> dict[str, Any]:
        self.outputs.release_abandoned()
        replies = self.ask(DescribeCommand())
        return {
            "workers": [reply.value for reply in replies],
            "inputs": sorted(self.inputs),
            "outputs": sorted(self.outputs),
            "epoch": self.epoch,
            "trouble": None if self.checkpoints is None else self.checkpoints.trouble,
        }

    # Life

    @property
    def closed(self) -> bool:
        """Whether the db was closed."""
        return self._closed

    def check(self) -> None:
        if self._closed:
            raise Closed("the db is closed")

    def close(self) -> None:
        """End all workers; may be repeated."""
        if not self._closed:
            self._closed, self.recorder = True, None
            self.coordinator.close()
            self.completion.alarm.close()
            if self.directory is not None:
                self.directory.release()


def loss_hint(directory: ClusterDirectory | None) -> str:
    """Return what to do when a worker is lost and the call cannot continue."""
    if directory is None:
        return "Its rows are lost: close this db and open a new one. With a directory, rows survive their workers."
    return f"Everything acknowledged is safe in {directory.path}. The next call starts the workers again."
