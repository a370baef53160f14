"""The coordinator starts the ranks, begins their generations, and sends every command to all of them in one order.

    ask(command)                 to every rank; returns their results, rank by rank
    tell(rank, command, rows)    to one rank, without a reply; an error arrives with the next reply. Few rows leave
                                 together with the next command that all ranks get, as one message
    take_reports()               what ranks have sent by themselves: changes, and how far answers are complete

A command is sent to all ranks before any reply is awaited. The loss of a rank ends the generation: the call that
notices raises `WorkerLost`, as soon as the process dies, and so does every later call until a new generation begins.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from kpg.algebra.frontier import Frontier
from kpg.cluster import frames
from kpg.cluster.authenticated_listener import AuthenticatedListener
from kpg.cluster.fair_lock import FairLock
from kpg.cluster.frame_codec import SymbolDictionary
from kpg.cluster.frames import FrameSocket
from kpg.cluster.hello_messages import DriverHello, Hello, RankBootstrap, RankHello
from kpg.cluster.rank_commands.command_kinds import Command
from kpg.cluster.rank_commands.lifecycle_commands import MeetCommand, Met, PrepareCommand, Recoverable, StopCommand
from kpg.cluster.rank_commands.time_commands import RankReport
from kpg.cluster.request_frames import (
    REFUSAL,
    REPLY,
    REPORT,
    REQUEST,
    UNNUMBERED,
    RowBlock,
    decode_frame,
    decode_refusal,
    decode_result,
    encode_frame,
)
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.config import Config
from kpg.errors import Closed, ClusterError, KpgError, ProtocolError, Unreachable, WorkerLost
from kpg.protocol.message_codec import encode, read
from kpg.protocol.strict_decoder import build
from kpg.storage.transaction_log import Durability
from kpg.version import __version__

Result = TypeVar("Result", covariant=True)
Service = Callable[[FrameSocket], None]

HELD_BYTES = 1 << 16  # of rows that wait for the next command: a rank has to wake up once for all of them
UNSENT_LIMIT_BYTES = 64 << 20  # to one rank; beyond it `tell` waits, so that a slow rank does not fill our memory
POLL_SECONDS = 0.5  # between two checks of silent ranks
START_POLL_SECONDS = 0.2
ACCEPT_POLL_SECONDS = 1.0  # between two checks whether the coordinator was closed
EXIT_STATUS_TIMEOUT_SECONDS = 1.0  # the socket of a killed rank closes before its exit status is known


class RankReply(NamedTuple, Generic[Result]):
    """The result of a command on one rank."""

    value: Result
    blocks: list[Updates]


class ArrivedReply(NamedTuple):
    """A reply that is not decoded yet."""

    refused: bool
    text: str
    blocks: list[Updates]


class Launcher(Protocol):
    """Starts ranks somewhere: as processes on this machine, or as Spark tasks."""

    start_timeout_seconds: float

    def start(self, bootstrap: RankBootstrap) -> None:
        """Start a rank; end the one that it replaces."""

    def exit_status(self, rank: int) -> str | None:
        """Say how a rank ended; None while it runs."""

    def stop(self) -> None:
        """End all ranks; return when they have ended."""


def decode_report(text: str) -> RankReport:
    """Return the report of a rank from its JSON."""
    return build(RankReport, read(text, python_only=True), "$")


class RankMember:
    """The coordinator's connection to a rank."""

    def __init__(self, hello: RankHello, connection: FrameSocket, symbols: Symbols) -> None:
        self.rank = hello.rank
        self.connection = connection
        self.address = hello.address
        self.pid = hello.pid
        self.dictionary = SymbolDictionary(symbols)
        self.replies: dict[int, ArrivedReply] = {}
        self.unreported_error: KpgError | None = None  # of a command that was sent without a number
        self.reports: deque[ArrivedReply] = deque()  # that the rank has sent by itself

    def take_unreported(self) -> KpgError | None:
        """Return the error of a command that was sent without a number, once."""
        error, self.unreported_error = self.unreported_error, None
        return error

    def send(self, number: int, text: str, blocks: Sequence[RowBlock], hold: bool = False) -> None:
        """Send a command, as far as the socket takes it now; with `hold`, only if much is unsent."""
        self.connection.send(REQUEST, encode_frame(number, text, blocks, self.dictionary))
        if not hold or self.connection.unsent > HELD_BYTES:
            self.connection.flush()

    def receive(self) -> None:
        """Send and receive without waiting."""
        self.connection.flush()
        for kind, body in self.connection.receive():
            if kind not in (REPLY, REFUSAL, REPORT):
                raise ProtocolError(f"worker {self.rank} sent a frame of unknown kind {kind}")
            number, text, blocks = decode_frame(body, self.dictionary)
            if kind == REPORT:
                self.reports.append(ArrivedReply(False, text, blocks))
            elif number == UNNUMBERED:
                self.unreported_error = decode_refusal(text)
            else:
                self.replies[number] = ArrivedReply(kind == REFUSAL, text, blocks)


