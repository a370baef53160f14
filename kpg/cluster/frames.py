"""Frames on a socket: a kind and some int64 words, written and read without ever waiting unless asked to.

    frame  =  magic, kind, length (12 + 4 bytes, little endian)  then  `length` words of 8 bytes

What is urgent (progress) goes before what is not (rows) that has not begun to leave. Nothing is pickled: a body is an
int64 array, aligned, fresh, and owned by whoever takes it, so columns are views of it. A length beyond the limit or a
wrong magic ends the connection with `ProtocolError`, whatever else was said before.
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
STAGE = 1 << 16
GATHER = 64  # buffers in one system call
GATHER_BYTES = 1 << 18
TOGETHER = 1 << 14  # bytes that are sent as one piece

Buffer: TypeAlias = bytes | memoryview
Frame: TypeAlias = tuple[int, Ints]  # kind, body


class FrameSocket:
    """One end of a socket, never blocking; counts what has not left yet."""

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
        self._stage = bytearray(STAGE)
        self._held = 0  # bytes in the stage
        self._body: Ints | None = None  # a frame too large for the stage, being filled
        self._kind = 0
        self._filled = 0

    def fileno(self) -> int:
        """For select and poll."""
        return self.sock.fileno()

    # Out

    def send(self, kind: int, parts: Sequence[Buffer], urgent: bool = False) -> None:
        """Put a frame on its way; its parts are whole words and must not change."""
        length = 0
        for part in parts:
            length += len(part) if type(part) is bytes else part.nbytes  # type: ignore[union-attr]
        frame: list[Buffer] = [HEADER.pack(MAGIC, kind, length >> 3), *parts]
        self.unsent += HEADER.size + length
        (self._urgent if urgent else self._bulk).append(frame)

    def flush(self) -> bool:
        """Write what the socket takes now; True when nothing is left."""
        if self.unsent <= TOGETHER and not self._leaving:
            self._leaving.append(self._joined())
        while self.unsent:
            self._gather()
            try:
                if len(self._leaving) == 1:
                    sent = self.sock.send(self._leaving[0])
                else:
                    sent = self.sock.sendmsg([self._leaving[i] for i in range(min(GATHER, len(self._leaving)))])
            except BlockingIOError:
                return False
            except OSError as error:
                self.close()
                raise Unreachable("the other end of a connection is gone", detail=str(error)) from None
            self._sent(sent)
        return True

    def _joined(self) -> memoryview:
        """All that waits, if it is little: to copy it is cheaper than to count its parts."""
        parts = [part for frames in (self._urgent, self._bulk) for frame in frames for part in frame]
        self._urgent.clear()
        self._bulk.clear()
        return memoryview(b"".join(parts))

    def _gather(self) -> None:
        """Choose what leaves next: enough for one system call, so that what is urgent seldom waits."""
        if not self._urgent and not self._bulk:
            return
        size = sum(part.nbytes for part in self._leaving)
        while size < GATHER_BYTES and len(self._leaving) < GATHER and (self._urgent or self._bulk):
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
        """The frames that have arrived whole."""
        frames: list[Frame] = []
        while self._read(frames):
            pass
        return frames

    def _read(self, frames: list[Frame]) -> bool:
        """Read once; False when the socket has no more for now."""
        if self._body is not None:
            room = self._body.data.cast("B")[self._filled :]
        else:
            room = memoryview(self._stage)[self._held :]
        try:
            count = self.sock.recv_into(room)
        except BlockingIOError:
            return False
        except OSError as error:
            self.close()
            raise Unreachable("the other end of a connection is gone", detail=str(error)) from None
        if count == 0:
            self.close()
            if frames:  # what came before the end is taken first
                return False
            raise Unreachable("the other end of a connection is gone", detail="It was closed.")
        if self._body is not None:
            self._filled += count
            self._finish(frames)
        else:
            self._held += count
            self._cut(frames)
        return count == room.nbytes

    def _finish(self, frames: list[Frame]) -> None:
        assert self._body is not None
        if self._filled == self._body.nbytes:
            frames.append((self._kind, self._body))
            self._body = None

    def _cut(self, frames: list[Frame]) -> None:
        """Take whole frames off the stage; begin a large one."""
        at = 0
        while self._held - at >= HEADER.size:
            magic, kind, words = HEADER.unpack_from(self._stage, at)
            if magic != MAGIC or words > self._limit:
                self.close()
                what = "a frame is too long" if magic == MAGIC else "what came over a connection is not ours"
                raise ProtocolError(what, detail=f"{words} words" if magic == MAGIC else f"It begins with {magic:#x}.")
            start, length = at + HEADER.size, words << 3
            if self._held - start >= length:
                own = self._stage[start : start + length]
                frames.append((kind, np.frombuffer(own, np.int64) if words else np.empty(0, np.int64)))
                at = start + length
            elif HEADER.size + length > STAGE:
                self._body, self._kind, self._filled = np.empty(words, np.int64), kind, self._held - start
                self._body.data.cast("B")[: self._filled] = memoryview(self._stage)[start : self._held]
                at = self._held
            else:
                break
        if at:
            if at < self._held:
                self._stage[: self._held - at] = self._stage[at : self._held]
            self._held -= at

    # Waiting

    def wait(self, seconds: float | None) -> bool:
        """Wait until something arrives, or there is room for what is to leave; False if the time ran out."""
        return bool(wait([self], seconds))

    def close(self) -> None:
        """End the connection; may be repeated."""
        if not self.closed:
            self.closed = True
            self.sock.close()


class Waitable(Protocol):
    """Something to wait for: a connection, or a door."""

    @property
    def unsent(self) -> int:
        """Bytes that wait for room."""

    def fileno(self) -> int:
        """For poll."""


def wait(connections: Sequence[Waitable], seconds: float | None) -> list[int]:
    """Wait for any of some connections; the file numbers of those that can go on."""
    poll = select.poll()
    for connection in connections:
        poll.register(connection.fileno(), select.POLLIN | (select.POLLOUT if connection.unsent else 0))
    return [number for number, _ in poll.poll(None if seconds is None else seconds * 1000)]


class SocketPoller:
    """Waits for the same connections again and again."""

    def __init__(self, connections: Sequence[Waitable]) -> None:
        self._poll = select.poll()
        self._wanted = [(connection, connection.fileno()) for connection in connections]
        for _, number in self._wanted:
            self._poll.register(number, select.POLLIN)
        self._full: set[int] = set()  # those that have something that waits for room

    def wait_soon(self, seconds: float, spin: float) -> list[int]:
        """The file numbers of those that can go on. Looks again and again for a while before it goes to sleep: to be
        woken costs more than a round of a loop does."""
        self._ask_for_room()
        poll = self._poll.poll
        found = poll(0)
        if not found and spin:
            end = time.perf_counter() + spin
            while not found and time.perf_counter() < end:
                found = poll(0)
        return [number for number, _ in found or poll(seconds * 1000)]

    def _ask_for_room(self) -> None:
        for connection, number in self._wanted:
            if (number in self._full) != bool(connection.unsent):
                self._full ^= {number}
                self._poll.modify(number, select.POLLIN | (select.POLLOUT if connection.unsent else 0))


def padded(data: bytes) -> bytes:
    """Bytes made up to whole words."""
    return data + bytes(-len(data) % 8)
