"""Frames on a non-blocking socket: a kind and some int64 words.

    frame  =  magic, kind, length (4 + 4 + 8 bytes, little endian)  then  `length` words of 8 bytes

Urgent frames (progress) leave before other frames (rows) that have not begun to leave. Nothing is pickled: a body is an
aligned int64 array that the receiver owns, so columns are views of it. A length beyond the limit or a wrong magic ends
the connection with `ProtocolError`. Small frames are copied into one send; large ones are sent without a copy.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np

from kpg.columns.updates import Ints
from kpg.errors import ProtocolError, Unreachable

HEADER = struct.Struct("<IIQ")  # magic, kind, words
MAGIC = 0x4750_4B31
LIMIT_WORDS = 1 << 28  # 2 GiB in one frame
RECEIVE_BUFFER_BYTES = 1 << 16  # a larger frame is received into an array of its own
MAX_GATHERED_BUFFERS = 64  # in one system call
GATHER_BYTES = 1 << 18  # in one system call: more would delay urgent frames
JOIN_BYTES = 1 << 14  # up to here, copying all buffers into one is cheaper than passing them one by one

Buffer: TypeAlias = bytes | memoryview
Frame: TypeAlias = tuple[int, Ints]  # kind, body


class FrameSocket:
    """One end of a socket; never blocks, and counts the bytes that are unsent."""

    def __init__(self, sock: socket.socket, limit_words: int = LIMIT_WORDS) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.unsent = 0  # bytes
        self.closed = False
        self._limit = limit_words
        self._urgent: deque[list[Buffer]] = deque()
        self._bulk: deque[list[Buffer]] = deque()
        self._leaving: deque[memoryview] = deque()
        self._buffer = bytearray(RECEIVE_BUFFER_BYTES)
        self._buffered = 0  # bytes in the buffer
        self._body: Ints | None = None  # a frame too large for the buffer, partly received
        self._kind = 0
        self._filled = 0

    def fileno(self) -> int:
        """Return the file number, for poll."""
        return self.sock.fileno()

    # Out

    def send(self, kind: int, parts: Sequence[Buffer], urgent: bool = False) -> int:
        """Queue a frame and return its bytes. Its parts are whole words and must not change until they are sent."""
        length = 0
        for part in parts:
            length += len(part) if type(part) is bytes else part.nbytes  # type: ignore[union-attr]
        frame: list[Buffer] = [HEADER.pack(MAGIC, kind, length >> 3), *parts]
        length += HEADER.size
        self.unsent += length
        (self._urgent if urgent else self._bulk).append(frame)
        return length

    def flush(self) -> bool:
        """Send as much as the socket takes now. Return True when nothing is unsent."""
        if 0 < self.unsent <= JOIN_BYTES and not self._leaving:
            self._leaving.append(self._joined())
        while self.unsent:
            self._gather()
            try:
                if len(self._leaving) == 1:
                    sent = self.sock.send(self._leaving[0])
                else:
                    sent = self.sock.sendmsg(
                        [self._leaving[i] for i in range(min(MAX_GATHERED_BUFFERS, len(self._leaving)))]
                    )
            except BlockingIOError:
                return False
            except OSError as error:
                self.close()
                raise Unreachable("the other end of a connection is gone", detail=str(error)) from None
            self._sent(sent)
        return True

    def _joined(self) -> memoryview:
        """Join all queued frames into one buffer, urgent ones first."""
        parts = [part for frames in (self._urgent, self._bulk) for frame in frames for part in frame]
        self._urgent.clear()
        self._bulk.clear()
        return memoryview(b"".join(parts))

    def _gather(self) -> None:
        """Choose the next buffers to send, enough for one system call, so that urgent frames seldom wait."""
        if not self._urgent and not self._bulk:
            return
        size = sum(part.nbytes for part in self._leaving)
        while size < GATHER_BYTES and len(self._leaving) < MAX_GATHERED_BUFFERS and (self._urgent or self._bulk):
            frame = self._urgent.popleft() if self._urgent else self._bulk.popleft()
            for part in frame:
                if len(part):
                    self._leaving.append(memoryview(part).cast("B"))
                    size += self._leaving[-1].nbytes

    def _sent(self, count: int) -> None:
        self.unsent -= count
        while count:
            first = self._leaving[0]
            if first.nbytes <= count:
                count -= first.nbytes
                self._leaving.popleft()
            else:
                self._leaving[0] = first[count:]
                return

    # In

    def receive(self) -> list[Frame]:
        """Return the frames that have arrived completely."""
        frames: list[Frame] = []
        while self._read(frames):
            pass
        return frames

    def _read(self, frames: list[Frame]) -> bool:
        """Read once. Return False when the socket has no more for now."""
        if self._body is not None:
            room = self._body.data.cast("B")[self._filled :]
        else:
            room = memoryview(self._buffer)[self._buffered :]
        try:
            count = self.sock.recv_into(room)
        except BlockingIOError:
            return False
        except OSError as error:
            if frames:
                return False
            self.close()
            raise Unreachable("the other end of a connection is gone", detail=str(error)) from None
        if count == 0:
            if frames:  # the frames before the end are delivered first; the next call finds the end again
                return False
            self.close()
            raise Unreachable("the other end of a connection is gone", detail="It was closed.")
        if self._body is not None:
            self._filled += count
            self._finish(frames)
        else:
            self._buffered += count
            self._cut(frames)
        return count == room.nbytes

    def _finish(self, frames: list[Frame]) -> None:
        assert self._body is not None
        if self._filled == self._body.nbytes:
            frames.append((self._kind, self._body))
            self._body = None

    def _cut(self, frames: list[Frame]) -> None:
        """Move complete frames out of the buffer; begin a large one."""
        at = 0
        while self._buffered - at >= HEADER.size:
            magic, kind, words = HEADER.unpack_from(self._buffer, at)
            if magic != MAGIC or words > self._limit:
                self.close()
                what = "a frame is too long" if magic == MAGIC else "a connection sent bytes that are not a frame"
                raise ProtocolError(what, detail=f"{words} words" if magic == MAGIC else f"It begins with {magic:#x}.")
            start, length = at + HEADER.size, words << 3
            if self._buffered - start >= length:
                own = self._buffer[start : start + length]
                frames.append((kind, np.frombuffer(own, np.int64) if words else np.empty(0, np.int64)))
                at = start + length
            elif HEADER.size + length > RECEIVE_BUFFER_BYTES:
                self._body, self._kind, self._filled = np.empty(words, np.int64), kind, self._buffered - start
                self._body.data.cast("B")[: self._filled] = memoryview(self._buffer)[start : self._buffered]
                at = self._buffered
            else:
                break
        if at:
            if at < self._buffered:
                self._buffer[: self._buffered - at] = self._buffer[at : self._buffered]
            self._buffered -= at

    # Waiting

    def wait(self, seconds: float | None) -> bool:
        """Wait until something arrives or unsent bytes can be sent. Return False when the time is over."""
        return bool(wait([self], seconds))

    def close(self) -> None:
        """Close the connection; may be repeated."""
        if not self.closed:
            self.closed = True
            self.sock.close()


class Waitable(Protocol):
    """Something to wait for: a connection or a listener."""

    @property
    def unsent(self) -> int:
        """The number of unsent bytes."""

    def fileno(self) -> int:
        """Return the file number, for poll."""


def wait(connections: Sequence[Waitable], seconds: float | None) -> list[int]:
    """Wait for any of some connections. Return the file numbers of those that are ready."""
    poll = select.poll()
    for connection in connections:
        poll.register(connection.fileno(), select.POLLIN | (select.POLLOUT if connection.unsent else 0))
    return [number for number, _ in poll.poll(None if seconds is None else seconds * 1000)]


class SocketPoller:
    """Waits for the same connections repeatedly, without registering them again."""

    def __init__(self, connections: Sequence[Waitable]) -> None:
        self._poll = select.poll()
        self._wanted = [(connection, connection.fileno()) for connection in connections]
        for _, number in self._wanted:
            self._poll.register(number, select.POLLIN)
        self._unsent: set[int] = set()  # file numbers that are polled for writing as well

    def wait_soon(self, seconds: float, spin: float) -> list[int]:
        """Return the file numbers that are ready. Poll for `spin` seconds before sleeping: a wake-up costs more than a
        round of a loop does."""
        self._update_interest()
        poll = self._poll.poll
        ready = poll(0)
        if not ready and spin:
            deadline = time.perf_counter() + spin
            while not ready and time.perf_counter() < deadline:
                ready = poll(0)
        return [number for number, _ in ready or poll(seconds * 1000)]

    def arrived(self) -> bool:
        """Return whether something has arrived that was not received yet."""
        return bool(self.ready_to_read())

    def ready_to_read(self) -> set[int]:
        """Return the file numbers on which something has arrived, or which have ended."""
        return {number for number, events in self._poll.poll(0) if events & ~select.POLLOUT}

    def _update_interest(self) -> None:
        """Poll for writing exactly the connections that have unsent bytes."""
        for connection, number in self._wanted:
            if (number in self._unsent) != bool(connection.unsent):
                self._unsent ^= {number}
                self._poll.modify(number, select.POLLIN | (select.POLLOUT if connection.unsent else 0))


def padded(data: bytes) -> bytes:
    """Return bytes padded to whole words."""
    return data + bytes(-len(data) % 8)
