"""What the driver decides for those who come from tasks and planners of Spark: the role "client" at its door.

    describe   what a relation or answer is, and where the ranks are
    publish    attempts that tasks have staged become one transaction at one epoch; a repeated batch changes nothing
    discard    what was staged for a batch is forgotten
    hold       the history of a relation or answer is kept from a time on; may be a lease that ends by itself
    pace       up to where a reader may go to get so many updates

Each client is served on a thread of its own; what changes the db is done one at a time, under the coordinator's lock.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kpg.cluster import frame_codec, message
from kpg.cluster.frames import FrameSocket
from kpg.columns.symbols import Symbols
from kpg.errors import KpgError, ProtocolError, UndefinedName, WorkerLost
from kpg.plan.plan_values import write_schema
from kpg.spark.ledger import check_order, is_repeated, origin_of, origin_prefix
from kpg.storage.record import Origin

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase

REMEMBERED = 10_000  # transactions, for those who watch
LOOK = 1.0  # seconds between looks at whether the db is still open
EPOCHS = 10_000  # at most these many are looked at when a reader asks how far to go


class Published(NamedTuple):
    """A transaction that came from Spark."""

    at: float  # when all answers were up to date, by time.time()
    seconds: float  # since its commit was asked for
    epoch: int
    rows: int
    relation: str
    query: str | None  # of a stream


class DriverService:
    """Answers clients of a db."""

    def __init__(self, db: ClusterDatabase) -> None:
        self._db = db
        self.published: deque[Published] = deque(maxlen=REMEMBERED)
        self._held: dict[str, tuple[str, int]] = {}  # reader, what it reads and since when
        db.generations.after_meeting.append(self._hold_again)
        self._leases: dict[str, float] = {}  # reader, when its hold ends
        self._actions: dict[str, Callable[..., Any]] = {
            "describe": self.describe,
            "publish": self.publish,
            "discard": self.discard,
            "hold": self.hold,
            "let_go": self.let_go,
            "pace": self.pace,
        }

    def attend(self, hello: dict[str, Any], connection: FrameSocket) -> None:
        """Serve a client until it leaves."""
        told = frame_codec.SymbolDictionary(Symbols())  # no rows come this way
        bound: set[str] = set()  # readers whose holds end with the connection
        try:
            while not self._db.closed:
                if connection.wait(LOOK):
                    connection.flush()
                    for _, body in connection.receive():
                        content, _ = message.decode(body, told)
                        if content.pop("bound", False):
                            bound.add(str(content.get("reader")))
                        connection.send(message.REPLY, message.encode(self._reply(content), (), told))
                    connection.flush()
        except KpgError:
            pass  # it has left, or makes no sense
        finally:
            connection.close()
            self._release(bound)

    def _release(self, readers: set[str]) -> None:
        """A client is gone, and with it whoever read through it."""
        for reader in readers:
            with contextlib.suppress(KpgError), self._db.coordinator.lock:
                self.let_go(reader)

    def _reply(self, request: dict[str, Any]) -> dict[str, Any]:
        number, action = request.pop("id", None), request.pop("do", None)
        try:
            if action not in self._actions:
                raise ProtocolError(f"clients cannot ask for {action!r}")
            with self._db.coordinator.lock:
                self._end_leases()
                return {"id": number, "value": self._actions[action](**request)}
        except Exception as error:
            return {"id": number, "error": message.write_error(error)}

    # What is where

    def describe(self, name: str) -> dict[str, Any]:
        """What a relation or answer is, and where the ranks are."""
        db = self._db
        found = db.inputs.get(name) or db.outputs.get(name)
        if found is None:
            raise UndefinedName(
                f"there is no relation or answer called {name!r}",
                detail=f"Relations: {sorted(db.inputs)}. Answers: {sorted(db.outputs)}.",
                hint='Make it with db.input(...) or output(name=...), and say it as option("relation", ...).',
            )
        placed = db.ask({"do": "placement", "name": name})[0].value
        key = list(getattr(found, "key", ()))
        return {
            "writable": name in db.inputs,
            "schema": write_schema(found.schema),
            "key": key,
            "placed": placed or key or list(found.schema.names),
            "ranks": [list(db.coordinator.members[rank].address) for rank in range(db.workers)],
            "generation": db.coordinator.generation,
            "epoch": db.epoch,
        }

    # In

    def publish(
        self,
        relation: str,
        attempts: Sequence[dict[str, Any]],
        prefix: list[Any],
        query: str | None = None,
        batch: int = 0,
        replacing: bool = False,
        shared: bool = False,
        late: bool = False,
    ) -> int:
        """Make staged attempts one transaction; its epoch. A batch that was applied before changes nothing."""
        origins: tuple[Origin, ...] = ()
        if query is not None:
            last = self._db.ask({"do": "writers", "prefix": origin_prefix(relation)})[0].value
            if is_repeated(last, relation, query, batch):
                self.discard(prefix)
                return self._db.epoch - 1
            check_order(last, relation, query, batch, shared=shared, late=late)
            origins = (Origin(origin_of(relation, query), batch),)
        self._check_staged(attempts)
        keys = [attempt["key"] for attempt in attempts]
        request = {"name": relation, "keys": keys, "prefix": prefix, "replacing": replacing}
        began = time.monotonic()
        rows = sum(attempt["rows"] for attempt in attempts)
        epoch = self._db.publish(request, rows, origins)
        self.published.append(Published(time.time(), time.monotonic() - began, epoch, rows, relation, query))
        return epoch

    def _check_staged(self, attempts: Sequence[dict[str, Any]]) -> None:
        """What was staged with workers of an earlier generation went with it."""
        now = self._db.coordinator.generation
        if any(attempt["generation"] != now for attempt in attempts):
            raise WorkerLost("rows were staged before a worker was lost", hint="Write them again.")

    def discard(self, prefix: list[Any], final: bool = True) -> None:
        """Forget what was staged under keys that begin so; may be repeated."""
        self._db.ask({"do": "unstage", "prefix": prefix, "final": final})

    # Out

    def hold(
        self, reader: str, name: str, at: int | None = None, seconds: float | None = None, lasting: bool = False
    ) -> dict[str, int]:
        """Keep history for a reader, if lasting also on disk; since when it is kept, and the epoch that is open."""
        if seconds is not None:
            self._leases[reader] = time.monotonic() + seconds
        if name not in self._db.inputs and name not in self._db.outputs:
            self.describe(name)
        replies = self._db.ask({"do": "hold", "reader": reader, "name": name, "time": at, "lasting": lasting})
        since = max(reply.value for reply in replies)
        self._held[reader] = (name, since)
        return {"since": since, "epoch": self._db.epoch}

    def _hold_again(self) -> None:
        """A worker was lost, and holds with it. One that does not last may find its history gone: it is told so."""
        for reader, (name, since) in tuple(self._held.items()):
            try:
                self._db.coordinator.ask({"do": "hold", "reader": reader, "name": name, "time": since})
            except WorkerLost:
                raise
            except KpgError:
                del self._held[reader]

    def let_go(self, reader: str) -> None:
        """End a hold; may be repeated."""
        self._leases.pop(reader, None)
        self._held.pop(reader, None)
        self._db.ask({"do": "let_go", "reader": reader})

    def _end_leases(self) -> None:
        now = time.monotonic()
        for reader in [reader for reader, end in self._leases.items() if end < now]:
            self.let_go(reader)

    def pace(self, reader: str, start: int, rows: int | None) -> int:
        """The time up to which there are at most so many updates from `start` on, but one time at least."""
        end = self._db.epoch
        replies = self._db.ask({"do": "pace", "reader": reader, "start": start, "end": end, "at_most": EPOCHS})
        counts: dict[int, int] = {}
        for reply in replies:
            for at, count in zip(*reply.value, strict=True):
                counts[at] = counts.get(at, 0) + count
        return end_of_pace(counts, start, end, rows)


def end_of_pace(counts: dict[int, int], start: int, end: int, rows: int | None) -> int:
    """Where a reader that wants at most so many updates stops; where it is if there is nothing to read."""
    if not counts:
        return start
    if rows is None and len(counts) < EPOCHS:
        return end
    total, reached = 0, start
    for number, at in enumerate(sorted(counts)[:EPOCHS]):
        total += counts[at]
        if rows is not None and total > rows and number:
            return reached
        reached = at + 1
    return reached if len(counts) >= EPOCHS or (rows is not None and total > rows) else end
