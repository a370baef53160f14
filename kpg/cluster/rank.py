"""A rank: one worker with its shard of the db, which performs the coordinator's commands in order.

    serve(bootstrap)     connect to the coordinator, then perform commands until stopped or disconnected

Every rank gets the same commands in the same order, so all build the same dataflows. A command that needs all of them
(an advance, a read) ends when nothing before the clock is in flight on any rank. Between commands a rank serves data
connections, works on what its peers send, and merges batches. If commands do not wait for answers, it works in slices
between them, and sends reports of what is complete; a slice ends early when something arrives.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from kpg.algebra.frontier import Frontier
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.cluster import command_handlers, frame_codec, frames, handshake
from kpg.cluster.authenticated_listener import AuthenticatedListener
from kpg.cluster.data_connections import DataConnection
from kpg.cluster.frames import FrameSocket
from kpg.cluster.hello_messages import BOOTSTRAPS, DataHello, Hello, PeerHello, RankBootstrap, RankHello
from kpg.cluster.mesh import Mesh
from kpg.cluster.rank_commands.command_kinds import COMMANDS, LifecycleCommand
from kpg.cluster.rank_commands.lifecycle_commands import MeetCommand, Met, PrepareCommand, Recoverable, StopCommand
from kpg.cluster.rank_completion import RankCompletion
from kpg.cluster.rank_durability import RankDurable
from kpg.cluster.rank_generation import RankGeneration
from kpg.cluster.request_frames import (
    REFUSAL,
    REPLY,
    REPORT,
    REQUEST,
    UNNUMBERED,
    Answer,
    IncomingRequest,
    decode_request,
    encode_frame,
    encode_refusal,
)
from kpg.columns.full_collections import collect_all_when_due, collect_when_grown
from kpg.columns.symbols import Symbols
from kpg.dataflow.work_share import WorkShare
from kpg.dataflow.worker import Worker
from kpg.errors import ClusterError, InUse, KpgError, ProtocolError, WorkerLost
from kpg.kernels.warm import load
from kpg.protocol.message_codec import decode, encode_result
from kpg.storage.storage import Storage
from kpg.storage.transaction_log import Durability
from kpg.version import __version__

MEETING_TIMEOUT_SECONDS = 30.0  # for all peers of a generation to connect
SLICE_SECONDS = 0.002  # of work between two looks at the coordinator's connection
LEAST_SLICE_SECONDS = 0.001  # that commands wait for: shorter slices look at frontiers more than they work
CALL_CHECK_SECONDS = 0.0005  # between two checks, within a slice, whether something has arrived
IDLE_AFTER_SECONDS = 0.005  # merging sooner would delay a next command for a merge that no reader needs yet
KERNEL_LOADING_AFTER_SECONDS = 1.0  # of silence: a later query then finds its kernels loaded
DIRECTORY_TIMEOUT_SECONDS = 20.0  # for ranks of a coordinator that is gone to notice that and release the directory


class Rank:
    """One worker of a cluster, connected to its coordinator."""

    def __init__(self, bootstrap: RankBootstrap) -> None:
        self.rank = bootstrap.rank
        self.secret = bytes.fromhex(bootstrap.secret)
        self.listener = AuthenticatedListener(bootstrap.interface, self.secret)
        self.control = self._connect(bootstrap)
        self.symbols = Symbols()
        self.dictionary = frame_codec.SymbolDictionary(self.symbols)
        self.commands: deque[IncomingRequest] = deque()
        self.data_connections: list[DataConnection] = []
        self.arrived_peers: list[tuple[PeerHello, socket.socket]] = []  # of this generation or a later one
        self.mesh: Mesh | None = None
        self.storage: Storage | None = None
        self.generation: RankGeneration | None = None
        self.failure: ClusterError | None = None  # a peer is lost: this generation can complete nothing more
        self.running = True
        self._kernels = load()
        self._share = WorkShare()
        self._arrivals = ArrivalCheck([self.control])

    def _connect(self, bootstrap: RankBootstrap) -> FrameSocket:
        hello = RankHello(self.rank, bootstrap.token, self.listener.address, __version__, os.getpid())
        return FrameSocket(handshake.connect(bootstrap.coordinator, self.secret, hello))

    # Serving

    def serve(self) -> None:
        """Perform commands until stopped, or until the coordinator is gone."""
        avoid_preempting_waker()
        try:
            while self.running:
                self._pump()
                if self.commands and not self._owes_work():
                    began = time.perf_counter()
                    self._answer(self.commands.popleft())
                    self._share.requests_took(time.perf_counter() - began)
                elif not self._serve_data_connection():
                    self._idle()
        except KpgError:
            if not self.control.closed:
                raise
        finally:
            self.close()

    def _pump(self) -> None:
        """Receive commands, connections and data requests, and send replies, without waiting."""
        if self.control.unsent:
            self.control.flush()
        for kind, body in self.control.receive():
            if kind != REQUEST:
                raise ProtocolError(f"the coordinator sent a frame of unknown kind {kind}")
            self.commands.append(decode_request(body, self.dictionary, COMMANDS))
        while (arrival := self.listener.take()) is not None:
            self._admit(*arrival)
        for connection in tuple(self.data_connections):
            if not connection.pump():
                self.data_connections.remove(connection)

    def _admit(self, hello: Hello, sock: socket.socket) -> None:
        if isinstance(hello, PeerHello):
            self.arrived_peers.append((hello, sock))
        elif isinstance(hello, DataHello) and hello.version == __version__:
            self.data_connections.append(DataConnection(sock, self.symbols))
        else:
            sock.close()

    def _serve_data_connection(self) -> bool:
        """Perform one request of a data connection. Return False if there is none."""
        for connection in self.data_connections:
            if connection.requests:
                incoming = connection.requests.popleft()
                if self.failure is not None or self.generation is None:
                    connection.refuse(incoming, self.failure or ProtocolError("the workers have not met yet"))
                else:
                    connection.answer(self.generation.data_service, incoming)
                return True
        return False

    def _answer(self, incoming: IncomingRequest) -> None:
        """Perform a command and send its reply; a command without a number is answered only if it fails."""
        try:
            answer = self._perform(incoming)
            if self.generation is not None and incoming.number != UNNUMBERED:
                self.generation.reports.last_command = incoming.number
            if incoming.number != UNNUMBERED:
                text = encode_result(answer.value)
                self.control.send(REPLY, encode_frame(incoming.number, text, answer.blocks, self.dictionary))
        except Exception as error:
            if isinstance(error, WorkerLost):
                self.failure = error
            text = encode_refusal(error)
            self.control.send(REFUSAL, encode_frame(incoming.number, text, (), self.dictionary))
        self.control.flush()

    def _perform(self, incoming: IncomingRequest) -> Answer[Any]:
        match incoming.request:
            case ProtocolError() as error:
                raise error
            case PrepareCommand() as command:
                return Answer(self._prepare(command))
            case MeetCommand() as command:
                return Answer(self._meet(command))
            case StopCommand():
                self.running = False
                return Answer(None)
            case command:
                if self.failure is not None:
                    raise self.failure.with_traceback(None)
                if self.generation is None:
                    raise ProtocolError("a rank got a command before it met its peers")
                return command_handlers.perform(self.generation, command, incoming.blocks)

    def _owes_work(self) -> bool:
        """Return whether commands have to wait for a slice of work, which they leave too little time."""
        serving = self.generation is not None and self.failure is None and self.generation.completion.lags
        return serving and self._share.least_seconds >= LEAST_SLICE_SECONDS

    def _idle(self) -> None:
        """Work on what peers have sent; merge; wait for something to arrive."""
        waiting = self._connections()
        if self.mesh is not None and self.generation is not None and self.failure is None:
            waiting += self.mesh.connections()
            try:
                if self._work_in_slices(self.generation) or self.commands:
                    return
            except WorkerLost as error:
                self.failure = error
                return
            has_arrived = bool(frames.wait(waiting, IDLE_AFTER_SECONDS))
            self.generation.data_service.staged.expire()
            if has_arrived or self._merge(self.generation):
                return
        if not frames.wait(waiting, KERNEL_LOADING_AFTER_SECONDS):
            while next(self._kernels, None) is not None and not frames.wait(waiting, 0):
                pass
            if not frames.wait(waiting, 0):
                collect_all_when_due()

    def _merge(self, generation: RankGeneration) -> bool:
        """Merge for a moment; between commands that wait for answers, slices continue what takes longer.

        Return whether more is left.
        """
        policy, lags = generation.db.merge_policy, generation.completion.lags
        more = generation.db.worker.idle_merge(policy.idle_fuel, policy.idle_operators, can_pause=lags)
        return more or (lags and generation.db.worker.is_busy)

    def _work_in_slices(self, generation: RankGeneration) -> bool:
        """Work for a slice and report what is complete, or do all work if commands wait for it.

        Return whether work is left.
        """
        completion = generation.completion
        if not completion.lags:
            generation.db.worker.run()
            return False
        began = time.perf_counter()
        self._arrivals.not_before = began + self._share.least_seconds
        busy = completion.work(SLICE_SECONDS)
        if busy:
            self._share.slice_took(time.perf_counter() - began)
        else:
            self._share.forgive()
        report = generation.reports.take_if_new(idle=not busy)
        if report is not None:
            text = encode_result(report.value)
            self.control.send(REPORT, encode_frame(UNNUMBERED, text, report.blocks, self.dictionary))
            self.control.flush()
        return busy

    def _connections(self) -> list[frames.Waitable]:
        """Return all connections but those to peers."""
        return [self.control, self.listener, *[connection.connection for connection in self.data_connections]]

    # Generations

    def _end_generation(self) -> None:
        if self.mesh is not None:
            self.mesh.close()
        if self.generation is not None:
            self.generation.close()
        if self.storage is not None:
            self.storage.close()
        self.mesh = self.generation = self.storage = self.failure = None

    def _prepare(self, command: PrepareCommand) -> Recoverable:
        """End the generation, open the rank's part of the directory, and return what it can recover."""
        self._end_generation()
        self.storage = self._open_storage(f"{command.place.rstrip('/')}/rank-{self.rank}", command.durability)
        checkpoints = tuple(frontier.elements for frontier in self.storage.checkpoints())
        return Recoverable(self.storage.durable_frontier().elements, checkpoints)

    def _open_storage(self, path: str, durability: Durability) -> Storage:
        """Open a directory. If another process has it open, that is a rank without a coordinator: it ends soon."""
        deadline = time.monotonic() + DIRECTORY_TIMEOUT_SECONDS
        while True:
            try:
                return Storage(path, durability=durability)
            except InUse:
                if time.monotonic() > deadline:
                    raise
            self.check_abandoned()
            time.sleep(0.05)

    def _meet(self, command: MeetCommand) -> Met:
        """Begin a generation with its peers, from what is on disk if anything is."""
        storage, self.storage = self.storage, None
        self._end_generation()
        self.storage = storage
        try:
            return self._begin_generation(command)
        except BaseException:
            self._end_generation()
            raise

    def _begin_generation(self, command: MeetCommand) -> Met:
        ranks = len(command.peers)
        mesh = Mesh(self.rank, self.symbols)
        for rank in range(self.rank):
            mesh.add(rank, self._connect_peer(command.peers[rank], rank, command.generation))
        missing = set(range(self.rank + 1, ranks))
        deadline = time.monotonic() + MEETING_TIMEOUT_SECONDS
        while missing:
            self._accept_peers(mesh, command.generation, missing)
            self.check_abandoned()
            if time.monotonic() > deadline:
                raise WorkerLost(f"ranks {sorted(missing)} did not connect within {MEETING_TIMEOUT_SECONDS:.0f} s")
        self.mesh = mesh  # closed with the generation if a later step fails
        start = (0,) * command.config.coordinates
        worker = Worker(self.rank, ranks, mesh if ranks > 1 else None, start)
        self._arrivals = ArrivalCheck([self.control, *mesh.connections()])
        worker.is_called = self._arrivals.has_arrived
        db = EmbeddedDatabase(command.config, worker, self.symbols, self._recover(command, mesh), RankCompletion)
        if command.sealed is not None and isinstance(db.completion, RankCompletion):
            db.completion.sealed = Frontier.at((command.sealed,))
        self.generation = RankGeneration(db, mesh, self._connections_while_settling, self.dictionary)
        if db.durable is None:
            return Met(db.time.elements, ())
        since = {name: frontier.elements for name, frontier in db.durable.recovered.since.items()}
        return Met(db.time.elements, tuple(sorted(db.durable.storage.relations)), since)

    def _connect_peer(self, address: tuple[str, int], rank: int, generation: int) -> FrameSocket:
        """Connect to a peer. One that refuses was killed after the coordinator learned its address."""
        try:
            hello = PeerHello(self.rank, generation)
            return FrameSocket(handshake.connect(address, self.secret, hello, MEETING_TIMEOUT_SECONDS))
        except ClusterError as error:
            raise WorkerLost(f"worker {rank} cannot be reached by worker {self.rank}", detail=error.what) from None

    def _recover(self, command: MeetCommand, mesh: Mesh) -> RankDurable | None:
        if self.storage is None:
            return None
        assert command.upto is not None and command.checkpoint is not None
        recovered = self.storage.recover(
            self.symbols,
            upto=Frontier(command.upto),
            generation=command.generation,
            checkpoint=Frontier(command.checkpoint),
        )
        return RankDurable(self.storage, recovered, self.symbols, mesh, self.check_abandoned)

    def check_abandoned(self) -> None:
        """Give up waiting for peers if the coordinator has begun another generation or is gone."""
        self._pump()
        if any(isinstance(incoming.request, LifecycleCommand) for incoming in self.commands):
            raise WorkerLost("the coordinator has given up this generation")

    def _accept_peers(self, mesh: Mesh, generation: int, missing: set[int]) -> None:
        """Add peers that have connected; close connections of earlier generations, keep those of later ones."""
        arrival = self.listener.take(0.1) if not self.arrived_peers else None
        if arrival is not None:
            self._admit(*arrival)
        later = []
        for hello, sock in self.arrived_peers:
            if hello.generation == generation and hello.rank in missing:
                mesh.add(hello.rank, FrameSocket(sock))
                missing.discard(hello.rank)
            elif hello.generation <= generation:
                sock.close()
            else:
                later.append((hello, sock))
        self.arrived_peers = later

    def _connections_while_settling(self) -> list[frames.Waitable]:
        """Return what to watch beside the peers while work is in flight; the coordinator may be gone."""
        self.check_abandoned()
        return self._connections()

    def close(self) -> None:
        """Close all connections and the db."""
        self.listener.close()
        for connection in self.data_connections:
            connection.connection.close()
        self._end_generation()
        self.control.close()


