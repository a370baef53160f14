"""Frees unused symbols of a db while it serves, so that its texts take memory only while rows use them.

    reclaimer.is_due         the table has doubled since the last reclamation: begin one in a moment of silence
    reclaimer.is_overdue     it has tripled, or memory is short: begin one as soon as nothing waits
    reclaimer.begin()        find the unused symbols; call it only while no request waits and no work is left
    reclaimer.free_some()    free some of them; call it at any time between requests and slices of work

`begin` passes over all rows with symbols in one piece: 5 ms for each million of rows, and 40 ms for each million of
unused symbols. It takes at most one part in MAX_SHARE of the time. `free_some` takes a millisecond, 0.4 s in all for a
million symbols; the last one takes 40 ms if it gives back the memory of a table of a million. A db that always grows
reclaims each time that its table has doubled or tripled, so reclamations cost each new symbol a constant time.

Only a server with one worker does this (kpg.server.engine_thread). With several, workers send symbols by number, and
all of them have to stop and forget these numbers together: see `ClusterDatabase.reclaim`.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from kpg.api.symbol_usage import symbols_in_use

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase

MIN_GROWTH: Final = 100_000  # new symbols until a reclamation: some 15 MB
IDLE_FACTOR: Final = 2  # by which the table must have grown for one in silence
BUSY_FACTOR: Final = 3  # by which it must have grown for one between requests
SHORT_SHARE: Final = 4  # memory is short when less than one part of this many of the limit is free
MAX_SHARE: Final = 100  # `begin` takes at most one part of this many of the time
IDS_PER_PART: Final = 4096  # freed at a time: a millisecond


class SymbolReclaimer:
    """Decides when the symbols of a db are reclaimed, and does it in parts."""

    def __init__(self, db: EmbeddedDatabase) -> None:
        self._db = db
        self._count = 0  # of symbols after the last reclamation
        self._settled_count = 0  # after the last one in silence, when traces were compacted
        self._earliest = 0.0  # time of the next `begin`

    @property
    def is_reclaiming(self) -> bool:
        """Whether `free_some` has something left to do."""
        return self._db.symbols.is_reclaiming

    @property
    def is_due(self) -> bool:
        """Whether to begin a reclamation in a moment of silence."""
        return self._has_grown(self._settled_count, IDLE_FACTOR) and monotonic() >= self._earliest

    @property
    def is_overdue(self) -> bool:
        """Whether to begin a reclamation as soon as nothing waits."""
        return self._has_grown(self._count, BUSY_FACTOR) and monotonic() >= self._earliest

    @property
    def seconds_to_check(self) -> float | None:
        """The time until a reclamation that is due may begin; None if none is due."""
        is_due = self._has_grown(self._settled_count, IDLE_FACTOR)
        return max(0.0, self._earliest - monotonic()) if is_due else None

    def _has_grown(self, before: int, factor: int) -> bool:
        """Whether enough symbols were added since a reclamation for the next one to pay."""
        growth = len(self._db.symbols) - before
        if growth < MIN_GROWTH or self.is_reclaiming:
            return False
        return growth >= (factor - 1) * max(before, MIN_GROWTH) or self._memory_is_short

    @property
    def _memory_is_short(self) -> bool:
        limit, spare = self._db.memory.limit, self._db.memory.spare_bytes
        return limit is not None and spare is not None and spare * SHORT_SHARE < limit

    def begin(self, in_silence: bool) -> None:
        """Find the symbols that nothing uses. No request may wait, and no message be in flight.

        In silence, all traces are compacted. Otherwise rows that were removed may still hold symbols.
        """
        began, symbols = monotonic(), self._db.symbols
        unused = symbols.begin_reclaim(symbols_in_use(self._db))
        self._count = len(symbols) - unused
        if in_silence:
            self._settled_count = self._count
        ended = monotonic()
        self._earliest = ended + MAX_SHARE * (ended - began)

    def free_some(self) -> bool:
        """Free some of the symbols that were found; return whether more are left."""
        return self._db.symbols.free_some(IDS_PER_PART)
