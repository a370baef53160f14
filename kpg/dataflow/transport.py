"""The transport between workers: frames with rows, with progress changes, and with failures.

Progress frames of one worker arrive in the order in which it sent them. Rows and progress need no order between them: a
message that is received before it is counted makes a count negative for a while, which is safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kpg.dataflow.operator import Message
from kpg.errors import KpgError
from kpg.progress.tracker import Change


@dataclass(frozen=True, slots=True)
class ProgressFrame:
    """The progress changes of one step of one worker: an atomic set. Dataflow −1 is the clock."""

    changes: tuple[tuple[int, list[Change]], ...]


@dataclass(frozen=True, slots=True)
class DataFrame:
    """A message for a channel of a dataflow."""

    dataflow: int
    channel: int
    message: Message


@dataclass(frozen=True, slots=True)
class FailureFrame:
    """A dataflow failed on one worker, so it ends on all of them."""

    dataflow: int
    error: KpgError
    circulating: tuple[int, ...] = ()  # see kpg.dataflow.graph.Dataflow.circulating


Frame = ProgressFrame | DataFrame | FailureFrame


class Transport(Protocol):
    """The connection of one worker with its peers."""

    def send_data(
        self, peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()
    ) -> int:
        """Send a message to a peer and return its bytes. `symbolic` are the lanes that hold symbols."""

    def broadcast(self, frame: ProgressFrame | FailureFrame) -> int:
        """Send a frame to all peers; return the bytes of all."""

    def receive(self) -> list[Frame]:
        """Return the frames that have arrived."""


class NoPeers:
    """The transport of a worker without peers."""

    def send_data(
        self, peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()
    ) -> int:
        """Fail: a worker without peers never sends."""
        raise AssertionError("a single worker has no peers")

    def broadcast(self, frame: ProgressFrame | FailureFrame) -> int:
        """Do nothing."""
        return 0

    def receive(self) -> list[Frame]:
        """Return no frames."""
        return []
