"""A port that only those who know the secret get through, one thread greeting while the owner works.

Strangers, garbage and silence cost the owner nothing: each newcomer is greeted on a thread of its own, for a few
seconds and a few at a time, and only what has proved itself is handed over.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from queue import Empty, SimpleQueue
from typing import Any

from kpg.cluster import handshake
from kpg.errors import ClusterError

AT_ONCE = 32  # newcomers being greeted
REMEMBERED = 16  # refusals


class AuthenticatedListener:
    """Listens on one interface."""

    unsent = 0

    def __init__(self, interface: str, secret: bytes) -> None:
        self._secret = secret
        self._listener = socket.create_server((interface, 0), backlog=128)
        self._greeting = threading.BoundedSemaphore(AT_ONCE)
        self._arrived: SimpleQueue[tuple[dict[str, Any], socket.socket]] = SimpleQueue()
        self._bell, self._ring = socket.socketpair()
        self._bell.setblocking(False)
        self.refused: deque[ClusterError] = deque(maxlen=REMEMBERED)
        self._closed = False
        threading.Thread(target=self._listen, name="kpg door", daemon=True).start()

    @property
    def address(self) -> tuple[str, int]:
        """Where it is."""
        host, port = self._listener.getsockname()[:2]
        return str(host), int(port)

    def fileno(self) -> int:
        """Readable when somebody has come in."""
        return self._bell.fileno()

    def take(self, seconds: float | None = 0.0) -> tuple[dict[str, Any], socket.socket] | None:
        """The next that came in, as what and by which socket; None if nobody did in time."""
        with contextlib.suppress(BlockingIOError):
            self._bell.recv(4096)
        try:
            found = self._arrived.get(timeout=seconds) if seconds else self._arrived.get_nowait()
        except Empty:
            return None
        if not self._arrived.empty():
            self._ring.send(b"!")
        return found

    def _listen(self) -> None:
        while not self._closed:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self._greeting.acquire()
            threading.Thread(target=self._greet, args=(sock,), name="kpg greeting", daemon=True).start()

    def _greet(self, sock: socket.socket) -> None:
        try:
            hello = handshake.accept(sock, self._secret)
            self._arrived.put((hello, sock))
            self._ring.send(b"!")
        except ClusterError as error:
            self.refused.append(error)
        except OSError:
            sock.close()
        finally:
            self._greeting.release()

    def close(self) -> None:
        """Stop listening; may be repeated."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            while (found := self.take()) is not None:
                found[1].close()
            self._bell.close()
            self._ring.close()