class ArrivalCheck:
    """Tells a running step whether something has arrived on some connections, at most every CALL_CHECK_SECONDS."""

    def __init__(self, connections: list[FrameSocket]) -> None:
        self.not_before = 0.0  # when a slice may end
        self._poller = frames.SocketPoller(connections)
        self._next = 0.0

    def has_arrived(self) -> bool:
        """Return whether something has arrived; False without a look if the last one was just now."""
        now = time.perf_counter()
        if now < self._next or now < self.not_before:
            return False
        self._next = now + CALL_CHECK_SECONDS
        return bool(self._poller.arrived())


def avoid_preempting_waker() -> None:
    """Ask the operating system not to preempt the process that wakes this one.

    Otherwise the first rank that gets a command preempts the coordinator for milliseconds, before it has sent the
    command to the other ranks.
    """
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def serve(bootstrap: RankBootstrap) -> None:
    """Run a rank until its coordinator stops it."""
    sys.path[:0] = [path for path in bootstrap.path if path not in sys.path]
    Rank(bootstrap).serve()


def main(read_line: Callable[[], str] = sys.stdin.readline) -> None:
    """Run a rank as a process. Its bootstrap comes over standard input: arguments are visible to other users."""
    collect_when_grown()
    serve(decode(read_line(), BOOTSTRAPS))
