"""A sender waits for a slow peer, and two ranks that fill each other's buffers both make progress."""

import socket
import threading
import time

import numpy as np
import pytest

from kpg.cluster import mesh as meshes
from kpg.cluster.frames import FrameSocket
from kpg.cluster.mesh import Mesh
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Updates, constant
from kpg.dataflow.operator import Message
from kpg.dataflow.transport import DataFrame, ProgressFrame
from kpg.errors import WorkerLost

PROGRESS = ProgressFrame(((0, [(0, 1, (0,), 1)]),))


def ends() -> tuple[Mesh, Mesh]:
    left, right = socket.socketpair()
    meshes_ = Mesh(0, Symbols()), Mesh(1, Symbols())
    meshes_[0].add(1, FrameSocket(left))
    meshes_[1].add(0, FrameSocket(right))
    return meshes_


def block(rows: int) -> Message:
    return Message(((0,),), Updates(np.arange(rows).reshape(1, rows), constant((0,)), constant((1,))))


def test_a_sender_waits_beyond_the_limit_of_unsent_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is sent, no more than a window and a frame waits in memory."""
    monkeypatch.setattr(meshes, "UNSENT_LIMIT_BYTES", 1 << 20)
    ours, theirs = ends()
    most, sent = 0, []

    def send() -> None:
        nonlocal most
        for _ in range(40):
            ours.send_data(1, 0, 0, block(32_768))  # a quarter of the window
            most = max(most, ours.peers[1].connection.unsent)
            sent.append(time.monotonic())
        ours.drain(60)

    sender = threading.Thread(target=send)
    sender.start()
    sender.join(0.3)
    assert sender.is_alive() and len(sent) < 40, "it did not wait"
    taken = 0
    while taken < 40:
        taken += len(theirs.receive())
    sender.join(60)
    assert not sender.is_alive() and most <= (1 << 20) + 8 * 33_000


def test_two_ranks_that_send_to_each_other_both_make_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes what the other sends while it waits for room: no deadlock."""
    monkeypatch.setattr(meshes, "UNSENT_LIMIT_BYTES", 1 << 18)
    row_counts: list[int] = []

    def talk(mesh: Mesh, peer: int) -> None:
        for _ in range(50):
            mesh.send_data(peer, 0, 0, block(65_536))
        mesh.broadcast(PROGRESS)
        rows = 0
        while rows < 50 * 65_536 or not mesh.drain(0.1):
            rows += sum(len(frame.message.payload) for frame in mesh.receive() if isinstance(frame, DataFrame))
        row_counts.append(rows)

    ours, theirs = ends()
    threads = [threading.Thread(target=talk, args=arguments) for arguments in ((ours, 1), (theirs, 0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert row_counts == [50 * 65_536] * 2


def test_a_rank_receives_from_each_of_several_peers_and_notices_the_loss_of_one() -> None:
    ours, peers = Mesh(0, Symbols()), [Mesh(rank, Symbols()) for rank in (1, 2, 3)]
    for peer in peers:
        near, far = socket.socketpair()
        ours.add(peer.rank, FrameSocket(near))
        peer.add(0, FrameSocket(far))
    for senders in (peers[:1], peers[1:], peers):
        for peer in senders:
            peer.broadcast(PROGRESS)
        assert ours.receive() == [PROGRESS] * len(senders) and ours.receive() == []
    peers[1].close()
    for _ in range(2):  # the first call closes this end
        with pytest.raises(WorkerLost, match="rank 2"):
            ours.receive()


def test_every_call_notices_a_lost_peer() -> None:
    many = block(10**6)
    for act in (Mesh.receive, lambda mesh: mesh.broadcast(PROGRESS), lambda mesh: mesh.send_data(1, 0, 0, many)):
        ours, theirs = ends()
        theirs.close()
        with pytest.raises(WorkerLost, match="rank 1"):
            for _ in range(3):
                act(ours)
        ours.close()
