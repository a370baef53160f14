"""When the thread of a server looks for texts that nothing uses, and frees them, beside the requests.

    upkeep.in_silence()             after a second without requests
    upkeep.between_requests()       after each round of requests, changes and work
    upkeep.holds_back()             whether new requests wait a moment, so that those under way can end
    upkeep.free()                   free what was found, until a request arrives

`kpg.api.symbol_reclaimer` decides whether it pays. The search needs a moment in which no work is left and no request is
under way, since the stack of a request may hold rows. A server that is never quiet makes such a moment: new requests
wait at most HOLD_BACK_SECONDS in each HOLD_BACK_INTERVAL_SECONDS. With several workers, nothing of this happens.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from kpg.api.contracts import Database
from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.symbol_reclaimer import SymbolReclaimer
from kpg.api.waiting_requests import WaitingRequests

FREE_SECONDS: Final = 0.004  # in which symbols are freed between two rounds of requests
HOLD_BACK_SECONDS: Final = 0.02  # that new requests wait at a time
HOLD_BACK_INTERVAL_SECONDS: Final = 1.0  # between two such times


class SymbolUpkeep:
    """Reclaims the symbols of a db that one thread serves. Used on that thread only."""

    def __init__(self, db: Database, requests: WaitingRequests, has_arrived: Callable[[], bool]) -> None:
        self._db = db
        self._reclaimer = SymbolReclaimer(db) if isinstance(db, EmbeddedDatabase) else None
        self._requests = requests
        self._has_arrived = has_arrived  # whether a request waits to be started
        self._held_back_until = self._next_hold_back = 0.0

    @property
    def seconds_to_check(self) -> float | None:
        """The time until a reclamation that is due may begin; None if none is due."""
        return None if self._reclaimer is None else self._reclaimer.seconds_to_check

    def in_silence(self) -> None:
        """Look for unused symbols if that is due, and free them until a request arrives."""
        if self._reclaimer is not None and self._reclaimer.is_due and not self._has_arrived():
            self._begin(self._reclaimer, in_silence=True)
            self.free()

    def between_requests(self) -> None:
        """Look for unused symbols if their table has grown very much, and free some."""
        if self._reclaimer is not None:
            if self._reclaimer.is_overdue:
                self._begin(self._reclaimer, in_silence=False)
            end = time.monotonic() + FREE_SECONDS
            while self._reclaimer.free_some() and time.monotonic() < end:
                pass

    def free(self) -> None:
        """Free the symbols that were found to be unused until a request arrives."""
        while self._reclaimer is not None and not self._has_arrived() and self._reclaimer.free_some():
            pass

    def holds_back(self) -> bool:
        """Return whether new requests wait now for those that are under way."""
        if self._reclaimer is None or not self._reclaimer.is_overdue:
            return False
        now = time.monotonic()
        if now >= self._next_hold_back:
            self._held_back_until, self._next_hold_back = now + HOLD_BACK_SECONDS, now + HOLD_BACK_INTERVAL_SECONDS
        return now < self._held_back_until

    def _begin(self, reclaimer: SymbolReclaimer, in_silence: bool) -> None:
        if self._requests.is_empty and not self._db.has_work:
            reclaimer.begin(in_silence)
            self._held_back_until = 0.0
