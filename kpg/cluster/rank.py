"""A rank: one worker with its db, doing what the coordinator asks, in the order it is asked.

    serve(bootstrap)   connect, greet, meet the peers, then answer requests until told to stop or left alone

Every rank gets the same requests in the same order, so all build the same dataflows; a request that needs all of them
(an advance, a read) is finished when nothing before the clock is in flight anywhere. When no request is waiting the
rank takes part in what its peers do, and merges.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from kpg.api.embedded_database import EmbeddedDatabase
from kpg.cluster import frame_codec, frames, handshake, message
from kpg.cluster.authenticated_listener import AuthenticatedListener
from kpg.cluster.data_connections import DataConnection
from kpg.cluster.frames import FrameSocket
from kpg.cluster.mesh import Mesh
from kpg.cluster.rank_durability import RankDurable
from kpg.cluster.rank_requests import Handlers
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.config import Config
from kpg.dataflow.worker import Worker
from kpg.errors import ClusterError, InUse, KpgError, ProtocolError, WorkerLost
from kpg.kernels.warm import load
from kpg.storage.manifest import frontier_from_json, frontier_to_json
from kpg.storage.storage import Storage
from kpg.storage.transaction_log import Durability
from kpg.version import __version__

Request = tuple[dict[str, Any], list[Updates]]
MEETING = 30.0  # seconds that peers have to find each other
IDLE_AFTER = 0.005  # seconds of silence: sooner, a next request would wait for a merge that nobody needs yet
ENDING = 20.0  # seconds that ranks of a coordinator that is gone have to notice
BEGINNINGS = frozenset({"prepare", "meet", "stop"})


class Rank:
    """One worker of a cluster, connected to its coordinator."""

    def __init__(self, bootstrap: dict[str, Any]) -> None:
        self.rank = int(bootstrap["rank"])
        self.secret = bytes.fromhex(bootstrap["secret"])
        self.interface = str(bootstrap.get("interface", "127.0.0.1"))
        self.door = AuthenticatedListener(self.interface, self.secret)
        self.control = self._connect(bootstrap)
        self.symbols = Symbols()
        self.told = frame_codec.SymbolDictionary(self.symbols)
        self.requests: deque[Request] = deque()
        self.guests: list[DataConnection] = []
        self.early: list[tuple[dict[str, Any], socket.socket]] = []  # peers that were quicker than the coordinator
        self.mesh: Mesh | None = None
        self.storage: Storage | None = None
        self.handlers: Handlers | None = None
        self.broken: ClusterError | None = None  # a peer is gone: nothing can be finished in this generation
        self._kernels = load()
        self.running = True

    def _connect(self, bootstrap: dict[str, Any]) -> FrameSocket:
        host, port = bootstrap["coordinator"]
        hello = {
            "role": "rank",
            "rank": self.rank,
            "token": bootstrap["token"],
            "address": list(self.door.address),
            "version": __version__,
            "pid": os.getpid(),
        }
        return FrameSocket(handshake.connect((host, int(port)), self.secret, hello))

    # Serving

    def serve(self) -> None:
        """Answer requests until told to stop, or until the coordinator is gone."""
        be_patient()
        try:
            while self.running:
                self._listen()
                if self.requests:
                    self._answer(*self.requests.popleft())
                elif not self._serve_guests():
                    self._idle()
        except KpgError:
            if not self.control.closed:
                raise
        finally:
            self.close()

    def _listen(self) -> None:
        """Take in requests and put out replies, without waiting."""
        if self.control.unsent:
            self.control.flush()
        for kind, body in self.control.receive():
            if kind != message.REQUEST:
                raise ProtocolError(f"the coordinator sent a frame of unknown kind {kind}")
            self.requests.append(message.decode(body, self.told))
        while (found := self.door.take()) is not None:
            self._receive(*found)
        for guest in tuple(self.guests):
            if not guest.listen():
                self.guests.remove(guest)

    def _receive(self, hello: dict[str, Any], sock: socket.socket) -> None:
        """Somebody who knows the secret has come: a peer, or a guest with rows or questions."""
        if hello.get("role") == "peer":
            self.early.append((hello, sock))
        elif hello.get("role") == "guest" and hello.get("version") == __version__:
            self.guests.append(DataConnection(sock, self.symbols))
        else:
            sock.close()

    def _serve_guests(self) -> bool:
        """Do one thing that a guest asks for; False when none asks."""
        for guest in self.guests:
            if guest.requests:
                request, blocks = guest.requests.popleft()
                if self.broken is not None or self.handlers is None:
                    gone = self.broken or ProtocolError("the workers have not met yet")
                    guest.reply({"id": request.get("id"), "error": message.write_error(gone)}, [])
                else:
                    guest.answer(self.handlers.outside, request, blocks)
                return True
        return False

    def _answer(self, request: dict[str, Any], blocks: list[Updates]) -> None:
        reply: dict[str, Any] = {"id": request.get("id")}
        rows: list[message.Rows] = []
        try:
            action = request["do"]
            if action == "prepare":
                reply["value"] = self._prepare(request)
            elif action == "meet":
                reply["value"] = self._meet(request)
            elif action == "stop":
                self.running = False
            elif self.broken is not None:
                raise self.broken
            elif self.handlers is None:
                raise ProtocolError("a rank was asked before it met its peers")
            else:
                value, rows = self.handlers.handle(request, blocks)
                reply["value"] = value
        except WorkerLost as error:
            self.broken = error
            reply["error"] = message.write_error(error)
        except Exception as error:
            reply["error"] = message.write_error(error)
        if request.get("id") is not None or "error" in reply:
            self.control.send(message.REPLY, message.encode(reply, rows, self.told))
            self.control.flush()

    def _idle(self) -> None:
        """Take part in what peers do; merge; wait for something to come."""
        waiting: list[frames.Waitable] = [self.control, self.door, *[guest.connection for guest in self.guests]]
        if self.mesh is not None and self.handlers is not None and self.broken is None:
            waiting += self.mesh.connections()
            try:
                self.handlers.db.worker.run()
            except WorkerLost as error:
                self.broken = error
                return
            policy, worker = self.handlers.db.merge_policy, self.handlers.db.worker
            if not frames.wait(waiting, IDLE_AFTER) and worker.idle_merge(policy.idle_fuel, policy.idle_operators):
                return
            self.handlers.outside.staged.expire()
        if not frames.wait(waiting, 1.0):  # a second of silence: whatever query comes will find its kernels loaded
            while next(self._kernels, None) is not None and not frames.wait(waiting, 0):
                pass

    # A generation

    def _forget(self) -> None:
        """Let go of all that belongs to a generation."""
        if self.mesh is not None:
            self.mesh.close()
        if self.handlers is not None:
            self.handlers.close()
        if self.storage is not None:
            self.storage.close()
        self.mesh = self.handlers = self.storage = self.broken = None

    def _prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        """Forget all that was, and say what is on disk."""
        self._forget()
        place = f"{str(request['place']).rstrip('/')}/rank-{self.rank}"
        self.storage = self._claim(place, request["durability"])
        return {
            "durable": frontier_to_json(self.storage.durable_frontier()),
            "checkpoints": [frontier_to_json(frontier) for frontier in self.storage.checkpoints()],
        }

    def _claim(self, place: str, durability: Durability) -> Storage:
        """Open our part of the directory. Whoever has it open is a rank whose coordinator is gone: it ends soon."""
        end = time.monotonic() + ENDING
        while True:
            try:
                return Storage(place, durability=durability)
            except InUse:
                if time.monotonic() > end:
                    raise
            self.heed()
            time.sleep(0.05)

    def _meet(self, request: dict[str, Any]) -> list[list[int]]:
        """Begin anew with the peers of a generation, from what is on disk if anything is; the time that is open."""
        storage, self.storage = self.storage, None
        self._forget()
        self.storage = storage
        try:
            return self._begin(request)
        except BaseException:
            self._forget()
            raise

    def _begin(self, request: dict[str, Any]) -> list[list[int]]:
        generation = int(request["generation"])
        addresses = {int(rank): tuple(address) for rank, address in request["peers"].items()}
        mesh = Mesh(self.rank, self.symbols)
        for rank in sorted(addresses):
            if rank < self.rank:
                host, port = addresses[rank]
                hello = {"role": "peer", "rank": self.rank, "generation": generation}
                mesh.add(rank, FrameSocket(handshake.connect((host, int(port)), self.secret, hello, MEETING)))
        expected = {rank for rank in addresses if rank > self.rank}
        end = time.monotonic() + MEETING
        while expected:
            self._accept(mesh, generation, expected)
            self.heed()
            if time.monotonic() > end:
                raise WorkerLost(f"ranks {sorted(expected)} did not come within {MEETING:.0f} s")
        self.mesh = mesh  # closed with all else if what follows fails
        config = Config(**request["config"])
        start = (0,) * config.coordinates
        worker = Worker(self.rank, len(addresses), mesh if len(addresses) > 1 else None, start)
        db = EmbeddedDatabase(config, worker, self.symbols, self._recover(request, mesh))
        self.handlers = Handlers(db, mesh, self._others, self.told)
        return [list(time) for time in db.time]

    def _recover(self, request: dict[str, Any], mesh: Mesh) -> RankDurable | None:
        if self.storage is None:
            return None
        found = self.storage.recover(
            self.symbols,
            upto=frontier_from_json(request["upto"]),
            generation=int(request["generation"]),
            checkpoint=frontier_from_json(request["checkpoint"]),
        )
        return RankDurable(self.storage, found, self.symbols, mesh, self.heed)

    def heed(self) -> None:
        """While waiting for peers: give up if the coordinator has begun something else, or is gone."""
        self._listen()
        if any(request.get("do") in BEGINNINGS for request, _ in self.requests):
            raise WorkerLost("the coordinator has given this generation up")

    def _accept(self, mesh: Mesh, generation: int, expected: set[int]) -> None:
        """Let in who has come; ranks of other generations are turned away."""
        found = self.door.take(0.1) if not self.early else None
        if found is not None:
            self._receive(*found)
        for hello, sock in self.early:
            rank = hello.get("rank")
            if hello.get("generation") == generation and rank in expected:
                mesh.add(rank, FrameSocket(sock))
                expected.discard(rank)
            elif int(hello.get("generation", -1)) <= generation:
                sock.close()
        self.early = [each for each in self.early if int(each[0].get("generation", -1)) > generation]

    def _others(self) -> list[frames.Waitable]:
        """What to watch beside the peers while waiting for them: the coordinator, which may be gone, and guests."""
        self.heed()
        return [self.control, self.door, *[guest.connection for guest in self.guests]]

    def close(self) -> None:
        """End all connections."""
        self.door.close()
        for guest in self.guests:
            guest.connection.close()
        self._forget()
        self.control.close()


def be_patient() -> None:
    """Ask the system not to interrupt whoever wakes us: else the process that sends a request to each rank is put aside
    by the first one, for milliseconds, before the next one hears of it."""
    if hasattr(os, "SCHED_BATCH"):
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def serve(bootstrap: dict[str, Any]) -> None:
    """Run a rank until its coordinator lets it go."""
    sys.path[:0] = [path for path in bootstrap.get("path", []) if path not in sys.path]
    Rank(bootstrap).serve()


def main(read: Callable[[], str] = sys.stdin.readline) -> None:
    """A rank as a process: what it must know comes over standard input, since arguments are for all to see."""
    serve(json.loads(read()))
