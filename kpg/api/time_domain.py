"""Sources that advance independently, each through times of its own, and the db's one clock.

    readings = db.domain("readings")
    north, south = readings.source("north", value=int), readings.source("south", value=int)
    north.insert([(7,)], at=1000);  north.advance(2000)        north has no more rows before 2000
    south.insert([(9,)], at=1500);  south.advance(1600)        now all sources have passed 1600

    domain.time       =  the least time that a source has not passed
    state at epoch_of(t)  =  all rows of all sources at times at or before t        for every t before domain.time

Rows wait until every source of the domain has passed their time. Then each distinct time becomes an epoch of the db, in
order, and one advance closes them all. So an answer over several sources never shows a time that one of them may still
change. On a durable db the reached time survives a restart. Waiting rows do not: a source sends again from
`domain.time`.
Cost: that of inserting the rows, and a sort of the waiting times.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpg.columns.schema import Schema
from kpg.errors import Closed, InUse, TimeNotReached, TimeTooEarly, TypeMismatch

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Input

PROGRESS = "time of "  # prefix of the input that keeps a domain's time
MAX_KEPT_EPOCHS = 100_000  # source times whose epochs a domain remembers; reads as of earlier ones are refused


@dataclass(slots=True)
class WaitingRows:
    """Rows of a source at one of its times, not yet passed by all sources."""

    time: int
    rows: Any
    diff: int


@dataclass(slots=True)
class TimedSource:
    """A source of a domain: an input with times of its own."""

    domain: TimeDomain
    input: Input
    time: int  # no more rows will come before it
    waiting: list[WaitingRows] = field(default_factory=list)
    closed: bool = False

    @property
    def name(self) -> str:
        """The name of the source and of its input."""
        return self.input.name

    def insert(self, rows: Any, *, at: int) -> None:
        """Add rows at a time of this source."""
        self._wait(rows, at, 1)

    def remove(self, rows: Any, *, at: int) -> None:
        """Remove rows at a time of this source, each once."""
        self._wait(rows, at, -1)

    def advance(self, to: int) -> int:
        """Promise that no more rows come before `to`; return the time that all sources of the domain have passed."""
        self._check(to)
        self.time = to
        return self.domain.release()

    def close(self) -> int:
        """End the source: it no longer holds the domain back. Return the time that all other sources have passed."""
        self.closed = True
        return self.domain.release()

    def _wait(self, rows: Any, time: int, diff: int) -> None:
        self._check(time)
        self.input.check_rows(rows)
        self.waiting.append(WaitingRows(time, rows, diff))

    def _check(self, time: int) -> None:
        if self.closed:
            raise Closed(f"the source {self.name} is closed")
        if not isinstance(time, int) or isinstance(time, bool):
            raise TypeMismatch(f"{time!r} is not a time of a source", hint="Give an integer, such as milliseconds.")
        if time < self.time:
            detail = f"The source promised to have passed {self.time}."
            raise TimeTooEarly(f"{self.name} cannot go back to {time}", detail=detail)


class TimeDomain:
    """A set of sources, and the time that all of them have passed."""

    def __init__(self, db: Database, name: str, start: int) -> None:
        if db.config.coordinates != 1:
            raise TypeMismatch("a domain needs a db with a single clock", hint="Open it without coordinates=.")
        self.db = db
        self.name = name
        self.sources: dict[str, TimedSource] = {}
        self._progress = db.input(f"{PROGRESS}{name}", Schema.of({"time": int}))
        with self._progress.output(f"{PROGRESS}{name} at start") as reached:
            db.settle()
            stored = [time for (time,) in reached.rows()] if db.sealed is not None else []
        self._stored = bool(stored)
        self.time = max(stored, default=start)
        self._times: list[int] = []  # released times, ascending, and their epochs
        self._epochs: list[int] = []

    def source(self, name: str, schema: Schema | None = None, /, **columns: Any) -> TimedSource:
        """Add a source, with an input of the same name and columns; it starts at the time of the domain."""
        if name in self.sources:
            raise InUse(f"the domain {self.name} has a source {name!r} already", hint="Choose another name.")
        source = TimedSource(self, self.db.input(name, schema, **columns), self.time)
        self.sources[name] = source
        return source

    def epoch_of(self, time: int) -> int:
        """Return the epoch at which the db holds the rows of all sources at or before a time of theirs."""
        if time >= self.time:
            waiting = [source.name for source in self.sources.values() if not source.closed and source.time <= time]
            raise TimeNotReached(
                f"the domain {self.name} has not passed {time}",
                detail=f"It waits for {', '.join(waiting) or 'a source'}.",
            )
        index = bisect_right(self._times, time) - 1
        if index < 0:
            raise TimeTooEarly(f"the domain {self.name} does not know the epoch of {time}")
        return self._epochs[index]

    def release(self) -> int:
        """Insert the waiting rows that all sources have passed, and advance the db over them; return that time."""
        open_sources = [source for source in self.sources.values() if not source.closed]
        reached = min((source.time for source in open_sources), default=self._last_waiting() + 1)
        if reached <= self.time:
            return self.time
        ready = [
            (source, waiting)
            for source in self.sources.values()
            for waiting in source.waiting
            if waiting.time < reached
        ]
        times = sorted({waiting.time for _, waiting in ready})
        first = self.db.epoch
        epochs = {time: first + number for number, time in enumerate(times)}
        for source, waiting in ready:
            source.input.update_at(waiting.rows, epochs[waiting.time], waiting.diff)
        self._store(reached)
        self.db.advance_to(first + max(1, len(times)))
        for source in self.sources.values():
            source.waiting = [waiting for waiting in source.waiting if waiting.time >= reached]
        self._remember(times, list(epochs.values()))
        self.time = reached
        return reached

    def _store(self, reached: int) -> None:
        """Replace the stored time, in the transaction that is about to be closed."""
        if self._stored:
            self._progress.remove([(self.time,)])
        self._progress.insert([(reached,)])
        self._stored = True

    def _remember(self, times: list[int], epochs: list[int]) -> None:
        self._times += times
        self._epochs += epochs
        del self._times[:-MAX_KEPT_EPOCHS], self._epochs[:-MAX_KEPT_EPOCHS]

    def _last_waiting(self) -> int:
        times = [waiting.time for source in self.sources.values() for waiting in source.waiting]
        return max(times, default=self.time - 1)
