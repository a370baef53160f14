"""A listening socket that returns only authenticated connections: the peer has proved that it knows the secret.

Each new connection is authenticated on a thread of its own, within a few seconds, and at most `MAX_HANDSHAKES` at a
time. Unauthenticated, malformed or silent connections therefore never delay the owner of the listener.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from queue import Empty, SimpleQueue

from kpg.cluster import handshake
from kpg.cluster.hello_messages import Hello
from kpg.errors import ClusterError

MAX_HANDSHAKES = 32  # at the same time; further connections wait in the backlog of the socket
MAX_REMEMBERED_REFUSALS = 16  # for diagnosis
BACKLOG = 128  # connections that the system queues


class AuthenticatedListener:
    """Listens on one interface, at a port that the system chooses."""

    unsent = 0

    def __init__(self, interface: str, secret: bytes) -> None:
        self._secret = secret
        self._listener = socket.create_server((interface, 0), backlog=BACKLOG)
        self._handshakes = threading.BoundedSemaphore(MAX_HANDSHAKES)
        self._accepted: SimpleQueue[tuple[Hello, socket.socket]] = SimpleQueue()
        self._signal, self._signaller = socket.socketpair()  # readable while a connection waits to be taken
        self._signal.setblocking(False)
        self.refused: deque[ClusterError] = deque(maxlen=MAX_REMEMBERED_REFUSALS)
        self._closed = False
        threading.Thread(target=self._listen, name="kpg listener", daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port."""
        host, port = self._listener.getsockname()[:2]
        return str(host), int(port)

    def fileno(self) -> int:
        """Return a file number that is readable while a connection waits to be taken."""
        return self._signal.fileno()

    def take(self, timeout_seconds: float = 0.0) -> tuple[Hello, socket.socket] | None:
        """Take the next authenticated connection; None if there is none in time, or the listener is closed."""
        with contextlib.suppress(OSError):  # nothing to read, or another thread has closed the listener
            self._signal.recv(4096)
        try:
            arrival = self._accepted.get(timeout=timeout_seconds) if timeout_seconds else self._accepted.get_nowait()
        except Empty:
            return None
        if not self._accepted.empty():
            with contextlib.suppress(OSError):
                self._signaller.send(b"!")
        return arrival

    def _listen(self) -> None:
        while not self._closed:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._handshakes.acquire()
            threading.Thread(target=self._authenticate, args=(sock,), name="kpg handshake", daemon=True).start()

    def _authenticate(self, sock: socket.socket) -> None:
        try:
            hello = handshake.accept(sock, self._secret)
            self._accepted.put((hello, sock))
            self._signaller.send(b"!")
        except ClusterError as error:
            self.refused.append(error)
        except OSError:
            sock.close()
        finally:
            self._handshakes.release()

    def close(self) -> None:
        """Stop listening; may be repeated."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            while (arrival := self.take()) is not None:
                arrival[1].close()
            self._signal.close()
            self._signaller.close()
