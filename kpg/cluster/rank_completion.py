"""How far the dataflows of one rank are complete, and its work in slices between commands.

    reached     the last epoch that all ranks have closed
    lagging     the dataflows that have not completed it, with the last epoch that each has completed

A rank knows what is in flight on all ranks, as far as progress has arrived: what it calls complete is complete
everywhere. Its own trace may be read at that time; the coordinator reads when all ranks say so. Only the coordinator
says what is sealed, so all ranks begin a new query at the same time of history.
Cost: a pass over the dataflows with changed counts, and over the readers of those that are not complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kpg.algebra.frontier import Frontier
from kpg.api.embedded_completion import EmbeddedCompletion
from kpg.dataflow.graph import Dataflow

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase


class RankProgress(NamedTuple):
    """How far a rank is; the dataflows that lag by their ids."""

    reached: int = -1
    complete: int = -1
    lagging: tuple[tuple[int, int], ...] = ()


class RankCompletion(EmbeddedCompletion):
    """The completion of the dataflows of one rank."""

    serving = False  # whether commands never wait for answers
    is_lagging = False  # whether some work was left to slices at the last measurement
    reached = -1

    def __init__(self, db: EmbeddedDatabase) -> None:
        super().__init__(db)
        self._changed: set[int] = set()  # ids of dataflows whose counts have changed since the last measurement

    @property
    def lags(self) -> bool:
        return self.serving or self.unfinished

    def clean_up(self) -> None:
        if self.serving:
            self._db.worker.cleanup_due = True
        else:
            self._db.worker.clean_up()

    def work(self, seconds: float) -> bool:
        """Work for about this long, and let listeners have the changes of completed times. Return whether to go on."""
        busy = self._db.worker.run_slice(seconds)
        self._changed.update(tracker.owner for tracker in self._db.worker.changed_trackers)
        if self.unfinished and not busy and self._db.worker.is_settled():
            self.unfinished = False
        self.pass_on()
        return busy

    def pass_on(self) -> None:
        """Pass new changes of completed times to listeners."""
        for output in tuple(self._db.changed):
            output.notify()

    def note_sealed(self, epoch: int) -> None:
        """Record the last epoch that all ranks have completed."""
        if self.sealed is None or self.sealed.elements[0][0] < epoch:
            self.sealed = Frontier.at((epoch,))

    def progress(self, active: set[int]) -> RankProgress:
        """Return how far the rank is; add the dataflows with changed counts to `active`."""
        worker = self._db.worker
        active |= self._changed & worker.dataflows.keys()
        self._changed.clear()
        frontier = worker.clock.frontier
        if not frontier:  # the clock has ended
            return RankProgress(self.reached, self.reached)
        self.reached = reached = frontier.elements[0][0] - 1
        lagging: dict[int, int] = {}
        for tracker in tuple(worker.changed_trackers):
            dataflow = worker.dataflows.get(tracker.owner)
            if dataflow is not None:
                active.add(dataflow.id)
            if dataflow is None or (tracker.is_idle and not tracker.has_unsent):
                worker.forget_changes(tracker)
            elif not tracker.is_settled(frontier):
                self._add_lagging(dataflow, reached, lagging)
        self.is_lagging = bool(lagging)
        return RankProgress(reached, min(lagging.values(), default=reached), tuple(sorted(lagging.items())))

    def _add_lagging(self, dataflow: Dataflow, reached: int, lagging: dict[int, int]) -> None:
        """Add a dataflow that is not complete, and all that read from it."""
        if dataflow.id not in lagging:
            lagging[dataflow.id] = min(reached, self.complete_through(dataflow))
            for reader in dataflow.readers:
                self._add_lagging(reader, reached, lagging)
