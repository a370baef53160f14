"""Interests that do not take each change as it comes: at full intervals, or into a sink.

interest.due_in     in how many seconds what is held back can be taken
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Updates, spread
from kpg.observe.drain import Drain
from kpg.observe.granularity import ClockGranularity
from kpg.service.changes import Changes
from kpg.service.interest import Interest, part

if TYPE_CHECKING:
    from kpg.api.output import Output


class GranularInterest(Interest):
    """An interest whose changes wait for the next full interval, and are summed up there."""

    def __init__(self, granularity: ClockGranularity, *given: Any) -> None:
        super().__init__(*given)
        self._held = granularity

    @property
    def due_in(self) -> float | None:
        return self._held.due_in

    @property
    def waiting(self) -> int:
        self._arrive(self._held.take())
        return self._rows

    def push(self, updates: Updates, start: int, end: int, more: int) -> None:
        self._held.push(part(updates, start, end, self._lanes))

    def take(self) -> Changes:
        if not self.ended:
            self.before_take()
            self._arrive(self._held.take())
        return super().take()

    def release_all(self) -> None:
        self._arrive(self._held.take_all())

    def _arrive(self, due: list[Updates]) -> None:
        for updates in due:
            n = len(updates)
            super().push(updates, 0, n, int(spread(updates.diffs, n).sum()))


class SinkInterest:
    """An interest as a drain follows it: what has changed, and how far that is complete."""

    def __init__(self, interest: Interest, output: Output) -> None:
        self._interest = interest
        self._output = output
        self.drain: Drain | None = None
        self._failure, interest.failure = interest.failure, self.failure

    def failure(self) -> Exception | None:
        """Why nothing comes any more, or there is no answer now: told to who takes."""
        ended = None if self.drain is None else self.drain.failure
        return ended or self._failure()

    def take(self) -> Changes:
        """What has changed; all of it, if nothing can come any more."""
        if not self._output.frontier():
            self._interest.release_all()
        return self._interest.take()

    def frontier(self) -> Frontier | None:
        """Up to where all changes were taken; not known while some are held back."""
        return None if self._interest.due_in is not None else self._output.frontier()
