"""The db of a cluster, as people hold it: the same calls as the embedded one, done by workers elsewhere.

    with kpg.open(workers=2) as db: ...

Descriptions of collections are made here and sent as documents; rows are encoded here and sent as lanes; answers come
back as lanes, a shard from each worker, and are decoded here. It may be used from several threads, one at a time.

On a directory (`kpg.open("dir", workers=2)`) an acknowledged transaction is on the disks of all workers, and a lost
worker is made good (see generations).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.database import Database
from kpg.api.input import Input
from kpg.api.transactions import as_origin
from kpg.cluster.cluster_directory import ClusterDirectory
from kpg.cluster.cluster_input import ClusterInput
from kpg.cluster.cluster_installer import ClusterInstaller
from kpg.cluster.cluster_output import all_rows
from kpg.cluster.coordinator import Coordinator, Launcher, RankReply
from kpg.cluster.generations import Generations
from kpg.cluster.message import Rows, read_error
from kpg.cluster.staged_rows import KEPT_SECONDS
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates
from kpg.config import Config
from kpg.errors import Closed, InUse, KpgError, StorageError, Unavailable, WorkerLost
from kpg.plan.plan_values import write_schema
from kpg.storage.manifest import frontier_to_json
from kpg.storage.named_readers import NamedReader
from kpg.storage.record import Origin
from kpg.trace.merge_policy import IDLE_CALL_FUEL


class ClusterDatabase(Database):
    """Inputs, answers and the clock they share, on several workers; made by `kpg.open(workers=N)`."""

    installer: ClusterInstaller

    def __init__(
        self,
        config: Config,
        workers: int,
        launcher: Launcher,
        interface: str = "127.0.0.1",
        home: ClusterDirectory | None = None,
    ) -> None:
        super().__init__(config)
        self.workers = workers
        self.home = home
        self.coordinator = Coordinator(workers, launcher, self.symbols, interface)
        self.generations = Generations(self.coordinator, config, home)
        self.generations.after_meeting.append(self._discard_heard)
        self.installer = ClusterInstaller(self)
        try:
            if home is not None:
                home.claim(workers, config.coordinates)
            self.coordinator.start(range(workers))
            self.generations.begin()
            if home is not None:
                self._find_readers()
        except BaseException:
            self.close()
            raise

    @property
    def alone(self) -> bool:
        """The rows are with the workers."""
        return False

    @property
    def recoveries(self) -> int:
        """How often workers were lost and all began again."""
        return self.generations.recoveries

    # Requests

    def ask(self, request: dict[str, Any], blocks: Sequence[Rows] = ()) -> list[RankReply]:
        """Have all workers do something."""
        self.check()
        with self.coordinator.lock:
            replies = self.generations.lasting(lambda: self.coordinator.ask(request, blocks))
            self.generations.script.done(request)
            return replies

    def tell(self, rank: int, request: dict[str, Any], blocks: Sequence[Rows] = ()) -> None:
        """Have one worker take rows, without waiting for it."""
        self.check()
        with self.coordinator.lock:
            if self.home is not None:
                self.generations.script.tell(rank, request, blocks)
            try:
                self.coordinator.tell(rank, request, blocks)
            except WorkerLost:
                if self.home is None:
                    raise
                self.generations.recover()  # which tells these rows, too

    def read(self, request: dict[str, Any], as_of: Any, blocks: Sequence[Rows] = ()) -> Updates:
        """Rows as of a time, from all workers."""
        time = None if as_of is None else list(self.as_time(as_of))
        return all_rows([reply.blocks[0] for reply in self.ask({**request, "as_of": time}, blocks)])

    # Time

    @property
    def time(self) -> Frontier:
        """The times that are open: inserts go there, reads do not reach it yet."""
        return self.generations.now

    def advance_to(self, time: int | Time | Frontier, *, origins: tuple[Origin, ...] = ()) -> None:
        """Move the clock: everything before `time` is complete when this returns."""
        with self.coordinator.lock:
            self.check()
            frontier = self._ahead(time)
            replies = self.generations.lasting(lambda: self._advance(frontier, origins))
            self._moved(frontier, origins, replies)
        self._tell(replies)

    def _advance(self, frontier: Frontier, origins: tuple[Origin, ...]) -> list[RankReply]:
        """One try: first all workers log what they were given, then all move."""
        to, whose = frontier_to_json(frontier), [list(origin) for origin in origins]
        if self.home is not None:
            try:
                self.coordinator.ask({"do": "log", "to": to, "origins": whose})
            except StorageError:
                self.coordinator.ask({"do": "unlog"})  # those that could
                raise
        following = [name for name, output in self.outputs.items() if output.followed]
        return self.coordinator.ask({
            "do": "advance", "to": to, "dirty": list(self.dirty), "following": following, "origins": whose,
        })  # fmt: skip

    def _moved(self, frontier: Frontier, origins: tuple[Origin, ...], replies: list[RankReply]) -> None:
        """All workers have moved to a time, and have sent what changed."""
        self.generations.script.open.clear()
        self.dirty.clear()
        self.generations.now = frontier
        for origin in origins:
            self.applied.add(origin)
        for place, name in enumerate(replies[0].value["heard"]):
            self.outputs[name].take([reply.blocks[place] for reply in replies])
        log_bytes = max(reply.value["log_bytes"] for reply in replies)
        if self.home is not None and log_bytes > self.home.checkpoint_bytes:
            self.checkpoint()

    def _tell(self, replies: list[RankReply]) -> None:
        """Tell listeners what changed; then the caller, if a worker met a limit."""
        for name in replies[0].value["heard"]:
            if name in self.outputs:
                self.outputs[name].notify()
        self.told()
        for reply in replies:
            if reply.value["trouble"] is not None:
                raise read_error(reply.value["trouble"])

    def _discard_heard(self) -> None:
        """Workers that begin again tell all changes from the beginning: what was sent here before is dropped there."""
        followed = [name for name, output in self.outputs.items() if output.followed]
        if followed:
            self.coordinator.ask({"do": "discard", "names": followed})

    def publish(self, request: dict[str, Any], rows: int, origins: tuple[Origin, ...] = ()) -> int:
        """Make so many rows that guests have staged one transaction; its epoch.

        If a worker is lost meanwhile, what was staged there is lost with it, so it is not tried again here: it is as if
        it had never begun, and its caller, who has the rows, is told so.
        """
        with self.coordinator.lock:
            self.check()
            source = self.inputs[request["name"]]
            self.ensure_arranged(source.name)
            if self.dirty:
                self.advance()  # what others have inserted is a transaction of its own
            epoch = self.epoch
            self.mark_dirty(source)
            frontier = Frontier.at((epoch + 1,))
            try:
                self._insert_staged(request, rows)
                replies = self._advance(frontier, origins)
                self._moved(frontier, origins, replies)
            except WorkerLost as error:
                if self.home is not None:
                    self.generations.recover()  # without these rows
                raise WorkerLost(
                    f"a worker was lost while {source.name} was written", detail=error.what, hint="Write again."
                ) from None
            except KpgError:
                self.take_back()
                raise
        self._tell(replies)
        return epoch

    def _insert_staged(self, request: dict[str, Any], rows: int) -> None:
        """Have the workers insert what was staged with them; refused if some of it is not there."""
        found = sum(reply.value for reply in self.coordinator.ask({"do": "publish", **request}))
        if found != rows:
            raise Unavailable(
                f"{rows - found} of {rows} rows that were staged for {request['name']} are gone",
                detail=f"What nobody publishes is dropped after {KEPT_SECONDS:.0f} s.",
                hint="Write them again.",
            )

    def transact(self, fill: Callable[[Database], Any], *, origin: tuple[str, int] | None = None) -> int:
        """Let `fill(db)` insert, and advance: all of it or, if something fails, nothing; returns the epoch."""
        whose = as_origin(origin)
        with self.coordinator.lock:
            if whose is not None and self.was_applied(whose):
                return self.epoch - 1
            if self.dirty:
                raise InUse("rows were inserted before the transaction began", hint="Call db.advance() first.")
            try:
                fill(self)
                return self.advance(origins=() if whose is None else (whose,))
            except BaseException:
                self.take_back()
                raise

    def take_back(self) -> None:
        """Forget all that was inserted since the last advance."""
        self.generations.script.open.clear()
        self.dirty.clear()
        self.ask({"do": "take_back"})

    def push_to(self, time: int | Time | Frontier, origins: tuple[Origin, ...] = ()) -> None:
        """The workers do the work of an advance at once."""
        self.advance_to(time, origins=origins)

    def settle(self) -> None:
        """Have the workers do all work that is due."""
        self.ask({"do": "settle"})

    def idle(self, rows: int = IDLE_CALL_FUEL) -> bool:
        """Workers use their quiet moments by themselves."""
        return False

    # What is kept

    def checkpoint(self) -> int:
        """Have all workers write what is not in files yet, so that recovery need not read the log; how many files."""
        if self.home is None:
            raise Unavailable("the db is not durable", hint='Open it on a directory: kpg.open("dir", workers=N).')
        return sum(reply.value for reply in self.ask({"do": "checkpoint"}))

    def set_reader(self, name: str, time: int | Time, of: Iterable[str] | None = None) -> None:
        """Have all workers keep what happens from `time` on, in the relations that a reader reads, or in all."""
        relations = None if of is None else sorted(of)
        self.ask({"do": "set_reader", "name": name, "time": list(self.as_time(time)), "of": relations})
        self._find_readers()

    def drop_reader(self, name: str) -> None:
        """Let go of what only this reader would come back for."""
        self.ask({"do": "drop_reader", "name": name})
        self._find_readers()

    def _find_readers(self) -> None:
        found = self.ask({"do": "readers"})[0].value
        self.readers.clear()
        self.readers.update({name: NamedReader.from_json(each) for name, each in found.items()})

    def was_applied(self, origin: Origin) -> bool:
        """Whether a batch of a writer was applied, now or before the db was opened."""
        return bool(self.ask({"do": "applied", "origin": list(origin)})[0].value)

    def reclaim(self) -> int:
        """Have the workers forget texts that no row has any more; returns how many."""
        with self.coordinator.lock:
            self.settle()
            self.ask({"do": "forget"})
            for member in self.coordinator.members.values():
                member.told.forget()
            return sum(reply.value for reply in self.ask({"do": "reclaim"}))

    # Relations and queries

    def input(
        self,
        name: str,
        schema: Schema | None = None,
        /,
        *,
        key: Any = None,
        keep_on_disk: bool = True,  # as all inputs of several workers are
        **columns: Any,
    ) -> Input:
        """A new named, typed relation that rows are inserted into."""
        self._check_free(name)
        made = ClusterInput(self, name, schema or Schema.of(columns), key)
        self.ask({
            "do": "input", "name": name, "schema": write_schema(made.schema), "key": list(made.key) or None,
        })  # fmt: skip
        self.inputs[name] = made
        return made

    def ensure_arranged(self, name: str, keys: tuple[str, ...] | None = None) -> None:
        """Have all workers arrange a relation, if no query has made them do so."""
        self.ask({"do": "base", "name": name, "keys": None if keys is None else list(keys)})

    def mark_dirty(self, source: Input) -> None:
        """Rows were sent that the next advance makes visible."""
        self.dirty[source.name] = source

    def frontier_of(self, kind: str, name: Any) -> Frontier:
        """What may still change, on some worker."""
        replies = self.ask({"do": "frontier", "kind": kind, "name": name})
        return Frontier(tuple(time) for reply in replies for time in reply.value)

    def let_go(self, kind: str, name: Any) -> None:
        """Have the workers release something; nothing to do once they are gone."""
        if not self._closed and self.coordinator.broken is None:
            self.ask({"do": "release", "kind": kind, "name": name})

    # Looking inside

    def explain(self) -> str:
        """One block per arrangement, for each worker."""
        return self.explain_workers(None)

    def explain_workers(self, name: str | None) -> str:
        """What the workers explain of themselves, or of an answer."""
        replies = self.ask({"do": "explain", "name": name})
        return "\n\n".join(f"worker {rank}\n{reply.value}" for rank, reply in enumerate(replies))

    def describe(self) -> dict[str, Any]:
        """Inputs and answers, and what each worker holds, as plain values."""
        replies = self.ask({"do": "describe"})
        return {
            "workers": [reply.value for reply in replies],
            "inputs": sorted(self.inputs),
            "outputs": sorted(self.outputs),
            "epoch": self.epoch,
        }

    def _repr_html_(self) -> str:
        return f"<p>kpg on {self.workers} workers, epoch {self.epoch}</p>"

    # Life

    def check_thread(self) -> None:
        """Any thread may use it."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def check(self) -> None:
        """Refuse use after close."""
        if self._closed:
            raise Closed("the db is closed")

    def close(self) -> None:
        """End all workers; may be repeated."""
        if not self._closed:
            self._closed = True
            self.coordinator.close()
            if self.home is not None:
                self.home.leave()
