"""Whether a client still takes what the server sends it.

    await SocketProgress(transport).stopped(60.0)     returns when the client has taken nothing for a minute

A client that is stopped, or whose program never reads, leaves its socket full. No ping reaches it then, so the pings of
WebSocket do not notice: the next one waits for room in the socket. Progress is a message that the socket has taken
whole, or fewer bytes that the client has not acknowledged, also those in the buffers of the operating system. So a
client with a slow network, or that reads little by little, is not taken for one that has stopped.
Cost: a system call for each connection with unsent bytes, CHECKS times in the timeout.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from typing import Final

try:
    import fcntl
    import termios
except ImportError:  # pragma: no cover - not on this system
    fcntl = None  # type: ignore[assignment]

CHECKS: Final = 4  # in the timeout: what stops is noticed after the timeout, or a quarter of it later


class SocketProgress:
    """What a client has taken of the bytes sent to it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._sent = 0  # messages

    def note_sent(self) -> None:
        """Record that the socket has taken a message whole."""
        self._sent += 1

    async def stopped(self, timeout_seconds: float) -> None:
        """Wait until the client has taken nothing for a time, although there was something to send."""
        checks, sent, unsent = 0, -1, 0
        while checks < CHECKS:
            await asyncio.sleep(timeout_seconds / CHECKS)
            before, sent, unsent_before, unsent = sent, self._sent, unsent, self._unsent_bytes()
            is_full = self._transport.get_write_buffer_size() > 0
            checks = checks + 1 if is_full and sent == before and unsent >= unsent_before else 0

    def _unsent_bytes(self) -> int:
        """Return the bytes that the client has not acknowledged, as far as the operating system says."""
        unsent = self._transport.get_write_buffer_size()
        if unsent and fcntl is not None:
            with suppress(OSError):
                raw = fcntl.ioctl(self._transport.get_extra_info("socket"), termios.TIOCOUTQ, bytes(4))
                unsent += int(struct.unpack("=i", raw)[0])
        return unsent
