"""Connections that answer HTTP requests with a body, which the WebSocket library closes without a status.

    head of the request      passed on, without the headers that announce a body
    the body                 dropped; it is never held in memory

The reply is then that of any request: 405 for other methods than GET, 413 for a GET with a body. After the reply, the
connection is closed. Bytes are inspected until the head has ended, once each.
"""

from __future__ import annotations

import re
from typing import Any

from websockets.asyncio.server import ServerConnection

END_OF_HEAD = b"\r\n\r\n"
MAX_HEAD_BYTES = 1 << 16  # more is passed on as it is, and refused there
BODY_HEADER = re.compile(rb"\r\n(?:content-length:[ \t]*+(?!0[ \t]*\r\n)|transfer-encoding:)[^\r\n]*", re.IGNORECASE)


class BodilessConnection(ServerConnection):
    """A connection of the server; `has_body` tells whether its request announced a body."""

    has_body = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head: bytes | None = b""  # received so far; None once the head has been passed on

    def data_received(self, data: bytes) -> None:
        """Pass data on, without the body of the request."""
        if self._head is None:
            if not self.has_body:
                super().data_received(data)
            return
        self._head += data
        head, end, rest = self._head.partition(END_OF_HEAD)
        if end or len(self._head) > MAX_HEAD_BYTES:
            self._head = None
            kept, removed = BODY_HEADER.subn(b"", b"\r\n".join([head, b""])) if end else (head, 0)
            self.has_body = removed > 0
            super().data_received(kept + (b"\r\n" if end else b"") + (b"" if self.has_body else rest))
