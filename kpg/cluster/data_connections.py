"""Data connections: clients (for example Spark tasks) stage rows with a rank and read its shard over them.

    DataConnection   the rank's end: queues requests and sends replies
    DataClient       the client's end: sends typed requests and waits for their results

The requests are those of `kpg.cluster.data_requests`; commands are refused. The client also speaks to the service that
a Spark driver offers (`kpg.spark.driver_requests`).
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kpg.cluster import frame_codec, handshake
from kpg.cluster.data_requests import DATA_REQUESTS
from kpg.cluster.frames import FrameSocket
from kpg.cluster.hello_messages import DataHello, Hello
from kpg.cluster.request_frames import (
    REFUSAL,
    REPLY,
    REQUEST,
    IncomingRequest,
    RowBlock,
    decode_frame,
    decode_refusal,
    decode_request,
    decode_result,
    encode_frame,
    encode_refusal,
)
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates
from kpg.errors import KpgError, ProtocolError
from kpg.protocol.definitions import TypedRequest
from kpg.protocol.message_codec import encode, encode_result
from kpg.version import __version__

if TYPE_CHECKING:
    from kpg.cluster.data_service import DataService

Result = TypeVar("Result")
UNSENT_LIMIT_BYTES = 64 << 20  # a client waits beyond it, so that a slow rank does not fill the client's memory
POLL_SECONDS = 1.0


class DataConnection:
    """The rank's end of a data connection."""

    def __init__(self, sock: socket.socket, symbols: Symbols) -> None:
        self.connection = FrameSocket(sock)
        self.dictionary = frame_codec.SymbolDictionary(symbols, holding=True)
        self.requests: deque[IncomingRequest] = deque()

    def pump(self) -> bool:
        """Receive requests and send replies without waiting. Return False when the connection has ended."""
        try:
            self.connection.flush()
            for kind, body in self.connection.receive():
                if kind != REQUEST:
                    raise ProtocolError(f"a data connection sent a frame of unknown kind {kind}")
                self.requests.append(decode_request(body, self.dictionary, DATA_REQUESTS))
        except KpgError:
            self.connection.close()
            return False
        return True

    def answer(self, service: DataService, incoming: IncomingRequest) -> None:
        """Perform a request and send its reply."""
        from kpg.cluster.data_service import DATA_HANDLERS

        try:
            if isinstance(incoming.request, ProtocolError):
                raise incoming.request
            answer = DATA_HANDLERS.perform(service, incoming.request, incoming.blocks)
            self._send(REPLY, incoming.number, encode_result(answer.value), answer.blocks)
        except Exception as error:
            self.refuse(incoming, error)

    def refuse(self, incoming: IncomingRequest, error: Exception) -> None:
        """Send an error as the reply to a request."""
        self._send(REFUSAL, incoming.number, encode_refusal(error), ())

    def _send(self, kind: int, number: int, text: str, blocks: Sequence[RowBlock]) -> None:
        if not self.connection.closed:
            self.connection.send(kind, encode_frame(number, text, blocks, self.dictionary))
            self.pump()


class PendingReply(NamedTuple):
    """A reply that has arrived: a result, or an error."""

    refused: bool
    text: str
    blocks: list[Updates]


class DataClient:
    """A client's connection to a rank, or to the service of a coordinator."""

    def __init__(self, address: tuple[str, int], secret: bytes, symbols: Symbols, hello: Hello | None = None) -> None:
        sock = handshake.connect(address, secret, hello or DataHello(__version__))
        self.connection = FrameSocket(sock)
        self.dictionary = frame_codec.SymbolDictionary(symbols)
        self._numbers = count()
        self._replies: dict[int, PendingReply] = {}

    def send(self, request: TypedRequest[object], blocks: Sequence[RowBlock] = ()) -> int:
        """Send a request and return its number, by which to wait for its result. Waits while too much is unsent."""
        number = next(self._numbers)
        self.connection.send(REQUEST, encode_frame(number, encode(request), blocks, self.dictionary))
        self.connection.flush()
        while self.connection.unsent > UNSENT_LIMIT_BYTES:
            self.connection.wait(POLL_SECONDS)
            self._pump()
        return number

    def result(self, request: TypedRequest[Result], number: int) -> tuple[Result, list[Updates]]:
        """Wait for the result of a request, and the blocks beside it."""
        while number not in self._replies:
            self.connection.wait(POLL_SECONDS)
            self._pump()
        refused, text, blocks = self._replies.pop(number)
        if refused:
            raise decode_refusal(text)
        return decode_result(request, text), blocks

    def ask(self, request: TypedRequest[Result], blocks: Sequence[RowBlock] = ()) -> tuple[Result, list[Updates]]:
        """Send a request and wait for its result."""
        return self.result(request, self.send(request, blocks))

    def _pump(self) -> None:
        self.connection.flush()
        for kind, body in self.connection.receive():
            if kind not in (REPLY, REFUSAL):
                raise ProtocolError(f"a frame of unknown kind {kind} came in reply")
            number, text, blocks = decode_frame(body, self.dictionary)
            self._replies[number] = PendingReply(kind == REFUSAL, text, blocks)

    def close(self) -> None:
        """Close the connection; may be repeated."""
        self.connection.close()

    def __enter__(self) -> DataClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
