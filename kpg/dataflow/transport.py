"""What workers say to each other: rows, and progress.

Progress frames of one worker arrive in the order they were sent. Rows and progress need no order between them: a
message that is seen before it is counted only makes a count negative for a while.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from kpg.dataflow.operator import Message
from kpg.errors import KpgError
from kpg.progress.tracker import Change


@dataclass(frozen=True, slots=True)
class ProgressFrame:
    """All count changes of one step of one worker: atomic. Dataflow −1 is the clock."""

    changes: tuple[tuple[int, list[Change]], ...]


@dataclass(frozen=True, slots=True)
class DataFrame:
    """A message for a channel of a dataflow."""

    dataflow: int
    channel: int
    message: Message


@dataclass(frozen=True, slots=True)
class FailureFrame:
    """A dataflow cannot go on at one worker, so it ends at all of them."""

    dataflow: int
    error: KpgError


Frame = ProgressFrame | DataFrame | FailureFrame


class Transport(Protocol):
    """One worker's connection with its peers."""

    def send_data(
        self, peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()
    ) -> None:
        """Send rows to a peer; `symbolic` are the lanes that hold symbols."""

    def broadcast(self, frame: ProgressFrame | FailureFrame) -> None:
        """Tell all peers what changed."""

    def receive(self) -> list[Frame]:
        """Take what has arrived."""


class Alone:
    """The transport of a worker without peers."""

    def send_data(
        self, peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()
    ) -> None:
        """There is nobody to send to."""
        raise AssertionError("a lone worker has no peers")

    def broadcast(self, frame: ProgressFrame | FailureFrame) -> None:
        """There is nobody to tell."""

    def receive(self) -> list[Frame]:
        """Nothing arrives."""
        return []


class InMemory:
    """Queues between workers of one process; `connect(n)` makes the n ends."""

    def __init__(self, index: int, queues: list[list[deque[Frame]]]) -> None:
        self.index = index
        self._queues = queues  # [from][to]

    @classmethod
    def connect(cls, peers: int) -> list[InMemory]:
        """One end per worker."""
        queues: list[list[deque[Frame]]] = [[deque() for _ in range(peers)] for _ in range(peers)]
        return [cls(index, queues) for index in range(peers)]

    def send_data(
        self, peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()
    ) -> None:
        """Send rows to a peer."""
        self._queues[self.index][peer].append(DataFrame(dataflow, channel, message))

    def broadcast(self, frame: ProgressFrame | FailureFrame) -> None:
        """Tell all peers what changed."""
        for peer, queue in enumerate(self._queues[self.index]):
            if peer != self.index:
                queue.append(frame)

    def receive(self) -> list[Frame]:
        """Take what has arrived, from each peer in its order."""
        frames: list[Frame] = []
        for row in self._queues:
            queue = row[self.index]
            while queue:
                frames.append(queue.popleft())
        return frames
