"""What a connection of PostgreSQL's protocol asks of its server: sessions, and functions that run on the service.

The protocol knows neither engine nor threads: it passes functions of a `Service` to `run`, and waits.
`kpg/server/pg_backend.py` implements this on the server's engine thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kpg.pgwire.scram_exchange import ScramSecret
from kpg.service import Service

Result = TypeVar("Result")


class SqlBackend(Protocol):
    """A server that runs SQL for connections."""

    message_bytes: int  # of one incoming message
    result_rows: int  # of one result
    waiting_bytes: int  # of rows that one connection holds
    copy_bytes: int  # that one COPY … FROM STDIN may send
    greeting_seconds: float  # until a client has authenticated

    @property
    def is_ending(self) -> bool:
        """Whether the server finishes the statements that run, and accepts no others."""
        ...

    def candidates(self, user: str) -> list[tuple[ScramSecret, Any]]:
        """Return the secrets that a user may prove to know, with what they grant; empty if no proof is needed."""
        ...

    def open_session(self, holder: Any) -> int:
        """Return the number of a new session; raise if there are too many."""
        ...

    def close_session(self, number: int) -> None:
        """Drop everything that a session has."""
        ...

    async def run(self, number: int, holder: Any, text: str, work: Callable[[Service], Result]) -> Result:
        """Run a function of the service for a session, with the rights of the holder. Administrators see the text."""
        ...

    async def run_after_epoch(
        self, number: int, holder: Any, text: str, epoch: int, timeout_seconds: float, work: Callable[[Service], Result]
    ) -> Result:
        """Run a function when an epoch is complete; raise TimeNotReached if that takes longer than the timeout."""
        ...

    def cancel(self, number: int) -> None:
        """Cancel what a session runs now."""
        ...
