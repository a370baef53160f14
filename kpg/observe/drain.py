"""A drain passes the changes of an answer to a sink after each advance, and the frontier up to which they are complete.

    with drain(answer, LatencySink("epochs.log")): ...
    drain(answer, FileSink("changes.csv"), granularity=10)      consolidated changes at each tenth epoch

The frontier is that of the answer, over all workers. With a granularity, changes and frontier advance at the ends of
intervals only. While the answer fails (rows on which an expression fails) the sink receives nothing; the changes made
meanwhile follow when the answer recovers. A drain ends with its answer or its db, when it is closed, when the sink
cannot write, or when the answer has failed permanently. Then `failure` holds the reason, and the db continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kpg.algebra.frontier import Frontier
from kpg.api.changes import Changes
from kpg.errors import Closed, DataError, KpgError, ProgramError
from kpg.observe.granularity import EpochGranularity
from kpg.observe.sinks import Sink

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Output
    from kpg.columns.schema import Schema
    from kpg.columns.updates import Updates


class Drain:
    """Passes changes to a sink; `take` returns the changes, `frontier` their completeness (None: unknown)."""

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
        self.failure: KpgError | None = None  # the reason if it ended because of an error
        self._take = take
        self._frontier = frontier
        self._granularity = granularity
        self._announced: Frontier | None = None
        self._schema: Schema | None = None  # of the delayed changes
        db.holders.add(self)
        db.followers.append(self.advance)
        if db.sealed is not None:
            self.advance()

    def advance(self) -> None:
        """Pass the changes to the sink, then the frontier; an error ends only this drain."""
        try:
            self._pass_on(self._take(), self._frontier())
        except DataError:
            return  # the answer has no value now
        except KpgError as error:
            self.failure = None if isinstance(error, Closed) else error
            self.close()

    def _pass_on(self, changes: Any, frontier: Frontier | None) -> None:
        if frontier is None:
            self._write(changes)
            return
        for due in self._due(changes, frontier):
            self._write(due)
        complete = self._complete(frontier)
        if complete != self._announced:
            self._announced = complete
            self.sink.advance(complete)

    def _write(self, changes: Any) -> None:
        if len(changes):
            self.sink.take(changes)

    def _due(self, changes: Any, frontier: Frontier) -> list[Any]:
        if self._granularity is None:
            return [changes]
        self._schema = changes.schema
        self._granularity.push(changes.updates)
        due = self._granularity.take(frontier.elements[0][0] if frontier else None)
        return [Changes(updates, changes.schema, self.db) for updates in due]

    def _complete(self, frontier: Frontier) -> Frontier:
        if self._granularity is None or not frontier:
            return frontier
        return Frontier.at((self._granularity.upto(frontier.elements[0][0]),))

    def unread(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the delayed changes, so that the db keeps the symbols in them."""
        if self._granularity is not None and self._schema is not None and not self.closed:
            yield from ((self._schema, updates) for updates in self._granularity.parts())

    def close(self) -> None:
        """Stop, and close the sink; repeating it has no effect."""
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
    """Pass an output's rows and changes to a sink. The output's changes can then not be taken elsewhere."""
    if granularity is not None and output.db.config.coordinates != 1:
        raise ProgramError("granularity needs times of one coordinate", hint="Leave out granularity=.")
    delayed = None if granularity is None else EpochGranularity(granularity)
    return Drain(output.db, lambda: take_changes(output), output.frontier, sink, delayed)


def take_changes(output: Output) -> Changes:
    """Take the changes of an output; raise if the answer fails or has ended."""
    error = output.error()
    if error is not None:
        raise error
    if output.ended:
        raise Closed(f"output {output.name} has ended")
    return output.take_changes()
