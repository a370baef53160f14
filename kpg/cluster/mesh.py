"""The connections among the ranks of one generation: one socket for each pair, with rows and progress on it.

    rank i connects to all j < i and accepts all j > i; each hello names the rank and the generation

Sending never fails because a buffer is full. Beyond `UNSENT_LIMIT_BYTES` to a peer, the sender waits and reads
meanwhile what others send it, so that two ranks that fill each other's buffers both make progress. Any call that
notices the loss of a peer raises `WorkerLost`.
"""

from __future__ import annotations

import struct
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

ROWS, PROGRESS, EXCHANGE, FAILURE, VOTE = 1, 2, 3, 4, 5  # kinds of frames
UNSENT_LIMIT_BYTES = 64 << 20  # to one peer
FIRST_WAIT_SECONDS = 0.002  # for votes: longer than a peer needs that waits for nothing
WAIT_SECONDS = 0.1  # between two checks whether the generation has ended
FLUSH_BYTES = 1 << 14  # fewer rows are sent together with the progress message that counts them


class Peer:
    """A connection to another rank."""

    def __init__(self, rank: int, connection: FrameSocket, symbols: Symbols) -> None:
        self.rank = rank
        self.connection = connection
        self.dictionary = frame_codec.SymbolDictionary(symbols)
        self.exchanged: deque[Updates] = deque()  # parts that the peer has sent in `exchange`
        self.votes: deque[bool] = deque()  # that the peer has sent in `agree`


class Mesh:
    """A rank's connections to all others: the transport of its worker."""

    def __init__(self, rank: int, symbols: Symbols) -> None:
        self.rank = rank
        self.symbols = symbols
        self.peers: dict[int, Peer] = {}
        self._arrived: deque[Frame] = deque()
        self._poller = frames.SocketPoller(())

    def add(self, rank: int, connection: FrameSocket) -> None:
        """Add a connection to another rank, after its handshake."""
        self.peers[rank] = Peer(rank, connection, self.symbols)
        self._poller = frames.SocketPoller(self.connections())

    # The transport of a worker

    def send_data(
        self, peer: int, dataflow: int, channel: int, message: Message, symbolic: tuple[int, ...] = ()
    ) -> int:
        """Send rows to a peer and return their bytes. Wait while too much for it is unsent."""
        to = self.peers[peer]
        size = to.connection.send(ROWS, frame_codec.encode_rows(dataflow, channel, message, symbolic, to.dictionary))
        if to.connection.unsent > FLUSH_BYTES:
            self._flush(to)
        while to.connection.unsent > UNSENT_LIMIT_BYTES:
            frames.wait(self.connections(), 1.0)
            self.pump()
        return size

    def broadcast(self, frame: ProgressFrame | FailureFrame) -> int:
        """Send progress, or the failure of a dataflow, to all peers; return the bytes of all."""
        kind, words, size = PROGRESS, b"", 0
        if isinstance(frame, ProgressFrame):
            words = frame_codec.encode_progress(frame)
        else:
            kind, words = FAILURE, frame_codec.encode_failure(frame)
        for peer in self.peers.values():
            size += peer.connection.send(kind, [words], urgent=True)
            self._flush(peer)
        return size

    def receive(self) -> list[Frame]:
        """Take the frames that have arrived, those of each peer in order."""
        self.pump()
        arrived = list(self._arrived)
        self._arrived.clear()
        return arrived

    # Sockets

    def connections(self) -> list[FrameSocket]:
        """Return the connections to all peers."""
        return [peer.connection for peer in self.peers.values()]

    def pump(self) -> None:
        """Send and receive on all sockets without waiting."""
        for peer in self.peers.values():
            if peer.connection.unsent:
                self._flush(peer)
        for peer in self._peers_to_read():
            self._receive(peer)

    def _peers_to_read(self) -> list[Peer]:
        """Return the peers from which something may have arrived. Among several, one poll finds them."""
        peers = list(self.peers.values())
        if len(peers) == 1:
            return peers
        ready = self._poller.ready_to_read()
        return [peer for peer in peers if peer.connection.closed or peer.connection.fileno() in ready]

    def _receive(self, peer: Peer) -> None:
        """Take the frames of one peer."""
        try:
            arrived = peer.connection.receive()
        except (Unreachable, OSError) as error:
            raise WorkerLost(f"rank {peer.rank} is gone", detail=str(error)) from None
        for kind, body in arrived:
            if kind == EXCHANGE:
                peer.exchanged.append(frame_codec.decode_updates(body, 0, peer.dictionary)[0])
            elif kind == VOTE:
                peer.votes.append(len(body) == 1 and int(body[0]) == 1)
            else:
                self._arrived.append(self._decode(peer, kind, body))

    def _decode(self, peer: Peer, kind: int, body: Ints) -> Frame:
        if kind == ROWS:
            return frame_codec.decode_rows(body, peer.dictionary)
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

    def exchange(
        self, parts: list[Updates], symbolic: tuple[int, ...], check_abandoned: Callable[[], object]
    ) -> list[Updates]:
        """Send each rank its part and return one from each; all ranks do this at the same point of the same command."""
        for peer in self.peers.values():
            part = parts[peer.rank]
            peer.connection.send(EXCHANGE, frame_codec.encode_updates(part, symbolic, peer.dictionary))
        while not all(peer.exchanged and not peer.connection.unsent for peer in self.peers.values()):
            self.pump()
            frames.wait(self.connections(), WAIT_SECONDS)
            check_abandoned()
        return [parts[self.rank], *[peer.exchanged.popleft() for peer in self.peers.values()]]

    def agree(self, vote: bool, while_waiting: Callable[[], object]) -> bool:
        """Return whether all ranks vote yes; all vote at the same point of the same command.

        A peer that has not voted after a moment may wait for work of this rank, which `while_waiting` does.
        """
        for peer in self.peers.values():
            peer.connection.send(VOTE, [struct.pack("<q", vote)], urgent=True)
            self._flush(peer)
        self.pump()
        wait_seconds = FIRST_WAIT_SECONDS
        while not self._have_voted():
            frames.wait(self.connections(), wait_seconds)
            self.pump()
            if not self._have_voted():
                while_waiting()
                wait_seconds = WAIT_SECONDS
        votes = [peer.votes.popleft() for peer in self.peers.values()]
        return vote and all(votes)

    def _have_voted(self) -> bool:
        """Return whether all peers have voted, and have been sent everything."""
        return all(peer.votes and not peer.connection.unsent for peer in self.peers.values())

    def drain(self, timeout_seconds: float) -> bool:
        """Send all that is unsent. Return False if some is left when the time is over."""
        deadline = time.monotonic() + timeout_seconds
        while any(peer.connection.unsent for peer in self.peers.values()):
            if time.monotonic() > deadline:
                return False
            frames.wait(self.connections(), WAIT_SECONDS)
            self.pump()
        return True

    def forget_symbols(self) -> None:
        """Forget which symbols the peers know: all ranks are about to renumber them."""
        for peer in self.peers.values():
            peer.dictionary.forget()

    def close(self) -> None:
        """Close all connections."""
        for peer in self.peers.values():
            peer.connection.close()
        self.peers.clear()
        self._arrived.clear()
