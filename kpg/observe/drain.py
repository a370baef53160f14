"""A drain: leads the changes of an answer into a sink after each advance, and says how far they are complete.

    with drain(answer, LatencySink("epochs.log")): ...
    drain(answer, FileSink("changes.csv"), granularity=10)      at each tenth epoch what differs from the tenth before

The frontier is that of the answer, over all workers. With a granularity changes come at full intervals only, and so
does the frontier. While the answer fails (rows on which an expression fails) nothing is complete and the sink is told
nothing; what has changed meanwhile comes when it is healed. A drain ends with its answer or its db, when closed, or
when the sink cannot write or the answer has failed for good: then `failure` says why, and the db goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
from kpg.api.changes import Changes
from kpg.errors import Closed, DataError, KpgError, ProgramError
from kpg.observe.granularity import EpochGranularity
from kpg.observe.sinks import Sink

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Output


class Drain:
    """Something that is followed into a sink; `take` gives what changed, `frontier` up to where (None: not said)."""

    def __init__(
        self,
        db: Database,
        take: Callable[[], Any],
        frontier: Callable[[], Frontier | None],
        sink: Sink,
        granularity: EpochGranularity | None = None,
    ) -> None:
        self.db = db
        self.sink = sink
        self.closed = False
        self.failure: KpgError | None = None  # why it ended by itself, if not with its answer
        self._take = take
        self._frontier = frontier
        self._granularity = granularity
        self._told: Frontier | None = None
        db.followers.append(self.advance)
        if db.sealed is not None:
            self.advance()

    def advance(self) -> None:
        """Give the sink what has changed, then how far that is complete; whatever fails ends this drain alone."""
        try:
            self._lead(self._take(), self._frontier())
        except DataError:
            return  # the answer has no value now
        except KpgError as error:
            self.failure = None if isinstance(error, Closed) else error
            self.close()

    def _lead(self, changes: Any, frontier: Frontier | None) -> None:
        if frontier is None:
            self._give(changes)
            return
        for each in self._due(changes, frontier):
            self._give(each)
        complete = self._complete(frontier)
        if complete != self._told:
            self._told = complete
            self.sink.advance(complete)

    def _give(self, changes: Any) -> None:
        if len(changes):
            self.sink.take(changes)

    def _due(self, changes: Any, frontier: Frontier) -> list[Any]:
        if self._granularity is None:
            return [changes]
        self._granularity.push(changes.updates)
        due = self._granularity.take(frontier.elements[0][0] if frontier else None)
        return [Changes(updates, changes.schema, self.db) for updates in due]

    def _complete(self, frontier: Frontier) -> Frontier:
        if self._granularity is None or not frontier:
            return frontier
        return Frontier.at((self._granularity.upto(frontier.elements[0][0]),))

    def close(self) -> None:
        """Follow no more and finish the sink; may be repeated."""
        if not self.closed:
            self.closed = True
            if self.advance in self.db.followers:
                self.db.followers.remove(self.advance)
            self.sink.close()

    def __enter__(self) -> Drain:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def drain(output: Output, sink: Sink, *, granularity: int | None = None) -> Drain:
    """Lead an answer into a sink, from what it holds now on; its changes are nobody else's then."""
    if granularity is not None and output.db.config.coordinates != 1:
        raise ProgramError("granularity is for times of one coordinate")
    held = None if granularity is None else EpochGranularity(granularity)
    return Drain(output.db, lambda: take_changes(output), output.frontier, sink, held)


def take_changes(output: Output) -> Changes:
    """What has changed, if there is an answer now."""
    error = output.error()
    if error is not None:
        raise error
    if output.ended:
        raise Closed(f"output {output.name} has ended")
    return output.take_changes()
