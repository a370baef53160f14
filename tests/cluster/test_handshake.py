"""Only who knows the secret gets in, and only to who knows it too."""

import os
import socket
import threading
import time

import pytest

from kpg.cluster import handshake
from kpg.cluster.authenticated_listener import AuthenticatedListener
from kpg.errors import NotAuthorised, Unreachable

SECRET = b"s" * 32


def test_both_ends_that_know_the_secret_meet() -> None:
    door = AuthenticatedListener("127.0.0.1", SECRET)
    sock = handshake.connect(door.address, SECRET, {"role": "peer", "rank": 3})
    found = door.take(60.0)
    assert found is not None and found[0] == {"role": "peer", "rank": 3}
    sock.sendall(b"x")
    assert found[1].recv(1) == b"x"
    sock.close(), found[1].close(), door.close()


def test_a_wrong_secret_is_refused_and_reported() -> None:
    door = AuthenticatedListener("127.0.0.1", SECRET)
    with pytest.raises(NotAuthorised):
        handshake.connect(door.address, b"t" * 32, {"role": "peer"})
    deadline = time.monotonic() + 60
    while not door.refused and time.monotonic() < deadline:
        time.sleep(0.01)
    assert isinstance(door.refused[0], NotAuthorised) and door.take() is None
    door.close()


def test_a_door_that_does_not_know_the_secret_is_not_entered() -> None:
    """Mutual: a stranger that listens where a worker should learns nothing and is found out."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pretend() -> None:
        sock, _ = listener.accept()
        sock.recv(40)
        sock.sendall(os.urandom(handshake.NONCE))
        sock.recv(4096)
        sock.sendall(os.urandom(handshake.PROOF))
        sock.close()

    thread = threading.Thread(target=pretend)
    thread.start()
    with pytest.raises(NotAuthorised):
        handshake.connect(listener.getsockname(), SECRET, {"role": "peer"})
    thread.join()
    listener.close()


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n" + bytes(200), os.urandom(500), b"", handshake.OPENING])
def test_garbage_and_silence_do_not_keep_others_out(said: bytes) -> None:
    door = AuthenticatedListener("127.0.0.1", SECRET)
    strangers = [socket.create_connection(door.address) for _ in range(20)]
    for stranger in strangers:
        stranger.sendall(said)
    sock = handshake.connect(door.address, SECRET, {"role": "guest"})
    found = door.take(60.0)
    assert found is not None and found[0]["role"] == "guest"
    for each in (*strangers, sock, found[1]):
        each.close()
    door.close()


def test_nobody_there_is_said() -> None:
    with socket.socket() as silent:  # has the port, so that nobody else can, and does not listen
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable):
            handshake.connect(silent.getsockname(), SECRET, {})
