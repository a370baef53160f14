"""The driver's service for Spark tasks and planners.

    describe   a relation or answer, and where the ranks are
    publish    staged attempts as one transaction at one epoch; a repeated batch changes nothing
    discard    staged rows of a batch
    hold       keep the history of a relation or answer from a time on; a hold may be a lease that ends by itself
    release    a hold
    pace       `read_end`: the time up to which a reader finds a given number of updates

Each client is served on a thread of its own; requests run one at a time, under the coordinator's lock.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kpg.cluster.frame_codec import SymbolDictionary
from kpg.cluster.frames import FrameSocket
from kpg.cluster.handler_table import HandlerTable
from kpg.cluster.rank_commands.command_kinds import StagingKey
from kpg.cluster.rank_commands.staging_commands import (
    CountUpdatesCommand,
    HoldCommand,
    PlacementCommand,
    PublishCommand,
    ReleaseHoldCommand,
    UnstageCommand,
)
from kpg.cluster.rank_commands.storage_commands import LatestBatchesCommand
from kpg.cluster.request_frames import (
    REFUSAL,
    REPLY,
    IncomingRequest,
    decode_request,
    encode_frame,
    encode_refusal,
)
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.errors import KpgError, ProtocolError, UndefinedName, WorkerLost
from kpg.plan.plan_values import write_schema
from kpg.protocol.message_codec import encode_result
from kpg.spark import driver_requests as requests
from kpg.spark.driver_requests import DRIVER_REQUESTS, StagedAttempt
from kpg.spark.ledger import check_order, is_repeated, origin_of, origin_prefix
from kpg.storage.record import Origin

if TYPE_CHECKING:
    from kpg.cluster.cluster_database import ClusterDatabase

MAX_REMEMBERED = 10_000  # transactions, for monitoring
CLOSE_POLL_SECONDS = 1.0  # between two checks whether the db is still open
MAX_EPOCHS = 10_000  # the maximum number of epochs with updates that one read spans


class SparkTransaction(NamedTuple):
    """A transaction that came from Spark."""

    at: float  # when all answers were up to date, by time.time()
    seconds: float  # since its commit was requested
    epoch: int
    rows: int
    relation: str
    query: str | None  # of a stream


class DriverService:
    """Serves the Spark tasks and planners of a db."""

    def __init__(self, db: ClusterDatabase) -> None:
        self._db = db
        self.published: deque[SparkTransaction] = deque(maxlen=MAX_REMEMBERED)
        self._held: dict[str, tuple[str, int]] = {}  # reader → the relation or answer, and the time of its hold
        self._lease_ends: dict[str, float] = {}  # reader → when its hold ends
        db.generations.after_recovery.append(self._restore_holds)

    def serve(self, connection: FrameSocket) -> None:
        """Serve a client until it disconnects."""
        dictionary = SymbolDictionary(Symbols())  # no rows pass through the driver
        bound_readers: set[str] = set()  # their holds end with the connection
        try:
            while not self._db.closed:
                if connection.wait(CLOSE_POLL_SECONDS):
                    connection.flush()
                    for _, body in connection.receive():
                        incoming = decode_request(body, dictionary, DRIVER_REQUESTS)
                        if isinstance(incoming.request, requests.HoldHistoryRequest) and incoming.request.bound:
                            bound_readers.add(incoming.request.reader)
                        kind, text = self._answer(incoming)
                        connection.send(kind, encode_frame(incoming.number, text, (), dictionary))
                    connection.flush()
        except KpgError:
            pass  # it has disconnected, or sends frames of no meaning
        finally:
            connection.close()
            for reader in bound_readers:
                with contextlib.suppress(KpgError), self._db.coordinator.lock:
                    self.release(reader)

    def _answer(self, incoming: IncomingRequest) -> tuple[int, str]:
        """Perform a request; return the kind and the JSON of its reply."""
        try:
            if isinstance(incoming.request, ProtocolError):
                raise incoming.request
            with self._db.coordinator.lock:
                self._end_leases()
                answer = DRIVER_HANDLERS.perform(self, incoming.request, incoming.blocks)
            return REPLY, encode_result(answer.value)
        except Exception as error:
            return REFUSAL, encode_refusal(error)

    # Placement

    def describe(self, name: str) -> requests.RelationDescription:
        """Describe a relation or answer, and where its rows are."""
        db = self._db
        relation = db.inputs.get(name) or db.outputs.get(name)
        if relation is None:
            raise UndefinedName(
                f"there is no relation or answer called {name!r}",
                detail=f"Relations: {sorted(db.inputs)}. Answers: {sorted(db.outputs)}.",
                hint='Make it with db.input(...) or output(name=...), and name it with option("relation", ...).',
            )
        placed = db.ask(PlacementCommand(name))[0].value
        key = tuple(getattr(relation, "key", ()))
        if placed is None or (name in db.inputs and not placed):
            placed = key or tuple(relation.schema.names)
        return requests.RelationDescription(
            writable=name in db.inputs,
            schema=write_schema(relation.schema),
            key=key,
            placed=placed,
            ranks=tuple(db.coordinator.members[rank].address for rank in range(db.workers)),
            generation=db.coordinator.generation,
            epoch=db.epoch,
        )

    # Writing

    def publish(self, request: requests.PublishAttemptsRequest) -> int:
        """Make staged attempts one transaction; return its epoch. A batch that was applied before changes nothing."""
        relation, query, batch = request.relation, request.query, request.batch
        origins: tuple[Origin, ...] = ()
        if query is not None:
            latest = self._db.ask(LatestBatchesCommand(origin_prefix(relation)))[0].value
            if is_repeated(latest, relation, query, batch):
                self.discard(request.prefix)
                return self._db.epoch - 1
            check_order(latest, relation, query, batch, shared=request.shared, late=request.late)
            origins = (Origin(origin_of(relation, query), batch),)
        self._check_staged(request.attempts)
        keys = tuple(attempt.key for attempt in request.attempts)
        command = PublishCommand(relation, keys, request.prefix, request.replacing)
        began = time.monotonic()
        rows = sum(attempt.rows for attempt in request.attempts)
        epoch = self._db.publish(command, rows, origins)
        self.published.append(SparkTransaction(time.time(), time.monotonic() - began, epoch, rows, relation, query))
        return epoch

    def _check_staged(self, attempts: Sequence[StagedAttempt]) -> None:
        """Refuse rows that were staged with workers of an earlier generation: they are lost."""
        generation = self._db.coordinator.generation
        if any(attempt.generation != generation for attempt in attempts):
            raise WorkerLost("rows were staged before a worker was lost", hint="Write them again.")

    def discard(self, prefix: StagingKey, final: bool = True) -> None:
        """Drop staged rows by the prefix of their keys; may be repeated."""
        self._db.ask(UnstageCommand(prefix, final))

    # Reading

    def hold(self, request: requests.HoldHistoryRequest) -> requests.HeldHistory:
        """Keep history for a reader; return the time from which it is kept, and the open epoch."""
        reader, name = request.reader, request.name
        if request.seconds is not None:
            self._lease_ends[reader] = time.monotonic() + request.seconds
        if name not in self._db.inputs and name not in self._db.outputs:
            self.describe(name)
        replies = self._db.ask(HoldCommand(reader, name, request.at, request.lasting))
        since = max(reply.value for reply in replies)
        self._held[reader] = (name, since)
        return requests.HeldHistory(since, self._db.epoch)

    def _restore_holds(self) -> None:
        """Hold again what a lost worker held. A hold that does not last may find its history gone; its reader fails."""
        for reader, (name, since) in tuple(self._held.items()):
            try:
                self._db.coordinator.ask(HoldCommand(reader, name, since))
            except WorkerLost:
                raise
            except KpgError:
                del self._held[reader]

    def release(self, reader: str) -> None:
        """End a hold; may be repeated."""
        self._lease_ends.pop(reader, None)
        self._held.pop(reader, None)
        self._db.ask(ReleaseHoldCommand(reader))

    def _end_leases(self) -> None:
        now = time.monotonic()
        for reader in [reader for reader, end in self._lease_ends.items() if end < now]:
            self.release(reader)

    def read_end(self, reader: str, start: int, rows: int | None) -> int:
        """Return the time up to which there are at most `rows` updates from `start` on, but at least one time."""
        end = self._db.epoch
        counts: dict[int, int] = {}
        for reply in self._db.ask(CountUpdatesCommand(reader, start, end, MAX_EPOCHS)):
            for at, count in zip(*reply.value, strict=True):
                counts[at] = counts.get(at, 0) + count
        return end_of_read(counts, start, end, rows)


DRIVER_HANDLERS: Final[HandlerTable[DriverService]] = HandlerTable()
Blocks = list[Updates]


@DRIVER_HANDLERS.handles(requests.DescribeRelationRequest)
def describe(
    service: DriverService, request: requests.DescribeRelationRequest, blocks: Blocks
) -> requests.RelationDescription:
    """Describe a relation or answer."""
    return service.describe(request.name)


@DRIVER_HANDLERS.handles(requests.PublishAttemptsRequest)
def publish(service: DriverService, request: requests.PublishAttemptsRequest, blocks: Blocks) -> int:
    """Make staged attempts one transaction."""
    return service.publish(request)


@DRIVER_HANDLERS.handles(requests.DiscardStagedRequest)
def discard(service: DriverService, request: requests.DiscardStagedRequest, blocks: Blocks) -> None:
    """Drop staged rows."""
    service.discard(request.prefix, request.final)


@DRIVER_HANDLERS.handles(requests.HoldHistoryRequest)
def hold(service: DriverService, request: requests.HoldHistoryRequest, blocks: Blocks) -> requests.HeldHistory:
    """Keep history for a reader."""
    return service.hold(request)


@DRIVER_HANDLERS.handles(requests.ReleaseHistoryRequest)
def release(service: DriverService, request: requests.ReleaseHistoryRequest, blocks: Blocks) -> None:
    """End a hold."""
    service.release(request.reader)


@DRIVER_HANDLERS.handles(requests.ReadEndRequest)
def read_end(service: DriverService, request: requests.ReadEndRequest, blocks: Blocks) -> int:
    """Return how far a reader may read."""
    return service.read_end(request.reader, request.start, request.rows)


def end_of_read(counts: dict[int, int], start: int, end: int, rows: int | None) -> int:
    """Return where a reader of at most `rows` updates stops; `start` if there is nothing to read."""
    if not counts:
        return start
    if rows is None and len(counts) < MAX_EPOCHS:
        return end
    total, reached = 0, start
    for number, at in enumerate(sorted(counts)[:MAX_EPOCHS]):
        total += counts[at]
        if rows is not None and total > rows and number:
            return reached
        reached = at + 1
    return reached if len(counts) >= MAX_EPOCHS or (rows is not None and total > rows) else end
