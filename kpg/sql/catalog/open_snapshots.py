"""The snapshots of open transactions: the past that each of them may still read.

    snapshots.expire(now)       forget the past of transactions that have read nothing for `max_idle_seconds`

The rows as of the start of a transaction cannot be compacted while it may read them, in any relation or answer. So a
client that leaves a transaction open would let the memory of all others grow. An expired transaction goes on: its
cursors return their rows, and COMMIT writes its changes, because neither needs the past. A statement that reads fails
with 72000, as in PostgreSQL if a snapshot is too old.
Cost: a pass over the open transactions, as often as a quarter of the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from kpg.errors import TimeTooEarly
from kpg.sql.sql_states import with_sqlstate

SNAPSHOT_TOO_OLD: Final = "72000"
CHECKS: Final = 4  # in the time after which a snapshot expires


class Snapshot:
    """The right of one transaction to read the past; `release` lets the db forget it."""

    def __init__(self, release: Callable[[], None]) -> None:
        self._release: Callable[[], None] | None = release
        self._used = monotonic()  # when a statement last ended that had read
        self._is_reading = False  # whether the present statement has read
        self._idle_seconds = 0.0  # after which it has expired

    def begin_read(self) -> None:
        """Note that the present statement reads. Raise if the past is gone."""
        if self._release is None:
            error = TimeTooEarly(
                "the rows as of the start of the transaction are gone",
                detail=f"It has read nothing for more than {self._idle_seconds:g} seconds. "
                "The limit is snapshot_seconds.",
                hint="ROLLBACK, and begin again; COMMIT earlier. "
                "Or raise the limit: kpg serve --max-snapshot-seconds N.",
            )
            raise with_sqlstate(SNAPSHOT_TOO_OLD, error)
        self._is_reading = True

    def end_statement(self) -> None:
        """Note that a statement has ended."""
        if self._is_reading:
            self._is_reading, self._used = False, monotonic()

    def expire(self, now: float, idle_seconds: float) -> None:
        """Forget the past if nothing has read it for some time."""
        if not self._is_reading and now - self._used >= idle_seconds:
            self._idle_seconds = idle_seconds
            self.end()

    def end(self) -> None:
        """Let the db forget the past; may be repeated."""
        release, self._release = self._release, None
        if release is not None:
            release()


class OpenSnapshots:
    """The snapshots of one db."""

    def __init__(self) -> None:
        self.max_idle_seconds: float | None = None
        self._open: set[Snapshot] = set()
        self._next_check = 0.0

    def open(self, release: Callable[[], None]) -> Snapshot:
        """Return the snapshot of a transaction that begins."""
        snapshot = Snapshot(release)
        self._open.add(snapshot)
        return snapshot

    def close(self, snapshot: Snapshot) -> None:
        """End the snapshot of a transaction that has ended."""
        self._open.discard(snapshot)
        snapshot.end()

    def seconds_to_check(self, now: float) -> float | None:
        """Return the time until `expire` may find something to do; None if there is nothing."""
        if self.max_idle_seconds is None or not self._open:
            return None
        return self._next_check - now

    def expire(self, now: float) -> None:
        """Forget the past of the transactions that have not read it for too long."""
        if self.max_idle_seconds is None:
            return
        self._next_check = now + self.max_idle_seconds / CHECKS
        for snapshot in tuple(self._open):
            snapshot.expire(now, self.max_idle_seconds)
