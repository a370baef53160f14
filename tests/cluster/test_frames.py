"""Frames arrive complete and in order, however the bytes are cut; other bytes end the connection."""

import socket
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.cluster import frames
from kpg.cluster.frames import FrameSocket
from kpg.errors import ProtocolError, Unreachable


def pair() -> tuple[FrameSocket, FrameSocket]:
    left, right = socket.socketpair()
    return FrameSocket(left), FrameSocket(right)


def words(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-(2**62), 2**62, count)


@given(
    frames=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 2, 7, 8190, 8191, 9000, 40_000])), min_size=1, max_size=12
    )
)
def test_frames_arrive_whole_and_in_order(frames: list[tuple[int, int]]) -> None:
    ours, theirs = pair()
    sent = [(kind, words(count, seed)) for seed, (kind, count) in enumerate(frames)]
    for kind, body in sent:
        ours.send(kind, [body.data.cast("B")])
    received: list[frames.Frame] = []
    while len(received) < len(sent):
        ours.flush()
        if theirs.wait(5.0):
            received += theirs.receive()
    assert ours.flush() and ours.unsent == 0
    for (kind, body), (found_kind, found_body) in zip(sent, received, strict=True):
        assert kind == found_kind and (body == found_body).all()
        assert found_body.flags.aligned and found_body.flags.writeable
    ours.close(), theirs.close()


@given(cuts=st.lists(st.integers(1, 60), min_size=1, max_size=40), count=st.integers(0, 12))
def test_bytes_may_be_cut_anywhere(cuts: list[int], count: int) -> None:
    left, right = socket.socketpair()
    theirs = FrameSocket(right)
    body = words(count, 1)
    raw = (frames.HEADER.pack(frames.MAGIC, 5, count) + body.tobytes()) * 3
    received: list[frames.Frame] = []
    for size in [*cuts, len(raw)]:
        piece, raw = raw[:size], raw[size:]
        left.sendall(piece)
        received += theirs.receive() if piece else []
    assert [kind for kind, _ in received] == [5] * 3 and all(
        (received_body == body).all() for _, received_body in received
    )
    left.close(), theirs.close()


def test_urgent_frames_leave_before_queued_rows() -> None:
    ours, theirs = pair()
    large = np.zeros(1 << 20, np.int64)
    for _ in range(4):
        ours.send(1, [large.data.cast("B")])
        ours.flush()
    ours.send(2, [struct.pack("<q", 7)], urgent=True)
    kinds: list[int] = []
    while len(kinds) < 5:
        ours.flush()
        kinds += [kind for kind, _ in theirs.receive()]
    assert kinds.index(2) < 4 and sorted(kinds) == [1, 1, 1, 1, 2]
    ours.close(), theirs.close()


@given(garbage=st.binary(min_size=16, max_size=64))
def test_garbage_ends_the_connection(garbage: bytes) -> None:
    left, right = socket.socketpair()
    theirs = FrameSocket(right)
    if struct.unpack("<I", garbage[:4])[0] == frames.MAGIC:
        return
    left.sendall(garbage)
    with pytest.raises(ProtocolError):
        theirs.receive()
    assert theirs.closed
    left.close()


def test_a_frame_beyond_the_limit_is_refused_before_it_is_read() -> None:
    left, right = socket.socketpair()
    theirs = FrameSocket(right, limit_words=1000)
    left.sendall(frames.HEADER.pack(frames.MAGIC, 1, 1001))
    with pytest.raises(ProtocolError, match="too long"):
        theirs.receive()
    left.close()


def test_the_end_of_a_connection_is_reported_after_its_last_frames() -> None:
    ours, theirs = pair()
    ours.send(3, [struct.pack("<q", 1)])
    ours.flush()
    ours.close()
    assert [kind for kind, _ in theirs.receive()] == [3]
    with pytest.raises(Unreachable):
        theirs.receive()


def test_a_poller_wakes_for_arriving_frames_and_for_free_buffer_space() -> None:
    ours, theirs = pair()
    watch = frames.SocketPoller([ours])
    assert watch.wait_soon(0.0, 0.0) == []
    theirs.send(1, [b"12345678"])
    theirs.flush()
    assert watch.wait_soon(5.0, 0.001) == [ours.fileno()]
    assert len(ours.receive()) == 1 and watch.wait_soon(0.0, 0.0) == []
    many = words(1 << 20, 1)
    ours.send(2, [many.data.cast("B")])
    assert not ours.flush() and watch.wait_soon(0.0, 0.0) == []  # full
    received: list[frames.Frame] = []
    while not received:
        received = theirs.receive()
        if ours.unsent:
            assert watch.wait_soon(5.0, 0.0) == [ours.fileno()]
            ours.flush()
    assert (received[0][1] == many).all() and watch.wait_soon(0.0, 0.0) == []  # nothing to leave: room is no news
    ours.close(), theirs.close()


def test_urgent_frames_leave_first_when_small_frames_are_joined() -> None:
    ours, theirs = pair()
    ours.send(1, [b"12345678"])
    ours.send(2, [b"12345678", b"87654321"], urgent=True)
    assert ours.flush()
    assert [kind for kind, _ in theirs.receive()] == [2, 1]
    ours.close(), theirs.close()


def test_small_frames_are_joined_also_after_a_flush_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pair()
    gather, leaving = ours._gather, []

    def record() -> None:
        gather()
        leaving.append(len(ours._leaving))

    monkeypatch.setattr(ours, "_gather", record)
    for _ in range(3):
        assert ours.flush()  # nothing to send
        ours.send(1, [b"12345678"])
        ours.send(2, [b"12345678"])
        assert ours.flush()
        assert [kind for kind, _ in theirs.receive()] == [1, 2]
    assert leaving == [1, 1, 1]  # one buffer for both frames, and no empty one before it
    ours.close(), theirs.close()
