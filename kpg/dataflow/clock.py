"""The clock of a database: the time that each worker's inputs have reached.

An advance is a change of counts: −1 at the old time, +1 at the new time. Workers send it to their peers in order with
all other progress changes. The frontier of the clock is the meet of all workers' times.
Cost: sources pull the frontier when it is needed, so an advance costs the same with one dataflow and with a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time
from kpg.progress.tracker import Change


class Clock:
    """The number of workers at each time."""

    def __init__(self, start: Time, peers: int, worker: int = 0) -> None:
        self._worker = worker
        self.now: Frontier = Frontier.at(start)
        self._counts: dict[Time, int] = {start: peers}
        self._unsent: list[Change] = []
        self._alone = peers == 1
        self.frontier: Frontier = self.now

    def advance_to(self, frontier: Frontier) -> None:
        """Advance the inputs of this worker. CLOSED ends them."""
        if self._alone:
            self.now = self.frontier = frontier
            return
        changes: list[Change] = [(self._worker, 0, time, 1) for time in frontier]
        changes += [(self._worker, 0, time, -1) for time in self.now]
        self._unsent += changes
        self.now = frontier
        self.receive(changes)

    @property
    def has_unsent(self) -> bool:
        """Whether some changes were not sent to the peers yet."""
        return bool(self._unsent)

    def take_changes(self) -> list[Change]:
        """Return the changes that were not sent to the peers yet, and count them as sent."""
        changes, self._unsent = self._unsent, []
        return changes

    def receive(self, changes: Iterable[Change]) -> None:
        """Apply changes, of a peer or of this worker."""
        for _, _, time, difference in changes:
            total = self._counts.get(time, 0) + difference
            if total:
                self._counts[time] = total
            else:
                del self._counts[time]
        self.frontier = Frontier(time for time, count in self._counts.items() if count > 0) if self._counts else CLOSED
