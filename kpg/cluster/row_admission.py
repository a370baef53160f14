"""The rows of a transaction that workers with a memory limit accept without being asked.

    admission.admits(rank, nbytes)     whether a worker must accept these rows; it is told so with the rows
    admission.must_ask                 whether a worker may have refused rows of the open transaction
    admission.end()                    the transaction has ended

All workers accept the rows of a transaction, or none does. So the coordinator waits until they have, before it moves
their clocks: one more round trip. For few rows it does not. Each reply to an advance says how much memory the worker
had to spare, and up to MAX_ADMITTED_BYTES of that are promised to the next transaction.

    over the limit by transactions  ≤  MAX_ADMITTED_BYTES on each worker
"""

from __future__ import annotations

from typing import Final

MAX_ADMITTED_BYTES: Final = 4 << 20  # less than what a computation allocates between two checks of the memory


class RowAdmission:
    """What each worker has to spare, and the bytes of the open transaction."""

    def __init__(self, memory_limit: int | None, workers: int) -> None:
        self.must_ask = False
        self._is_limited = memory_limit is not None
        self._spare_bytes = [0] * workers  # unknown before the first advance
        self._sent_bytes = [0] * workers

    def note_spare(self, rank: int, spare_bytes: int | None) -> None:
        """Record the memory that a worker has to spare; None if it did not say."""
        if spare_bytes is not None:
            self._spare_bytes[rank] = spare_bytes

    def admits(self, rank: int, nbytes: int) -> bool:
        """Return whether a worker must accept rows of this size, beside those of the open transaction so far."""
        if not self._is_limited:
            return True
        self._sent_bytes[rank] += nbytes
        if self._sent_bytes[rank] <= min(self._spare_bytes[rank], MAX_ADMITTED_BYTES):
            return True
        self.must_ask = True
        return False

    def end(self) -> None:
        """Begin to count for the next transaction."""
        self.must_ask = False
        self._sent_bytes = [0] * len(self._sent_bytes)
