"""What one session may take of the server; a refusal names the limit and how to stay within it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from kpg.errors import ResourceError


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """The limits of a session and of the server; those of answers are the service's own."""

    message_bytes: int = 16 << 20  # of one message that comes in
    sessions: int = 1_000  # at a time
    queries: int = 1_000  # interests of one session
    rules: int = 1_000  # registered by one session
    rows: int = 1_000_000  # of one answer to a query
    pending: int = 64  # requests of one session that wait for their reply
    pending_bytes: int = 64 << 20  # of them together; one alone may have what a message may
    waiting_messages: int = 64  # of one session that wait to be sent; then its requests are not read any more
    message_rows: int = 2_000  # of one message that goes out; more rows are several
    wait_seconds: float = 30.0  # of a read as of a time that has not come
    greeting_seconds: float = 10.0  # until hello

    def shown(self) -> dict[str, float]:
        """The limits as `welcome` tells them."""
        return {name: float(value) for name, value in asdict(self).items()}


def over(what: str, limit: int, hint: str) -> ResourceError:
    """A refusal, to be raised or sent."""
    return ResourceError(f"{what}: this session may have {limit:,}", hint=hint)
