"""What one owner may take of a service: a limit that is met is a refusal to whoever met it, and to nobody else.

None is no limit. `message_bytes` is for whoever reads messages; the other limits are kept here.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.api.memory import resident_bytes
from kpg.errors import OverLimit


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a service."""

    queries: int | None = 10_000  # interests that one owner holds at a time
    rows: int | None = 10_000_000  # of one answer
    rounds: int | None = 1_000_000  # of one recursion
    memory: int | None = None  # bytes that the process holds when something new is to be built
    message_bytes: int = 16 * 2**20
    waiting_rows: int = 100_000  # that nobody takes, after which changes are summed up

    def check_queries(self, owner: object, held: int) -> None:
        """Refuse one more interest."""
        if self.queries is not None and held >= self.queries:
            raise OverLimit(
                f"owner {owner!r} holds {held:,} interests, which is all it may",
                hint="Uninterest what is no longer read.",
            )

    def check_rows(self, name: str, rows: int) -> None:
        """Refuse an answer of so many rows."""
        if self.rows is not None and rows > self.rows:
            raise OverLimit(
                f"the answer of {name} is over the limit of {self.rows:,} rows",
                detail=f"It has {rows:,}.",
                hint="Ask for less: give arguments, or aggregate.",
            )

    def check_memory(self, name: str) -> None:
        """Refuse to build something new when the process holds too much."""
        if self.memory is not None and (held := resident_bytes()) > self.memory:
            raise OverLimit(
                f"cannot build {name}: over the memory limit of {self.memory:,} bytes",
                detail=f"Held: {held:,} bytes.",
                hint="Uninterest what is no longer read, and try again.",
            )
