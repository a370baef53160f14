"""Both ends of a connection must know the secret."""

import os
import socket
import threading
import time

import pytest

from kpg.cluster import handshake
from kpg.cluster.authenticated_listener import AuthenticatedListener
from kpg.cluster.hello_messages import DataHello, PeerHello
from kpg.errors import NotAuthorised, Unreachable

SECRET = b"s" * 32


def test_both_ends_that_know_the_secret_meet() -> None:
    listener = AuthenticatedListener("127.0.0.1", SECRET)
    sock = handshake.connect(listener.address, SECRET, PeerHello(3, 1))
    accepted = listener.take(60.0)
    assert accepted is not None and accepted[0] == PeerHello(3, 1)
    sock.sendall(b"x")
    assert accepted[1].recv(1) == b"x"
    sock.close(), accepted[1].close(), listener.close()


def test_a_wrong_secret_is_refused_and_reported() -> None:
    listener = AuthenticatedListener("127.0.0.1", SECRET)
    with pytest.raises(NotAuthorised):
        handshake.connect(listener.address, b"t" * 32, PeerHello(3, 1))
    deadline = time.monotonic() + 60
    while not listener.refused and time.monotonic() < deadline:
        time.sleep(0.01)
    assert isinstance(listener.refused[0], NotAuthorised) and listener.take() is None
    listener.close()


def test_a_listener_that_does_not_know_the_secret_is_refused() -> None:
    """Mutual: a stranger that listens where a worker should learns nothing and is found out."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pretend() -> None:
        sock, _ = listener.accept()
        sock.recv(40)
        sock.sendall(os.urandom(handshake.NONCE_BYTES))
        sock.recv(4096)
        sock.sendall(os.urandom(handshake.PROOF_BYTES))
        sock.close()

    thread = threading.Thread(target=pretend)
    thread.start()
    with pytest.raises(NotAuthorised):
        handshake.connect(listener.getsockname(), SECRET, PeerHello(3, 1))
    thread.join()
    listener.close()


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n" + bytes(200), os.urandom(500), b"", handshake.OPENING])
def test_garbage_and_silence_do_not_block_other_connections(said: bytes) -> None:
    listener = AuthenticatedListener("127.0.0.1", SECRET)
    strangers = [socket.create_connection(listener.address) for _ in range(20)]
    for stranger in strangers:
        stranger.sendall(said)
    sock = handshake.connect(listener.address, SECRET, DataHello("1"))
    accepted = listener.take(60.0)
    assert accepted is not None and accepted[0] == DataHello("1")
    for connection in (*strangers, sock, accepted[1]):
        connection.close()
    listener.close()


def test_an_address_without_a_listener_is_unreachable() -> None:
    with socket.socket() as silent:  # occupies the port and does not listen
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(Unreachable):
            handshake.connect(silent.getsockname(), SECRET, DataHello("1"))
