"""An interest: one client's subscription to an answer, and its unread changes.

    interest.take()     all changes since the last call, up to the closed time

An answer pushes each block of changes to all its interests as a reference with a range, which costs about a microsecond
per interest. An interest that is not read copies its ranges after `MAX_SHARED_BLOCKS` blocks. Above a limit it
consolidates them: rows that came and went cancel, and the rest takes the time of the last change. The unread changes of
an interest are therefore bounded by the size of the answer.

`GranularInterest` delays changes to the next full interval; `SinkInterest` reads an interest on behalf of a sink.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.count_limits import counts_as_int64
from kpg.columns.exact_diffs import sum_of
from kpg.columns.pause_points import aside
from kpg.columns.schema import Schema
from kpg.columns.selection import slice_updates
from kpg.columns.table_rows import decode, decode_rows
from kpg.columns.updates import Ints, Updates, concatenate, constant, no_updates, spread
from kpg.errors import Closed, KpgError, OverLimit
from kpg.observe.drain import Drain
from kpg.observe.granularity import ClockGranularity
from kpg.query.ir.program import RelationColumn
from kpg.service.limits import Limits

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Output

UnreadRange: TypeAlias = tuple[Updates, int, int]  # a block of changes, and the part of it that is meant

MAX_SHARED_BLOCKS = 64  # unread blocks kept by reference: a reference to one range keeps the whole block in memory


@dataclass(frozen=True, slots=True)
class AnswerChanges:
    """Changes of an answer: iterate for (row, time, diff), or read them as tables.

    `upto`: all changes at times before it are in this object or were taken before.
    """

    updates: Updates
    schema: Schema  # without columns if the answer is only whether something holds
    db: Database
    upto: int

    def __len__(self) -> int:
        return len(self.updates)

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], int, int]]:
        return zip(self.rows(), self.times.tolist(), self.diffs.tolist(), strict=True)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples, in the order of `times` and `diffs`."""
        return decode_rows(self.schema, self.updates.data[: self.schema.width], self.db.symbols)

    @property
    def times(self) -> Ints:
        """The time of each row."""
        times: Ints = spread(self.updates.times, len(self.updates))[0]
        return times

    @property
    def diffs(self) -> Ints:
        """The change of each row's count: positive for insertions, negative for removals."""
        diffs: Ints = spread(self.updates.diffs, len(self.updates))[0]
        return diffs

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table."""
        data = self.updates.data[: self.schema.width]
        return decode(self.schema, aside(data.size, np.ascontiguousarray, data), self.db.symbols)

    def to_arrow(self) -> pa.Table:
        """Return the rows with columns `_time` and `_diff`."""
        n = len(self.updates)
        table = self.table if len(self.schema) else pa.table({})
        diffs = counts_as_int64("the answer", self.schema, self.updates.data, self.diffs, self.db.symbols)
        time_and_diff = {"_time": pa.array(self.times), "_diff": pa.array(diffs)}
        assert all(len(column) == n for column in time_and_diff.values())
        return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **time_and_diff})


class Interest:
    """A subscription, created by `Service.interest`."""

    def __init__(
        self,
        db: Database,
        number: int,
        name: str,
        columns: tuple[RelationColumn, ...],
        schema: Schema,
        owner: Any,
        limits: Limits,
    ) -> None:
        self.id = number
        self.name = name
        self.owner = owner
        self.tenant: str | None = None  # with whose rights it reads; None may read everything
        self.ended = False
        self.sharing = ""
        self.asked = -1  # the epoch of the last change of its arguments, if it shares a dataflow with other tenants
        self.has_own_errors = False  # whether it may have an error although its answer has none
        self.exceeded_limit = False  # whether its arguments made a dataflow that tenants share exceed a limit
        self.answer_error: Callable[[], Exception | None] = no_error  # set by the dataflow that serves it
        self.shown: Callable[[Exception], Exception] = unchanged  # an error as its tenant may see it
        self.before_take: Callable[[], None] = do_nothing
        self.on_news: Callable[[Interest], None] | None = None  # called when it may have changes or an error
        self._ready: Callable[[], bool] = always
        self._wait_ready: Callable[[], None] | None = None
        self._output: Output | None = None
        self._db = db
        self._columns = columns
        self._schema = schema
        self._limits = limits
        self._consolidation_limit = limits.waiting_rows
        self._lanes = max(1, schema.width)
        self._max_rows = sys.maxsize if limits.rows is None else limits.rows
        self._unread: list[UnreadRange] = []
        self._unread_rows = 0
        self._answer_rows = 0  # the size of the answer, as the sum of all changes pushed
        self._refusal: KpgError | None = None
        db.holders.add(self)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The names and kinds of the columns."""
        return tuple((column.name, column.kind) for column in self._columns)

    def follow(self, output: Output, ready: Callable[[], bool], wait_ready: Callable[[], None] | None = None) -> None:
        """Set the output that the changes come from, and the function that tells whether its first rows are here.

        `wait_ready` waits for the first rows, if the answer can be complete before they are here.
        """
        self._output, self._ready, self._wait_ready = output, ready, wait_ready
        self._tell_news()

    def _tell_news(self) -> None:
        if self.on_news is not None:
            self.on_news(self)

    @property
    def answer(self) -> Output | None:
        """The answer that it follows; None if there is none any more, or if only the interest knows its errors."""
        return None if self.has_own_errors else self._output

    @property
    def has_left(self) -> bool:
        """Whether it has left its answer for good: it only has an error."""
        return self._refusal is not None and self._output is None

    @property
    def is_idle(self) -> bool:
        """Whether it has neither changes, delayed ones included, nor an error."""
        return self.waiting == 0 and self.due_in is None and self.error is None

    @property
    def dataflow(self) -> str:
        """The name of the dataflow that computes the answer; empty if there is none any more."""
        return "" if self._output is None else self._output.name

    @property
    def ready(self) -> bool:
        """Whether its first rows have arrived, if there are any."""
        return self._ready()

    @property
    def upto(self) -> int:
        """The first time that the answer has not completed: all changes at times before it have arrived."""
        if self._output is None or self._output.ended or not self._db.answers_lag:
            return self._db.epoch
        complete = self._output.complete_through
        return 0 if complete is None else complete + 1

    def _catch_up(self) -> None:
        """Wait until the changes include the rows for all arguments, and the last write of the same session."""
        output = None
        while output is not self._output:  # one that fails may be replaced meanwhile
            output = self._output
            if output is not None and self._may_lag(output):
                output.catch_up(self.asked)
        if output is not None and self._may_lag(output):
            output.notify()
            self._ready()
        if self._wait_ready is not None and self.error is None:
            self._wait_ready()

    def _settled_error(self) -> Exception | None:
        """Wait for the changes, and return the error of the answer; again if the error has replaced the dataflow."""
        while True:
            output = self._output
            self._catch_up()
            error = self.error
            if output is self._output:
                return error

    @property
    def can_take(self) -> bool:
        """Whether `take` need not wait for a dataflow that has replaced a failed one, or for the first rows."""
        if self._output is None or not self._may_lag(self._output):
            return True
        return self._output.answered and (self._wait_ready is None or self._ready())

    def _may_lag(self, output: Output) -> bool:
        return not output.ended and self._db.answers_lag and self._db.epoch > 0

    @property
    def waiting(self) -> int:
        """The number of unread changes."""
        return self._unread_rows

    @property
    def unread_bytes(self) -> int:
        """The approximate memory of the unread changes."""
        return self.waiting * (self._lanes + 2) * np.dtype(np.int64).itemsize  # two more: time and diff

    @property
    def due_in(self) -> float | None:
        """The seconds until delayed changes can be taken; None if there are none."""
        return None

    @property
    def error(self) -> Exception | None:
        """The error that `take` would raise now, if any, with all that it says."""
        return self._refusal or self.answer_error()

    def release_delayed(self) -> None:
        """Make delayed changes available without waiting for their interval to end."""

    def push(self, updates: Updates, start: int, end: int, growth: int) -> None:
        """Receive the changes in a range of a block, which grow the answer by `growth` rows."""
        if self._refusal is not None:
            return
        self._answer_rows += growth
        if self._answer_rows > self._max_rows:
            self._refuse()
            return
        self._unread.append((updates, start, end))
        self._unread_rows += end - start
        if self.on_news is not None:
            self.on_news(self)
        if len(self._unread) > MAX_SHARED_BLOCKS or self._unread_rows > self._consolidation_limit:
            is_whole = len(self._unread) == 1 and end - start == len(updates)
            if is_whole and updates.times.shape[1] == 1:  # the rows of one time: there is nothing to sum or release
                self._consolidation_limit = max(self._consolidation_limit, 2 * self._unread_rows)
            else:
                self._compact_unread()

    def push_block(self, updates: Updates) -> None:
        """Receive all changes of a block."""
        if len(updates):
            self.push(updates, 0, len(updates), sum_of(spread(updates.diffs, len(updates))))

    def _refuse(self) -> None:
        try:
            self._limits.check_rows(self.name, self._answer_rows)
        except OverLimit as error:
            self.refuse(error)

    def refuse(self, error: KpgError) -> None:
        """Discard unread changes, and raise an error on each further read."""
        self._refusal = error
        self._unread, self._unread_rows = [], 0
        self._tell_news()

    def leave_answer(self, error: KpgError) -> None:
        """Raise an error on each further read, and depend on no answer any more."""
        self.refuse(error)
        self.before_take, self._ready, self._wait_ready, self._output = do_nothing, always, None, None

    def _compact_unread(self) -> None:
        """Copy the unread ranges, which releases their blocks, and consolidate them if they exceed the limit."""
        copy = self._copy_unread()
        if self._unread_rows > self._consolidation_limit:
            copy = consolidate(Updates(copy.data, constant((int(copy.times.max()),)), copy.diffs))
            # Doubling makes the cost of consolidation linear in the number of changes.
            self._consolidation_limit = max(self._limits.waiting_rows, 2 * len(copy))
        self._unread, self._unread_rows = [(copy, 0, len(copy))] if len(copy) else [], len(copy)

    def _copy_unread(self) -> Updates:
        """Return the unread changes as one block without the lanes of tokens."""
        return self._copy(self._unread)

    def _copy(self, ranges: list[UnreadRange]) -> Updates:
        if not ranges:
            return no_updates(self._lanes, 1)
        parts = [last_lanes(updates, start, end, self._lanes) for updates, start, end in ranges]
        return parts[0] if len(parts) == 1 else aside(sum(part.data.size for part in parts), concatenate, parts)

    def take(self, wait: bool = True) -> AnswerChanges:
        """Return all changes since the last call, each (row, time) once, earlier times first.

        Without `wait`, return those that have arrived: the caller knows that it need not wait for the answer.
        """
        if self.ended:
            raise Closed(f"the interest in {self.name} has ended")
        if wait:
            self.before_take()
        elif self._output is not None and self._may_lag(self._output):
            self._output.notify()  # so that all changes before `upto` are here
        if (error := self._settled_error() if wait else self.error) is not None:
            raise self.shown(error)
        ranges, upto = self._unread, self.upto
        self._unread, self._unread_rows, self._consolidation_limit = [], 0, self._limits.waiting_rows
        try:
            with self._db.in_turns():  # others may run meanwhile, and push later changes
                updates = self._copy(ranges)
        except BaseException:
            self._put_back(ranges)
            raise
        return AnswerChanges(updates, self._schema, self._db, upto)

    def put_back(self, changes: AnswerChanges) -> None:
        """Make changes that were taken unread again: they did not reach their reader. Later ones follow them."""
        if len(changes):
            self._put_back([(changes.updates, 0, len(changes))])

    def _put_back(self, ranges: list[UnreadRange]) -> None:
        if not self.ended and self._refusal is None:
            self._unread[:0] = ranges
            self._unread_rows += sum(end - start for _, start, end in ranges)
            self._tell_news()

    def unread(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the unread changes, so that the db keeps the symbols in them."""
        if self._unread and len(self._schema):
            yield self._schema, self._copy_unread()

    def end(self) -> None:
        """Discard unread changes and refuse further reads."""
        self.ended = True
        self._unread, self._unread_rows = [], 0
        self.answer_error, self.before_take, self.shown = no_error, do_nothing, unchanged  # they refer to this interest
        self._ready, self._wait_ready, self.on_news = always, None, None

    def __repr__(self) -> str:
        return f"Interest({self.id}, {self.name!r}, owner={self.owner!r})"


def last_lanes(updates: Updates, start: int, end: int, lanes: int) -> Updates:
    """Return a range of a block, and only its last lanes: the rows of tenants begin with a token."""
    if lanes != updates.lanes:
        updates = Updates(updates.data[updates.lanes - lanes :], updates.times, updates.diffs)
    return slice_updates(updates, start, end)


class GranularInterest(Interest):
    """An interest that delays changes to the end of an interval and consolidates them there."""

    def __init__(self, granularity: ClockGranularity, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._delayed = granularity

    @property
    def due_in(self) -> float | None:
        return self._delayed.due_in

    @property
    def waiting(self) -> int:
        self._push_due(self._delayed.take())
        return self._unread_rows

    def push(self, updates: Updates, start: int, end: int, growth: int) -> None:
        self._delayed.push(last_lanes(updates, start, end, self._lanes))
        self._tell_news()

    def take(self, wait: bool = True) -> AnswerChanges:
        if not self.ended:
            if wait:
                self.before_take()
            self._push_due(self._delayed.take())
        return super().take(wait)

    def unread(self) -> Iterator[tuple[Schema, Updates]]:
        yield from super().unread()
        if len(self._schema):
            yield from ((self._schema, updates) for updates in self._delayed.parts())

    def release_delayed(self) -> None:
        self._push_due(self._delayed.take_all())

    def _push_due(self, due: list[Updates]) -> None:
        for updates in due:
            n = len(updates)
            super().push(updates, 0, n, sum_of(spread(updates.diffs, n)))


class SinkInterest:
    """An interest as a drain (kpg.observe.drain) reads it: changes, and the frontier up to which they are complete."""

    def __init__(self, interest: Interest, output: Output) -> None:
        self._interest = interest
        self._output = output
        self.drain: Drain | None = None
        self._answer_error, interest.answer_error = interest.answer_error, self.error
        interest.has_own_errors = True

    def error(self) -> Exception | None:
        """Return why the drain ended or the answer has no value now, if so; a reader of the interest gets it."""
        ended = None if self.drain is None else self.drain.failure
        return ended or self._answer_error()

    def take(self) -> AnswerChanges:
        """Take the changes; all of them, delayed ones included, if the answer is complete."""
        if not self._output.frontier():
            self._interest.release_delayed()
        self._interest.asked = -1  # a drain gets rows when they are complete, and others do not wait for it
        return self._interest.take()

    def frontier(self) -> Frontier | None:
        """Return the frontier up to which all changes were taken; None while some are delayed."""
        return None if self._interest.due_in is not None else self._output.frontier()


def always() -> bool:
    """Return that the first rows are there."""
    return True


def no_error() -> None:
    """Return no error."""


def unchanged(error: Exception) -> Exception:
    """Return an error with all that it says."""
    return error


def do_nothing() -> None:
    """Prepare nothing before changes are taken."""
