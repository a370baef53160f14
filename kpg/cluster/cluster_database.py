"""The db on several workers: the same contract as the embedded one, carried out by worker processes.

    with kpg.open(workers=2) as db: ...

This process describes collections and sends the descriptions as documents; it encodes rows and sends them as lanes.
Each worker returns its shard of an answer as lanes, which are decoded here. Several threads may use the db, one at a
time.

On a directory (`kpg.open("dir", workers=2)`) an acknowledged transaction is on the disks of all workers, and a lost
worker is replaced (see generations).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.contracts import Database
from kpg.api.input_declaration import any_column_name, existing_input
from kpg.api.output_table import OutputTable
from kpg.api.transactions import as_origin
from kpg.cluster import rank_commands as commands
from kpg.cluster.cluster_directory import ClusterDirectory
from kpg.cluster.cluster_input import ClusterInput
from kpg.cluster.cluster_installer import ClusterInstaller
from kpg.cluster.cluster_output import ClusterOutput, all_rows
from kpg.cluster.coordinator import Coordinator, Launcher, RankReply
from kpg.cluster.generations import Generations
from kpg.cluster.request_frames import RowBlock
from kpg.cluster.request_history import RequestHistory
from kpg.cluster.sent_rows import SentRows
from kpg.cluster.staged_rows import KEPT_SECONDS
from kpg.columns.schema_forms import schema_of
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.config import Config
from kpg.errors import Closed, InUse, KpgError, StorageError, Unavailable, UndefinedName, WorkerLost
from kpg.plan.plan_values import write_schema
from kpg.protocol.error_messages import error_of
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Origin
from kpg.trace.merge_policy import IDLE_CALL_FUEL

Result = TypeVar("Result", covariant=True)


class ClusterDatabase(Database):
    """A db on several workers; `kpg.open(workers=N)` returns one."""

    inputs: dict[str, ClusterInput]
    outputs: OutputTable[ClusterOutput]
    pending: SentRows
    readers: dict[str, NamedReader]
    installer: ClusterInstaller

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
        self.followers = []
        self.workers = workers
        self.directory = directory
        self.coordinator = Coordinator(workers, launcher, self.symbols, interface)
        self.coordinator.loss_hint = loss_hint(directory)
        self.generations = Generations(self.coordinator, config, directory)
        self.generations.after_recovery.append(self._discard_received_changes)
        self.pending = SentRows(config.coordinates, self.generations.history, keep_copies=directory is not None)
        self.installer = ClusterInstaller(self, output_class)
        self.checkpoint_trouble: str | None = None  # why the last automatic checkpoint failed
        self._next_checkpoint = 0 if directory is None else directory.checkpoint_bytes  # bytes of log
        self._closing: list[str] = []  # inputs that were closed while they had pending rows
        self._closed = False
        try:
            if directory is not None:
                directory.claim(workers, config.coordinates)
            self.coordinator.start(range(workers))
            self.generations.begin()
            if directory is not None:
                self._fetch_readers()
        except BaseException:
            self.close()
            raise

    @property
    def is_single_worker(self) -> bool:
        return False

    @property
    def recoveries(self) -> int:
        """The number of recoveries: a worker was lost, and all workers began a new generation."""
        return self.generations.recoveries

    # Requests

    def ask(self, command: commands.Command[Result], blocks: Sequence[RowBlock] = ()) -> list[RankReply[Result]]:
        """Send a command to all workers and return their replies."""
        self.check()
        with self.coordinator.lock:
            try:
                replies = self.generations.retrying(lambda: self.coordinator.ask(command, blocks))
            except KpgError:
                if self.coordinator.partly_done and RequestHistory.is_kept(command):
                    self._undo_on_all()
                raise
            self.generations.history.record(command)
            return replies

    def _undo_on_all(self) -> None:
        """Return to the state before a command that some workers performed and others refused."""
        if self.directory is not None:
            self.generations.recover()
        else:
            self.coordinator.fail("the workers do not agree", "Some performed a command, others refused it.")

    def tell(self, rank: int, command: commands.InsertCommand, blocks: Sequence[RowBlock] = ()) -> None:
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

    def read(
        self,
        command: commands.SnapshotCommand | commands.LookupCommand | commands.ScanCommand,
        as_of: Any,
        blocks: Sequence[RowBlock] = (),
    ) -> Updates:
        """Return rows as of a time, from all workers."""
        time = None if as_of is None else self.as_time(as_of)
        return all_rows([reply.blocks[0] for reply in self.ask(replace(command, as_of=time), blocks)])

    # Time

    @property
    def time(self) -> Frontier:
        return self.generations.now

    @property
    def sealed(self) -> Frontier | None:
        """The last complete time; None also for times of several coordinates, which only the workers know."""
        return Frontier.at((self.epoch - 1,)) if self.config.coordinates == 1 and self.epoch > 0 else None

    def horizon(self, relations: frozenset[str] | None = None) -> Frontier:
        """Return the beginning of time: a lower bound, since only the workers know how far they have compacted."""
        return Frontier.start(self.config.coordinates)

    def advance_to(self, time: int | Time | Frontier, *, origins: tuple[Origin, ...] = ()) -> None:
        with self.coordinator.lock:
            self.check()
            frontier = self._frontier_ahead(time)
            self.outputs.release_abandoned()
            replies = self.generations.retrying(lambda: self._try_advance(frontier, origins))
            self._finish_advance(frontier, replies)
        self._notify(replies)

    def _try_advance(self, frontier: Frontier, origins: tuple[Origin, ...]) -> list[RankReply[commands.AdvanceResult]]:
        """Make all workers log the rows they received, then make all move their clocks."""
        to, written_origins = frontier.elements, tuple((origin.source, origin.batch) for origin in origins)
        if self.directory is not None:
            try:
                self.coordinator.ask(commands.LogCommand(to, written_origins))
            except StorageError:
                self.coordinator.ask(commands.UnlogCommand())  # on the workers that could write
                raise
        following = tuple(name for name, output in self.outputs.items() if output.followed)
        command = commands.AdvanceCommand(to, tuple(self.pending), following, written_origins)
        return self.coordinator.ask(command)

    def _finish_advance(self, frontier: Frontier, replies: list[RankReply[commands.AdvanceResult]]) -> None:
        """Note that all workers have moved to a time, and keep the changes that they sent."""
        self.pending.discard()
        self.generations.now = frontier
        for index, name in enumerate(replies[0].value.changed):
            self.outputs[name].take([reply.blocks[index] for reply in replies])
        self._close_inputs()
        self._checkpoint_if_due(max(reply.value.log_bytes for reply in replies))

    def close_input(self, name: str) -> None:
        """Close an input on all workers. Its pending rows are part of an epoch first: the log must have them once."""
        self._closing.append(name)
        if name not in self.pending:
            self._close_inputs()

    def forget_input(self, name: str) -> None:
        """Drop everything about an input that the workers have dropped."""
        self.pending.forget(name)
        self.inputs.pop(name, None)
        self._closing = [closing for closing in self._closing if closing != name]

    def _close_inputs(self) -> None:
        while self._closing:
            self.ask(commands.CloseInputCommand(self._closing[-1]))
            self._closing.pop()

    def _checkpoint_if_due(self, log_bytes: int) -> None:
        """Write a checkpoint if the log has grown long. One that fails loses nothing, and is tried again later."""
        if self.directory is not None and log_bytes > self._next_checkpoint:
            try:
                self.checkpoint()
            except StorageError as error:
                self.checkpoint_trouble = f"the last checkpoint failed: {error}"
                self._next_checkpoint = log_bytes + max(1, self.directory.checkpoint_bytes // 4)

    def _notify(self, replies: list[RankReply[commands.AdvanceResult]]) -> None:
        """Call the listeners of changed outputs and the followers; then raise if a worker reached a limit."""
        for name in replies[0].value.changed:
            if name in self.outputs:
                self.outputs[name].notify()
        for follower in tuple(self.followers):
            follower()
        for reply in replies:
            if reply.value.trouble is not None:
                raise error_of(reply.value.trouble)

    def _discard_received_changes(self) -> None:
        """Make workers that began again drop the changes that this process has received from their predecessors."""
        followed = tuple(name for name, output in self.outputs.items() if output.followed)
        if followed:
            self.coordinator.ask(commands.DiscardChangesCommand(followed))

    def publish(self, command: commands.PublishCommand, rows: int, origins: tuple[Origin, ...] = ()) -> int:
        """Make staged rows one transaction and return its epoch; `rows` is their number.

        A worker that is lost meanwhile takes its staged rows with it. So this does not retry: the transaction has not
        happened, and the error asks the caller, which has the rows, to write them again.
        """
        with self.coordinator.lock:
            self.check()
            source = self.inputs[command.name]
            source.ensure_arranged()
            if self.pending:
                self.advance()  # rows of other writers are a transaction of their own
            epoch = self.epoch
            self.pending.add(source.name, self.time.elements[0])
            frontier = Frontier.at((epoch + 1,))
            try:
                self._insert_staged(command, rows)
                replies = self._try_advance(frontier, origins)
                self._finish_advance(frontier, replies)
            except WorkerLost as error:
                self.pending.discard()
                if self.directory is not None:
                    self.generations.recover()  # without these rows
                raise WorkerLost(
                    f"a worker was lost while {source.name} was written", detail=error.what, hint="Write again."
                ) from None
            except KpgError:
                self.take_back()
                raise
        self._notify(replies)
        return epoch

    def _insert_staged(self, command: commands.PublishCommand, rows: int) -> None:
        """Make the workers insert their staged rows; raise if some are missing."""
        inserted = sum(reply.value for reply in self.coordinator.ask(command))
        if inserted != rows:
            raise Unavailable(
                f"{rows - inserted} of {rows} rows that were staged for {command.name} are gone",
                detail=f"Rows that are not published are dropped after {KEPT_SECONDS:.0f} s.",
                hint="Write them again.",
            )

    def transact(self, fill: Callable[[ClusterDatabase], Any], *, origin: tuple[str, int] | None = None) -> int:
        batch = as_origin(origin)
        with self.coordinator.lock:
            if batch is not None and self.was_applied(batch):
                return self.epoch - 1
            if self.pending:
                raise InUse("rows were inserted before the transaction began", hint="Call db.advance() first.")
            try:
                fill(self)
                return self.advance(origins=() if batch is None else (batch,))
            except BaseException:
                self.take_back()
                raise

    def take_back(self) -> None:
        """Drop all pending rows, here and on the workers."""
        self.pending.discard()
        self.ask(commands.TakeBackCommand())
        self._close_inputs()

    def settle(self) -> None:
        self.outputs.release_abandoned()
        self.ask(commands.SettleCommand())

    def idle(self, rows: int = IDLE_CALL_FUEL) -> bool:
        """Return False: workers use their quiet moments by themselves."""
        return False

    # Storage

    def checkpoint(self) -> int:
        if self.directory is None:
            raise Unavailable("the db is not durable", hint='Open it on a directory: kpg.open("dir", workers=N).')
        with self.coordinator.lock:
            self.check()
            replies = self.generations.retrying(
                lambda: self.coordinator.ask(commands.CheckpointCommand(self.generations.checkpoint.elements))
            )
            self.generations.checkpoint = self.time
            self._next_checkpoint, self.checkpoint_trouble = self.directory.checkpoint_bytes, None
        return sum(reply.value for reply in replies)

    def set_reader(self, name: str, time: int | Time, of: Iterable[str] | None = None) -> None:
        relations = None if of is None else tuple(sorted(of))
        self.ask(commands.SetReaderCommand(name, self.as_time(time), relations))
        self._fetch_readers()

    def drop_reader(self, name: str) -> None:
        self._fetch_readers()
        if name not in self.readers:
            raise UndefinedName(f"there is no reader {name!r}", detail=f"Readers: {sorted(self.readers)}.")
        self.ask(commands.DropReaderCommand(name))
        self._fetch_readers()

    def _fetch_readers(self) -> None:
        readers = self.ask(commands.ReadersCommand())[0].value
        self.readers.clear()
        self.readers.update({name: NamedReader.from_json(reader) for name, reader in readers.items()})

    def was_applied(self, origin: Origin) -> bool:
        """Return whether a batch of a writer was applied, now or before the db was opened."""
        return self.ask(commands.IsAppliedCommand((origin.source, origin.batch)))[0].value

    def reclaim(self) -> int:
        with self.coordinator.lock:
            self.settle()
            self.ask(commands.ForgetSymbolsCommand())
            for member in self.coordinator.members.values():
                member.dictionary.forget()
            return sum(reply.value for reply in self.ask(commands.ReclaimSymbolsCommand()))

    # Relations and queries

    @any_column_name
    def input(
        self,
        name: str,
        schema: Any = None,
        /,
        *,
        key: str | Sequence[str] | None = None,
        keep_on_disk: bool = True,
        exist_ok: bool = False,
        **columns: Any,
    ) -> ClusterInput:
        existing: ClusterInput | None = existing_input(self, name, schema, columns, key, exist_ok)
        if existing is not None:
            return existing
        source = ClusterInput(self, name, schema_of(schema, columns), key)
        self.ask(commands.CreateInputCommand(name, write_schema(source.schema), tuple(source.key) or None))
        self.inputs[name] = source
        return source

    def frontier_of(self, command: commands.OutputFrontierCommand | commands.ProbeFrontierCommand) -> Frontier:
        """Return the times at which an output or probe may still change on some worker."""
        return Frontier(time for reply in self.ask(command) for time in reply.value)

    def release_on_workers(self, command: commands.Command[None]) -> None:
        """Make the workers release a handle; do nothing if the db is closed, or was in memory and has lost a worker."""
        if not self._closed and (self.directory is not None or self.coordinator.failure is None):
            self.ask(command)

    # Introspection

    def call_workers(self, function: str, **options: Any) -> list[Any]:
        """Call `function(db, **options)` on each worker and return the results; for measurements and tests."""
        return [reply.value for reply in self.ask(commands.CallCommand(function, options))]

    def explain(self) -> str:
        return self.explain_workers(None)

    def explain_workers(self, name: str | None) -> str:
        """Return what each worker explains of itself, or of one answer."""
        self.outputs.release_abandoned()
        replies = self.ask(commands.ExplainCommand(name))
        return "\n\n".join(f"worker {rank}\n{reply.value}" for rank, reply in enumerate(replies))

    def describe(self) -> dict[str, Any]:
        self.outputs.release_abandoned()
        replies = self.ask(commands.DescribeCommand())
        return {
            "workers": [reply.value for reply in replies],
            "inputs": sorted(self.inputs),
            "outputs": sorted(self.outputs),
            "epoch": self.epoch,
            "trouble": self.checkpoint_trouble,
        }

    def _repr_html_(self) -> str:
        return f"<p>kpg on {self.workers} workers, epoch {self.epoch}</p>"

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
            self._closed = True
            self.coordinator.close()
            if self.directory is not None:
                self.directory.release()


def loss_hint(directory: ClusterDirectory | None) -> str:
    """Return what to do when a worker is lost and the call cannot continue."""
    if directory is None:
        return "Its rows are lost: close this db and open a new one. With a directory, rows survive their workers."
    return f"Everything acknowledged is safe in {directory.path}. The next call starts the workers again."
