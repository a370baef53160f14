"""Guests of a rank: those who bring rows or ask for them, without a say in what is done when.

    stage    rows for a relation, kept aside until the coordinator publishes them
    shard    this rank's rows of an answer or relation, as of a time
    updates  this rank's updates of it in an interval of time, which the guest holds

A task of Spark is a guest of every rank: what it brings goes straight to the rank that owns it.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from kpg.cluster import frame_codec, handshake, message
from kpg.cluster.frames import FrameSocket
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.errors import KpgError, ProtocolError
from kpg.version import __version__

if TYPE_CHECKING:
    from kpg.cluster.data_service import DataService

WINDOW = 64 << 20  # bytes on their way


class DataConnection:
    """A guest, seen from the rank."""

    def __init__(self, sock: socket.socket, symbols: Symbols) -> None:
        self.connection = FrameSocket(sock)
        self.told = frame_codec.SymbolDictionary(symbols, holding=True)
        self.requests: deque[tuple[dict[str, Any], list[Updates]]] = deque()

    def listen(self) -> bool:
        """Take in what has come, put out what is ready; False when the guest has left, or makes no sense."""
        try:
            self.connection.flush()
            for kind, body in self.connection.receive():
                if kind != message.REQUEST:
                    raise ProtocolError(f"a guest sent a frame of unknown kind {kind}")
                self.requests.append(message.decode(body, self.told))
        except KpgError:
            self.connection.close()
            return False
        return True

    def answer(self, outside: DataService, request: dict[str, Any], blocks: list[Updates]) -> None:
        """Do what the guest asks, if guests may."""
        reply: dict[str, Any] = {"id": request.get("id")}
        rows: list[message.Rows] = []
        try:
            match request.get("do"):
                case "stage":
                    reply["value"], rows = outside.stage(request, blocks)
                case "shard":
                    reply["value"], rows = outside.shard(request, blocks)
                case "updates":
                    reply["value"], rows = outside.updates(request, blocks)
                case other:
                    raise ProtocolError(f"guests cannot ask for {other!r}")
        except Exception as error:
            reply["error"] = message.write_error(error)
        self.reply(reply, rows)

    def reply(self, content: dict[str, Any], rows: Sequence[message.Rows]) -> None:
        """Send an answer; a guest that has left gets none."""
        if not self.connection.closed:
            self.connection.send(message.REPLY, message.encode(content, rows, self.told))
            self.listen()


class DataClient:
    """A connection as a guest of a rank, or of a service of the coordinator."""

    def __init__(self, address: tuple[str, int], secret: bytes, symbols: Symbols, role: str = "guest") -> None:
        hello = {"role": role, "version": __version__}
        self.connection = FrameSocket(handshake.connect(address, secret, hello))
        self.told = frame_codec.SymbolDictionary(symbols)
        self._numbers = count()
        self._replies: dict[int, tuple[dict[str, Any], list[Updates]]] = {}

    def send(self, request: dict[str, Any], blocks: Sequence[message.Rows] = ()) -> int:
        """Ask for something; the number to await its reply by. Waits while too much is on its way."""
        number = next(self._numbers)
        self.connection.send(message.REQUEST, message.encode({**request, "id": number}, blocks, self.told))
        self.connection.flush()
        while self.connection.unsent > WINDOW:
            self.connection.wait(1.0)
            self._pump()
        return number

    def result(self, number: int) -> tuple[Any, list[Updates]]:
        """The reply to a request."""
        while number not in self._replies:
            self.connection.wait(1.0)
            self._pump()
        content, blocks = self._replies.pop(number)
        if "error" in content:
            raise message.read_error(content["error"])
        return content.get("value"), blocks

    def ask(self, request: dict[str, Any], blocks: Sequence[message.Rows] = ()) -> tuple[Any, list[Updates]]:
        """Ask for something and wait for it."""
        return self.result(self.send(request, blocks))

    def _pump(self) -> None:
        self.connection.flush()
        for kind, body in self.connection.receive():
            if kind != message.REPLY:
                raise ProtocolError(f"a frame of unknown kind {kind} came in reply")
            content, blocks = message.decode(body, self.told)
            self._replies[content["id"]] = (content, blocks)

    def close(self) -> None:
        """Leave; may be repeated."""
        self.connection.close()

    def __enter__(self) -> DataClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
