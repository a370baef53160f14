"""The limits of one session. A refusal names the limit and how to stay within it."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from kpg.errors import ResourceError


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """The limits of a session and of the server; `kpg.service.Limits` holds those of answers.

    `welcome` sends the limits to the client by these names, so they are part of the protocol.
    """

    message_bytes: int = 16 << 20  # of one incoming message
    sessions: int = 1_000  # simultaneous sessions of the server
    queries: int = 1_000  # interests of one session
    rows: int = 1_000_000  # of one answer to a query
    pending: int = 64  # requests of one session without a reply
    pending_bytes: int = 64 << 20  # of these together; a single request may be as large as a message
    waiting_messages: int = 64  # message groups queued for one session, above which its requests are not read
    waiting_bytes: int = 64 << 20  # of rows on their way to one client, above which it gets no more
    message_rows: int = 2_000  # of one outgoing message; an answer with more rows is several messages
    copy_bytes: int = 4 << 30  # that one COPY … FROM STDIN may send, over PostgreSQL's protocol
    wait_seconds: float = 30.0  # of a read as of a time that is not complete
    greeting_seconds: float = 10.0  # between connection and hello
    hold_seconds: float = 60.0  # for which the interests of a lost connection wait for their client
    hold_bytes: int = 64 << 20  # of steps that a session has not acknowledged, and of the changes of a lost one

    def as_numbers(self) -> dict[str, float]:
        """Return the limits by name, as `welcome` sends them."""
        return {name: float(value) for name, value in asdict(self).items()}


def too_many_sessions(limits: SessionLimits) -> ResourceError:
    """Return the error of a client that connects to a server with as many sessions as it may have."""
    return ResourceError(
        f"the server has {limits.sessions:,} sessions, which is the maximum",
        detail=f"The limit sessions is {limits.sessions:,}.",
        hint="Close connections, or try again later. Or raise the limit: kpg serve --max-sessions N.",
    )


def over_limit(what: str, name: str, limit: int, hint: str) -> ResourceError:
    """Return the error for a limit that a session has reached."""
    return ResourceError(
        f"{what}: this session may have {limit:,}",
        detail=f"The limit {name} is {limit:,}.",
        hint=f"{hint} Or raise the limit: kpg serve --max-{name.replace('_', '-')} N.",
    )
