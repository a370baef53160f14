"""The coordinator: starts ranks, lets them meet, and puts requests in one order for all of them.

    ask(request)           the same to every rank; their replies, rank by rank
    tell(rank, request)    to one rank, without a reply; what fails there is said with the next reply

A request is sent to all before any reply is awaited. A rank that is gone ends the generation: the call that notices
raises `WorkerLost`, at once when its process dies, and so does every later one until the ranks have met again.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from kpg.cluster import frame_codec, frames, message
from kpg.cluster.authenticated_listener import AuthenticatedListener
from kpg.cluster.fair_lock import FairLock
from kpg.cluster.frames import FrameSocket
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.errors import Closed, ClusterError, KpgError, ProtocolError, Unreachable, WorkerLost
from kpg.version import __version__

WINDOW = 64 << 20  # bytes on their way to one rank
CHECK = 0.5  # seconds between looks at silent ranks
DYING = 1.0  # seconds at most between the end of a socket and that of its process


class RankReply(NamedTuple):
    """What a rank answered."""

    value: Any
    blocks: list[Updates]


class Launcher(Protocol):
    """Where ranks live: processes on this machine, tasks of Spark."""

    patience: float  # seconds that a rank has to come

    def start(self, rank: int, bootstrap: dict[str, Any]) -> None:
        """Bring a rank up, in place of whatever it was before."""

    def fate(self, rank: int) -> str | None:
        """How a rank ended, if it has."""

    def stop(self) -> None:
        """End all ranks that are left; returns when they are gone."""


class RankMember:
    """A rank, as the coordinator sees it."""

    def __init__(self, rank: int, connection: FrameSocket, hello: dict[str, Any], symbols: Symbols) -> None:
        self.rank = rank
        self.connection = connection
        self.address = tuple(hello["address"])
        self.pid = int(hello["pid"])
        self.told = frame_codec.SymbolDictionary(symbols)
        self.replies: dict[int, tuple[dict[str, Any], list[Updates]]] = {}
        self.complaint: KpgError | None = None  # of something told without a reply


class Coordinator:
    """The one that every request passes through; may be used from any thread."""

    def __init__(self, workers: int, launcher: Launcher, symbols: Symbols, interface: str = "127.0.0.1") -> None:
        self.workers = workers
        self.launcher = launcher
        self.symbols = symbols
        self.secret = secrets.token_bytes(32)
        self.interface = interface
        self.door = AuthenticatedListener(interface, self.secret)
        self.members: dict[int, RankMember] = {}
        self.generation = 0
        self.lock = FairLock()
        self.broken: ClusterError | None = None
        self._tokens: dict[int, str] = {}
        self._next_id = 0
        self._closed = False
        self._came = threading.Condition()
        self._refusal: KpgError | None = None
        self.services: dict[str, Callable[[dict[str, Any], FrameSocket], None]] = {}  # by role, each on its own thread
        threading.Thread(target=self._receive, name="kpg reception", daemon=True).start()

    # Coming up

    def start(self, ranks: Sequence[int]) -> None:
        """Bring some ranks up and wait until they have come."""
        for rank in ranks:
            old = self.members.pop(rank, None)
            if old is not None:
                old.connection.close()
            self._tokens[rank] = secrets.token_hex(16)  # whoever holds an older one is a ghost
            self.launcher.start(rank, self._bootstrap(rank))
        end = time.monotonic() + self.launcher.patience
        while any(rank not in self.members for rank in ranks):
            with self._came:
                self._came.wait(0.2)
            if self._refusal is not None:
                refusal, self._refusal = self._refusal, None
                raise refusal
            for rank in ranks:
                if rank not in self.members and (fate := self.launcher.fate(rank)) is not None:
                    raise WorkerLost(f"worker {rank} did not start", detail=fate)
            if time.monotonic() > end:
                late = [rank for rank in ranks if rank not in self.members]
                raise WorkerLost(
                    f"workers {late} did not come within {self.launcher.patience:.0f} s",
                    hint="Is the machine busy, or can they not reach this one?",
                )

    def _bootstrap(self, rank: int) -> dict[str, Any]:
        return {
            "rank": rank,
            "secret": self.secret.hex(),
            "coordinator": list(self.door.address),
            "interface": self.interface,
            "token": self._tokens[rank],
        }

    def _receive(self) -> None:
        """Let in who comes through the door: ranks, and those that a service was set up for."""
        while not self._closed:
            found = self.door.take(1.0)
            if found is None:
                continue
            hello, sock = found
            role = str(hello.get("role"))
            if role == "rank":
                self._admit(hello, sock)
            elif role in self.services and hello.get("version") == __version__:
                threading.Thread(
                    target=self.services[role], args=(hello, FrameSocket(sock)), name=f"kpg {role}", daemon=True
                ).start()
            else:
                sock.close()

    def _admit(self, hello: dict[str, Any], sock: Any) -> None:
        rank = hello.get("rank")
        if not isinstance(rank, int) or self._tokens.get(rank) != hello.get("token"):
            sock.close()  # a ghost of an earlier rank
            return
        if hello.get("version") != __version__:
            sock.close()
            self._refusal = ProtocolError(
                f"worker {rank} runs kpg {hello.get('version')}, this is {__version__}",
                hint="Install the same version everywhere.",
            )
        else:
            self.members[rank] = RankMember(rank, FrameSocket(sock), hello, self.symbols)
        with self._came:
            self._came.notify_all()

    def revive(self) -> list[int]:
        """Bring up ranks that are gone, so that all can meet again; which those are."""
        self.broken = None
        lost = [
            rank for rank in range(self.workers)
            if rank not in self.members or self.members[rank].connection.closed or self.launcher.fate(rank) is not None
        ]  # fmt: skip
        self.start(lost)
        return lost

    def prepare(self, place: str, durability: str) -> list[dict[str, Any]]:
        """Have all ranks drop what they have, and say what they find on disk."""
        self._begin()
        return [reply.value for reply in self.ask({"do": "prepare", "place": place, "durability": durability})]

    def meet(self, config: dict[str, Any], **recovery: Any) -> list[list[int]]:
        """Begin a generation: all ranks connect with each other; the time that is then open."""
        self._begin()
        self.generation += 1
        peers = {str(rank): list(member.address) for rank, member in self.members.items()}
        request = {"do": "meet", "generation": self.generation, "peers": peers, "config": config, **recovery}
        opened: list[list[int]] = self.ask(request)[0].value
        return opened

    def _begin(self) -> None:
        self.broken = None
        for member in self.members.values():
            member.replies.clear()
            member.complaint = None

    # Requests

    def ask(self, request: dict[str, Any], blocks: Sequence[message.Rows] = ()) -> list[RankReply]:
        """Have every rank do the same, and wait for all; raises what the first of them raised."""
        with self.lock:
            self._check()
            number = self._next_id
            self._next_id += 1
            for rank in range(self.workers):
                self._send(rank, {**request, "id": number}, blocks)
            replies = [self._await(rank, number) for rank in range(self.workers)]
            for member in self.members.values():
                if member.complaint is not None:
                    complaint, member.complaint = member.complaint, None
                    raise complaint
            for content, _ in replies:
                if "error" in content:
                    raise self._lost_or(message.read_error(content["error"]))
            return [RankReply(content.get("value"), found) for content, found in replies]

    def tell(self, rank: int, request: dict[str, Any], blocks: Sequence[message.Rows] = ()) -> None:
        """Have one rank do something, without waiting, but for a rank that is far behind."""
        with self.lock:
            self._check()
            self._send(rank, request, blocks)
            connection = self.members[rank].connection
            while connection.unsent > WINDOW:
                connection.wait(CHECK)
                self._pump(rank)

    def _send(self, rank: int, request: dict[str, Any], blocks: Sequence[message.Rows]) -> None:
        member = self.members[rank]
        try:
            member.connection.send(message.REQUEST, message.encode(request, blocks, member.told))
            member.connection.flush()
        except Unreachable as error:
            raise self._lose(rank, error) from None

    def _await(self, rank: int, number: int) -> tuple[dict[str, Any], list[Updates]]:
        member = self.members[rank]
        while number not in member.replies:
            if self.broken is not None:
                raise self.broken
            waiting = [each.connection for each in self.members.values()]
            ready = frames.wait(waiting, CHECK)
            for each in tuple(self.members.values()):
                if each.connection.fileno() in ready:
                    self._pump(each.rank)
        return member.replies.pop(number)

    def _pump(self, rank: int) -> None:
        """Write and read what a rank's socket takes and has."""
        member = self.members[rank]
        try:
            member.connection.flush()
            frames = member.connection.receive()
        except Unreachable as error:
            raise self._lose(rank, error) from None
        for kind, body in frames:
            if kind != message.REPLY:
                raise ProtocolError(f"worker {rank} sent a frame of unknown kind {kind}")
            content, blocks = message.decode(body, member.told)
            if content.get("id") is None:
                member.complaint = message.read_error(content["error"])
            else:
                member.replies[content["id"]] = (content, blocks)

    # Loss

    def _check(self) -> None:
        if self._closed:
            raise Closed("the db is closed")
        if self.broken is not None:
            raise self.broken

    def _lose(self, rank: int, error: KpgError) -> ClusterError:
        fate = self._fates([rank]).get(rank)
        return self.give_up(f"worker {rank} is gone", fate or error.detail or error.what)

    def _lost_or(self, error: KpgError) -> KpgError:
        """An error of a request; if it says that a peer is gone, the end of the generation."""
        if not isinstance(error, WorkerLost):
            return error
        for rank, fate in self._fates(self.members).items():
            return self.give_up(f"worker {rank} is gone", fate)
        return self.give_up(error.what, error.detail)

    def _fates(self, ranks: Iterable[int]) -> dict[int, str]:
        """How those of some ranks ended that have: a socket may be gone a little before its process is."""
        end = time.monotonic() + DYING
        while True:
            found = {rank: fate for rank in ranks if (fate := self.launcher.fate(rank)) is not None}
            if found or time.monotonic() > end:
                return found
            time.sleep(0.005)

    def give_up(self, what: str, detail: str | None) -> ClusterError:
        """End the generation: every call raises this until the ranks have met again."""
        self.broken = WorkerLost(
            what,
            detail=detail,
            hint="Its rows are lost with it: open the db anew, on a directory if they matter.",
        )
        return self.broken

    # End

    def close(self) -> None:
        """Let all ranks go; may be repeated."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            for member in self.members.values():
                try:
                    member.connection.send(message.REQUEST, message.encode({"do": "stop"}, (), member.told))
                    member.connection.flush()
                except KpgError:
                    pass
            self.launcher.stop()
            for member in self.members.values():
                member.connection.close()
            self.door.close()
