"""The connections among the ranks of one generation: one socket for each pair, rows and progress on it.

    rank i connects to all j < i and is connected to by all j > i; each hello names rank and generation

Sending never fails for want of room: beyond `WINDOW` bytes that a peer has not taken, the sender waits, and reads
meanwhile what others send it, so that two that fill each other's windows both go on. A peer that is gone raises
`WorkerLost` from whatever call notices.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from kpg.cluster import frame_codec, frames
from kpg.cluster.frames import FrameSocket
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates
from kpg.dataflow.operator import Message
from kpg.dataflow.transport import FailureFrame, Frame, ProgressFrame
from kpg.errors import ProtocolError, Unreachable, WorkerLost

ROWS, PROGRESS, SWAP, FAILURE = 1, 2, 3, 4
WINDOW = 64 << 20  # bytes on their way to one peer
SMALL = 1 << 14


class Peer:
    """One other rank."""

    def __init__(self, rank: int, connection: FrameSocket, symbols: Symbols) -> None:
        self.rank = rank
        self.connection = connection
        self.told = frame_codec.SymbolDictionary(symbols)
        self.swapped: deque[Updates] = deque()


class Mesh:
    """One rank's connections with all others: the transport of its worker."""

    def __init__(self, rank: int, symbols: Symbols) -> None:
        self.rank = rank
        self.symbols = symbols
        self.peers: dict[int, Peer] = {}
        self.sent_bytes = 0
        self._arrived: deque[Frame] = deque()

    def add(self, rank: int, connection: FrameSocket) -> None:
        """A connection to another rank, after its handshake."""
        self.peers[rank] = Peer(rank, connection, self.symbols)

    # The transport of a worker

    def send_data(
        self, peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()
    ) -> None:
        """Send rows to a peer; waits while it has too much to take already."""
        to = self.peers[peer]
        to.connection.send(ROWS, frame_codec.encode_rows(dataflow, channel, message, symbolic, to.told))
        if to.connection.unsent > SMALL:  # what is small leaves with the progress that counts it
            self._flush(to)
        while to.connection.unsent > WINDOW:
            frames.wait(self.connections(), 1.0)
            self.pump()

    def broadcast(self, frame: ProgressFrame | FailureFrame) -> None:
        """Tell all peers what changed."""
        kind, words = PROGRESS, b""
        if isinstance(frame, ProgressFrame):
            words = frame_codec.encode_progress(frame)
        else:
            kind, words = FAILURE, frame_codec.encode_failure(frame)
        for peer in self.peers.values():
            peer.connection.send(kind, [words], urgent=True)
            self._flush(peer)

    def receive(self) -> list[Frame]:
        """Take what has arrived, from each peer in its order."""
        self.pump()
        frames = list(self._arrived)
        self._arrived.clear()
        return frames

    # Sockets

    def connections(self) -> list[FrameSocket]:
        """All of them, to wait for."""
        return [peer.connection for peer in self.peers.values()]

    def pump(self) -> None:
        """Write and read what the sockets take and have now."""
        for peer in self.peers.values():
            if peer.connection.unsent:
                self._flush(peer)
            try:
                frames = peer.connection.receive()
            except (Unreachable, OSError) as error:
                raise WorkerLost(f"rank {peer.rank} is gone", detail=str(error)) from None
            for kind, body in frames:
                if kind == SWAP:
                    peer.swapped.append(frame_codec.decode_updates(body, 0, peer.told)[0])
                else:
                    self._arrived.append(self._decode(peer, kind, body))

    def _decode(self, peer: Peer, kind: int, body: Ints) -> Frame:
        if kind == ROWS:
            return frame_codec.decode_rows(body, peer.told)
        if kind == PROGRESS:
            return frame_codec.decode_progress(body)
        if kind == FAILURE:
            return frame_codec.decode_failure(body)
        raise ProtocolError(f"rank {peer.rank} sent a frame of unknown kind {kind}")

    def _flush(self, peer: Peer) -> None:
        try:
            peer.connection.flush()
        except (Unreachable, OSError) as error:
            raise WorkerLost(f"rank {peer.rank} is gone", detail=str(error)) from None

    def swap(self, parts: list[Updates], symbolic: tuple[int, ...], beat: Callable[[], object]) -> list[Updates]:
        """Give each rank its part and get one from each: all ranks do this at the same point of the same request."""
        for peer in self.peers.values():
            part = parts[peer.rank]
            peer.connection.send(SWAP, frame_codec.encode_updates(part, symbolic, peer.told))
        while not all(peer.swapped and not peer.connection.unsent for peer in self.peers.values()):
            self.pump()
            frames.wait(self.connections(), 0.1)
            beat()
        given = [peer.swapped.popleft() for peer in self.peers.values()]
        return [parts[self.rank], *given]

    def drain(self, seconds: float) -> bool:
        """Send all that is on its way, for at most so long; False if some is left."""
        end = time.monotonic() + seconds
        while any(peer.connection.unsent for peer in self.peers.values()):
            if time.monotonic() > end:
                return False
            frames.wait(self.connections(), 0.1)
            self.pump()
        return True

    def forget_texts(self) -> None:
        """Symbols are about to be renumbered on all ranks: texts cross anew."""
        for peer in self.peers.values():
            peer.told.forget()

    def close(self) -> None:
        """End all connections."""
        for peer in self.peers.values():
            peer.connection.close()
        self.peers.clear()
        self._arrived.clear()