class Coordinator:
    """Sends commands to the ranks of a db; may be used from any thread."""

    def __init__(self, workers: int, launcher: Launcher, symbols: Symbols, interface: str = "127.0.0.1") -> None:
        self.workers = workers
        self.launcher = launcher
        self.symbols = symbols
        self.secret = secrets.token_bytes(32)
        self.interface = interface
        self.listener = AuthenticatedListener(interface, self.secret)
        self.members: dict[int, RankMember] = {}
        self.generation = 0
        self.lock = FairLock()
        self.failure: ClusterError | None = None  # why the current generation ended
        self.loss_hint: str | None = None  # what the user can do about a lost rank
        self.partly_done = False  # whether some ranks, but not all, performed the last command
        self.driver_service: Service | None = None  # serves connections that say DriverHello, each on a thread
        self._tokens: dict[int, str] = {}
        self._next_number = 0
        self.last_number = -1  # of the command that was sent last with a number
        self._closed = False
        self._arrival = threading.Condition()
        self._version_error: KpgError | None = None
        threading.Thread(target=self._accept, name="kpg coordinator listener", daemon=True).start()

    # Starting ranks

    def start(self, ranks: Sequence[int]) -> None:
        """Start some ranks and wait until they have connected."""
        for rank in ranks:
            replaced = self.members.pop(rank, None)
            if replaced is not None:
                replaced.connection.close()
            self._tokens[rank] = secrets.token_hex(16)  # a rank with an older token was replaced
            self.launcher.start(self._bootstrap(rank))
        timeout = self.launcher.start_timeout_seconds
        deadline = time.monotonic() + timeout
        while any(rank not in self.members for rank in ranks):
            with self._arrival:
                self._arrival.wait(START_POLL_SECONDS)
            if self._version_error is not None:
                error, self._version_error = self._version_error, None
                raise error
            for rank in ranks:
                if rank not in self.members and (status := self.launcher.exit_status(rank)) is not None:
                    raise WorkerLost(f"worker {rank} did not start", detail=status)
            if time.monotonic() > deadline:
                missing = [rank for rank in ranks if rank not in self.members]
                raise WorkerLost(
                    f"workers {missing} did not connect within {timeout:.0f} s",
                    hint="Check that the machine is not overloaded and that workers can reach this one.",
                )

    def _bootstrap(self, rank: int) -> RankBootstrap:
        return RankBootstrap(rank, self.secret.hex(), self.listener.address, self.interface, self._tokens[rank])

    def _accept(self) -> None:
        """Accept ranks, and clients of the driver's service, until the coordinator is closed."""
        while not self._closed:
            arrival = self.listener.take(ACCEPT_POLL_SECONDS)
            if arrival is not None:
                self._admit(*arrival)

    def _admit(self, hello: Hello, sock: socket.socket) -> None:
        if isinstance(hello, RankHello):
            self._admit_rank(hello, sock)
        elif isinstance(hello, DriverHello) and hello.version == __version__ and self.driver_service is not None:
            arguments = (FrameSocket(sock),)
            threading.Thread(target=self.driver_service, args=arguments, name="kpg driver client", daemon=True).start()
        else:
            sock.close()

    def _admit_rank(self, hello: RankHello, sock: socket.socket) -> None:
        if self._tokens.get(hello.rank) != hello.token:
            sock.close()  # a rank that was replaced, or an impostor
            return
        if hello.version != __version__:
            sock.close()
            self._version_error = ProtocolError(
                f"worker {hello.rank} runs kpg {hello.version}, this is {__version__}",
                hint="Install the same version everywhere.",
            )
        else:
            self.members[hello.rank] = RankMember(hello, FrameSocket(sock), self.symbols)
        with self._arrival:
            self._arrival.notify_all()

    def restart_lost(self) -> list[int]:
        """Start the ranks that are lost, so that a new generation can begin; return which they are."""
        self.failure = None
        lost = [rank for rank in range(self.workers) if self._is_lost(rank)]
        self.start(lost)
        return lost

    def _is_lost(self, rank: int) -> bool:
        member = self.members.get(rank)
        return member is None or member.connection.closed or self.launcher.exit_status(rank) is not None

    # Generations

    def prepare(self, path: str, durability: Durability) -> list[Recoverable]:
        """Have all ranks drop their generation and open a directory; return what each can recover."""
        self._reset()
        return [reply.value for reply in self.ask(PrepareCommand(path, durability))]

    def meet(
        self,
        config: Config,
        upto: Frontier | None = None,
        checkpoint: Frontier | None = None,
        sealed: int | None = None,
    ) -> list[Met]:
        """Begin a generation: all ranks connect to each other and recover; return the state of each."""
        self._reset()
        self.generation += 1
        command = MeetCommand(
            self.generation,
            tuple(self.members[rank].address for rank in range(self.workers)),
            config,
            None if upto is None else upto.elements,
            None if checkpoint is None else checkpoint.elements,
            sealed,
        )
        met = [reply.value for reply in self.ask(command)]
        for member in self.members.values():
            member.reports.clear()  # of the generation before
        return met

    def _reset(self) -> None:
        self.failure = None
        for member in self.members.values():
            member.replies.clear()
            member.reports.clear()
            member.unreported_error = None

    # Commands

    def ask(self, command: Command[Result], blocks: Sequence[RowBlock] = ()) -> list[RankReply[Result]]:
        """Send a command to every rank and wait for all results; raise the first error of a rank."""
        with self.lock:
            self._check()
            number, text = self._next_number, encode(command)
            self._next_number += 1
            self.last_number = number
            for rank in range(self.workers):
                self._send(rank, number, text, blocks)
            replies = [self._await(rank, number) for rank in range(self.workers)]
            unreported = [error for member in self.members.values() if (error := member.take_unreported()) is not None]
            for error in unreported:
                raise error
            refused = [reply for reply in replies if reply.refused]
            self.partly_done = 0 < len(refused) < self.workers
            for reply in refused:
                raise self._lost_or(decode_refusal(reply.text))
            return [RankReply(decode_result(command, reply.text), reply.blocks) for reply in replies]

    def tell(self, rank: int, command: Command[object], blocks: Sequence[RowBlock] = ()) -> None:
        """Send a command to one rank without waiting for it, unless too much is unsent."""
        with self.lock:
            self._check()
            self._send(rank, UNNUMBERED, encode(command), blocks, hold=True)
            connection = self.members[rank].connection
            while connection.unsent > UNSENT_LIMIT_BYTES:
                connection.wait(POLL_SECONDS)
                self._receive(rank)

    def tell_all(self, command: Command[object], hold: bool = False) -> None:
        """Send a command to every rank without waiting for them, in order with all others; `hold` as in `send`."""
        with self.lock:
            self._check()
            text = encode(command)
            for rank in range(self.workers):
                self._send(rank, UNNUMBERED, text, (), hold)

    def wait_for_reports(self, seconds: float, also: Sequence[frames.Waitable] = ()) -> None:
        """Wait until a rank has sent something, or one of other connections is ready. Any thread may send meanwhile."""
        connections = [member.connection for member in self.members.values() if not member.connection.closed]
        frames.wait([*connections, *also], seconds)

    def take_reports(self) -> list[tuple[int, RankReply[RankReport]]]:
        """Receive without waiting; return the reports of ranks that have arrived, with the ranks that sent them."""
        with self.lock:
            self._check()
            for member in tuple(self.members.values()):
                self._receive(member.rank)
            return self.received_reports()

    def received_reports(self) -> list[tuple[int, RankReply[RankReport]]]:
        """Return the reports that were received beside replies, with the ranks that sent them."""
        reports: list[tuple[int, RankReply[RankReport]]] = []
        for member in self.members.values():
            while member.reports:
                arrived = member.reports.popleft()
                reports.append((member.rank, RankReply(decode_report(arrived.text), arrived.blocks)))
        return reports

    def _send(self, rank: int, number: int, text: str, blocks: Sequence[RowBlock], hold: bool = False) -> None:
        try:
            self.members[rank].send(number, text, blocks, hold)
        except Unreachable as error:
            raise self._lose(rank, error) from None

    def _await(self, rank: int, number: int) -> ArrivedReply:
        replies = self.members[rank].replies
        while number not in replies:
            if self.failure is not None:
                raise self.failure.with_traceback(None)
            for member in self.members.values():
                if member.connection.closed:
                    raise self._lose(member.rank, Unreachable("its connection was closed"))
            ready = frames.wait([member.connection for member in self.members.values()], POLL_SECONDS)
            for member in tuple(self.members.values()):
                if member.connection.fileno() in ready:
                    self._receive(member.rank)
        return replies.pop(number)

    def _receive(self, rank: int) -> None:
        try:
            self.members[rank].receive()
        except Unreachable as error:
            raise self._lose(rank, error) from None

    # Loss of ranks

    def _check(self) -> None:
        if self._closed:
            raise Closed("the db is closed")
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    def _lose(self, rank: int, error: KpgError) -> ClusterError:
        status = self._exit_statuses([rank]).get(rank)
        return self.fail(f"worker {rank} is gone", status or error.detail or error.what)

    def _lost_or(self, error: KpgError) -> KpgError:
        """Return the error of a command; if it reports a lost peer, end the generation."""
        if not isinstance(error, WorkerLost):
            return error
        for rank, status in self._exit_statuses(self.members).items():
            return self.fail(f"worker {rank} is gone", status)
        return self.fail(error.what, error.detail)

    def _exit_statuses(self, ranks: Iterable[int]) -> dict[int, str]:
        """Return how ranks ended, waiting a little: a socket closes before its process has ended."""
        deadline = time.monotonic() + EXIT_STATUS_TIMEOUT_SECONDS
        while True:
            statuses = {rank: status for rank in ranks if (status := self.launcher.exit_status(rank)) is not None}
            if statuses or time.monotonic() > deadline:
                return statuses
            time.sleep(0.005)

    def fail(self, what: str, detail: str | None) -> ClusterError:
        """End the generation: every call raises this error until a new one begins."""
        self.failure = WorkerLost(what, detail=detail, hint=self.loss_hint)
        return self.failure

    # End

    def close(self) -> None:
        """End all ranks; may be repeated."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            text = encode(StopCommand())
            for member in self.members.values():
                try:
                    member.send(UNNUMBERED, text, ())
                except KpgError:
                    pass  # it has ended already
            self.launcher.stop()
            for member in self.members.values():
                member.connection.close()
            self.listener.close()
