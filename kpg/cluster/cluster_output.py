"""The outputs of a db on several workers: each worker holds a shard, and sends its changes when they are complete."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.api.answer_preview import PREVIEW_ROWS, AnswerPreview
from kpg.api.changes import Changes, in_time_order
from kpg.api.contracts import Output
from kpg.api.contracts.output_contract import clock_behind
from kpg.api.explanation import Explanation
from kpg.api.pending_warning import warn_of_pending
from kpg.api.trace_reads import counted_table, first_rows_table, rows_table
from kpg.api.unread_parts import UnreadParts, split_at
from kpg.cluster.cluster_admission import numbered
from kpg.cluster.rank_commands.query_commands import (
    AddOwnerCommand,
    AdmittedLimits,
    BeginChangesCommand,
    ChangeLimitsCommand,
    DiscardChangesCommand,
    FirstRowsCommand,
    KeepTimesCommand,
    OutputFrontierCommand,
    RebuildOutputCommand,
    ReleaseOutputCommand,
    SnapshotCommand,
    TakeChangesCommand,
)
from kpg.cluster.rank_reports import output_key
from kpg.columns.rows import rows_of
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates, concatenate, no_updates
from kpg.config import CHANGES_LIMIT
from kpg.dataflow.graph import MAX_OWNERS
from kpg.errors import Closed, DataError, InputError, KpgError
from kpg.protocol.error_messages import error_of
from kpg.protocol.parts import FailureSpec

if TYPE_CHECKING:
    from kpg.api.usage_groups import UsageGroup
    from kpg.cluster.cluster_database import ClusterDatabase

UNLIMITED = 1 << 62  # more rows than any answer has


class ClusterOutput(Output):
    """An answer that the workers maintain."""

    db: ClusterDatabase
    is_remote = True

    def __init__(
        self,
        db: ClusterDatabase,
        name: str,
        schema: Schema,
        keep: bool,
        reads: frozenset[str],
        installed_by: int,
        limits: AdmittedLimits | None = None,
    ) -> None:
        self.db = db
        self.name = name
        self.schema = schema
        self.keep = keep
        self.reads = reads
        self.installed_by = installed_by
        self.reported_from = installed_by  # reports before this command are about another one of its name
        self.first_epoch = db.epoch - 1
        self._known_through = -1  # the last epoch that workers of an earlier generation have completed
        self.followed = False  # whether workers send the changes: from the first request for changes on
        self.is_held = False  # whether they send only failures, until the caller has read the rows
        self._unread = UnreadParts()
        self._unread_limit = CHANGES_LIMIT
        self._until: int | None = None  # changes at this epoch and later ones are not needed
        self._failures: dict[int, KpgError] = {}  # by worker: why the answer has no value since the last report
        self._listeners: list[Callable[[Changes], Any]] = []
        self._on_failure: Callable[[], None] | None = None
        self._circulating: tuple[int, ...] = ()
        self._limits = limits
        self._owners: deque[int] = deque(maxlen=MAX_OWNERS)  # groups that workers were told of last
        self._rebuilt = False  # whether its dataflow has been replaced, because it lagged too far
        self.is_released = False

    # Changes

    def take_changes(self) -> Changes:
        """Return all updates since the last call, together, earlier times first."""
        self._check()
        if not self.followed:
            self._follow()
        if self.db.completion.lags and self.db.epoch > 0:
            self.db.completion.newest(self)
        error = self.error()
        if error is not None and not (self.keep and isinstance(error, DataError)):  # else a read of the rows raises it
            raise error.with_traceback(None)  # it is raised again and again
        return self._drain()

    @property
    def unread_rows(self) -> int:
        return self._unread.rows

    @property
    def summed_through(self) -> int:
        return self._unread.summed_through

    def begin_reading(self, until: int | None) -> None:
        self._check()
        self._until = until
        if not self.followed:
            self._follow()

    def _bound(self) -> int | None:
        """Return the last epoch whose changes may be read; None if all may."""
        return self.db.completion.complete_through(self) if self.db.completion.lags and not self.ended else None

    def _drain(self) -> Changes:
        parts = self._unread.take(self._bound())
        self._unread_limit = CHANGES_LIMIT
        if not self._unread:
            self.db.changed.discard(self)
        changes = concatenate(parts) if parts else no_updates(self.schema.width, self.db.config.coordinates)
        return Changes(in_time_order(changes), self.schema, self.db)

    def _follow(self, hold: bool = False) -> None:
        """Fetch all changes so far; from now on workers send them, or only failures."""
        with self.db.coordinator.lock:
            replies = self.db.ask(TakeChangesCommand(self.name, hold))
            self.followed, self.is_held = True, hold
            for rank, reply in enumerate(replies):
                self.take(rank, reply.blocks[0], reply.value)

    def hold_changes(self) -> None:
        self._check()
        if not self.followed:
            self._follow(hold=True)

    def begin_changes(self, after: int) -> bool:
        self._check()
        if self.is_held:
            self.is_held = not all(reply.value for reply in self.db.ask(BeginChangesCommand(self.name, after)))
        return not self.is_held

    def skip_changes(self) -> None:
        self._check()
        if self.db.answers_lag:
            self.db.settle()
        with self.db.coordinator.lock:
            replies = self.db.ask(DiscardChangesCommand((self.name,)))
            self.followed = True
            self._unread.set([])
            self.db.changed.discard(self)
            for rank, reply in enumerate(replies):
                self.report_failure(rank, reply.value[0])

    def report_failure(self, rank: int, failure: FailureSpec | None) -> None:
        """Note why the answer has no value on a worker now, or that it has one."""
        had_ended = self.ended
        self._failures.pop(rank, None)
        if failure is not None:
            self._failures[rank] = error_of(failure)
        if self._on_failure is not None and self.ended and not had_ended:
            self.db.failed.add(self)

    @property
    def circulating(self) -> tuple[int, ...]:
        return self._circulating

    def note_circulating(self, values: tuple[int, ...]) -> None:
        """Keep the values that circulated on the worker that failed."""
        self._circulating = values

    def take(self, rank: int, part: Updates, failure: FailureSpec | None) -> None:
        """Keep changes that a worker sent until they are read; sum them when they are too many."""
        self.report_failure(rank, failure)
        for needed in [part] if self._until is None else split_at([part], self._until - 1)[0]:
            if len(needed):
                self._unread.add(needed)
                self.db.changed.add(self)
        if self._unread.rows > self._unread_limit:  # later epochs may be computed again, if a worker is lost
            self._unread.sum_through(self._bound())
            self._unread_limit = max(CHANGES_LIMIT, 2 * self._unread.rows)

    def on_change(self, function: Callable[[Changes], Any]) -> Callable[[], None]:
        self._check()
        self._listeners.append(function)
        self.db.outputs.hold(self)
        if not self.followed:
            self._follow()

        def stop() -> None:
            self._listeners.remove(function)
            if not self._listeners:
                self.db.outputs.let_go(self)

        return stop

    def notify(self) -> None:
        """Pass the unread changes of completed times to the listeners, if there are both."""
        if not (self._listeners and self._unread):
            return
        bound = self._bound()
        if bound is None or self._unread.has_some(bound):
            changes = self._drain()
            for listener in tuple(self._listeners):
                listener(changes)

    def capture(self, path: str | PathLike[str]) -> NoReturn:
        """Raise: only answers of this process can be captured."""
        raise InputError(
            "an answer of workers cannot be captured to a file yet",
            hint="Follow it with on_change(), or take_changes().",
        )

    # Reading

    def read_rows(self, as_of: Any, counts: bool) -> pa.Table:
        self._check_kept()
        warn_of_pending(self, as_of)
        if self.db.in_request:
            rows, _ = self.db.reads.rows_in_parts(self.name, UNLIMITED, self, as_of)
        else:
            rows = self.db.reads.rows(SnapshotCommand(self.name), self, as_of)
        with self.db.in_turns():
            if counts:
                return counted_table(self.db, self.name, self.schema, rows.data, rows.diffs[0])
            return rows_table(self.db, self.name, self.schema, rows.data, rows.diffs[0])

    def read_first_rows(self, size: int, as_of: Any) -> tuple[pa.Table, int]:
        self._check_kept()
        warn_of_pending(self, as_of)
        if self.db.in_request:
            rows, total = self.db.reads.rows_in_parts(self.name, size, self, as_of)
        else:
            rows, total = self.db.reads.first_rows(FirstRowsCommand(self.name, size), self, as_of)
        with self.db.in_turns():
            return first_rows_table(self.db, self.name, self.schema, rows.data, rows.diffs[0], size), total

    def lanes(self, as_of: int | None = None) -> Updates:
        self._check()
        epoch = self.complete_through if as_of is None else as_of
        if self.db.in_request:
            return self.db.reads.rows_in_parts(self.name, UNLIMITED, self, epoch, failing=True)[0]
        return self.db.reads.rows(SnapshotCommand(self.name, failing=True), self, epoch)

    def look_up(self, keys: tuple[str, ...], rows: Any, as_of: Any = None) -> Callable[[], pa.Table] | None:
        self._check()
        return self.db.reads.indexed_rows("output", self, keys, rows, as_of)

    def preview(self, size: int = PREVIEW_ROWS) -> AnswerPreview:
        """Return the first rows as of the last complete time."""
        time = self.complete_through
        table = self.read_rows(time, counts=True)
        rows = rows_of(table.slice(0, size))
        counts = [row[-1] for row in rows]
        shown = "nothing" if time is None else str(time)
        return AnswerPreview(self.schema.names, [row[:-1] for row in rows], counts, table.num_rows, shown)

    def rows(self, as_of: Any = None) -> list[tuple[Any, ...]]:
        """Return the rows as of a time as tuples, sorted by their values: shards have no common order."""
        rows = rows_of(self.snapshot(as_of), self.schema)
        if self.order:
            return rows
        return sorted(rows, key=lambda row: tuple((value is not None, value) for value in row))

    def frontier(self) -> Frontier:
        self._check()
        frontier = self.db.frontier_of(OutputFrontierCommand(self.name))
        if not self.db.completion.lags or self.db.config.coordinates != 1:
            return frontier
        complete = self.db.completion.complete_through(self)  # changes before it have arrived
        return frontier if not frontier and complete >= self.db.epoch - 1 else Frontier.at((complete + 1,))

    @property
    def report_key(self) -> str:
        """Its key in the reports of workers."""
        return output_key(self.name)

    @property
    def complete_through(self) -> int | None:
        """The last epoch that the answer has completed on all workers."""
        if self.db.config.coordinates != 1 or self.db.epoch <= 0:
            return None
        if not self.db.completion.lags:
            return self.db.epoch - 1
        epoch = max(self._known_through, self.db.completion.complete_through(self))
        return epoch if epoch >= 0 else None

    @property
    def answered(self) -> bool:
        complete = self.complete_through if not self.ended else None
        return self.ended or (-1 if complete is None else complete) >= self.first_epoch

    def catch_up(self, asked: int = -1) -> None:
        self.db.completion.newest(self, asked)

    def wait(self, time: Any = None) -> None:
        self._check()
        if not self.db.completion.lags or self.db.config.coordinates != 1:
            self.db.settle()
            return
        epoch = self.db.epoch - 1 if time is None else self.db.as_time(time)[0]
        if epoch >= self.db.epoch:
            raise clock_behind(self, epoch)
        self.db.completion.wait_for(self, epoch)
        self._check()
        error = self.error()
        if error is not None and not isinstance(error, DataError):
            raise error.with_traceback(None)  # it is raised again and again

    def begin_generation(self) -> int:
        """Drop the changes that new workers send again; return the epoch through which they need not."""
        bound = self._bound()
        if bound is not None:
            self._known_through = max(self._known_through, bound)
            self._unread.set(self._unread.take(self._known_through))
        return self._known_through

    def note_install(self, number: int) -> None:
        """Note that a command has installed it again, on new workers: they know nothing of the output besides."""
        self.installed_by, self.reported_from = number, -1  # no report of the workers before them is left
        self._owners.clear()

    def rebuild(self) -> bool:
        """Make all workers replace its dataflow by one that begins with the current rows; return whether they can.

        They can once, if no other query reads it, and if it keeps its rows or was not read yet.
        """
        if self._rebuilt or (self.followed and not self.keep):
            return False
        with self.db.coordinator.lock:
            self._rebuilt = all(reply.value for reply in self.db.ask(RebuildOutputCommand(self.name)))
            if self._rebuilt:
                self._known_through = max(self._known_through, self.db.completion.complete_through(self))
                self.first_epoch = self.db.epoch - 1
                self.installed_by = self.db.completion.note_install()
        return self._rebuilt

    @property
    def ended(self) -> bool:
        error = self.error()
        return self.is_released or (error is not None and not isinstance(error, DataError))

    @property
    def dropped(self) -> bool:
        """Whether it has ended."""
        return self.ended

    def on_failure(self, function: Callable[[], None]) -> None:
        self._on_failure = function
        self.db.completion.watched.add(self.name)
        if self.ended:
            self.db.failed.add(self)

    def keep_times_apart(self) -> None:
        self.db.tell_output(self, KeepTimesCommand(self.name))

    def share_limits(self, tenants: int, asking: int = 0, asked_at: int = -1) -> None:
        self._change_limits(tenants=max(1, tenants), asking=asking, asked_at=asked_at)

    def take_limits(self, other: Output) -> None:
        if isinstance(other, ClusterOutput) and other._limits is not None:
            self._change_limits(query=other._limits.query, groups=())

    def stay_in_groups(self, groups: Sequence[UsageGroup]) -> None:
        if self._limits is not None:
            numbers = {group.number for group in groups}
            self._change_limits(groups=tuple(group for group in self._limits.groups if group.number in numbers))

    def add_owner(self) -> None:
        group = None if self.db.admission is None else self.db.admission.sharing_group
        if group is None or group.number in self._owners:
            return
        self._owners.append(group.number)
        if self._limits is None or numbered(group) not in self._limits.groups:
            self.db.tell_output(self, AddOwnerCommand(self.name, numbered(group)))

    def _change_limits(self, **members: Any) -> None:
        if self._limits is not None and (limits := replace(self._limits, **members)) != self._limits:
            self._limits = limits
            self.db.tell_output(self, ChangeLimitsCommand(self.name, limits))

    def fail(self) -> None:
        """Call the function that waits for a failure."""
        if self._on_failure is not None:
            self._on_failure()

    def error(self) -> KpgError | None:
        """Return why the answer has no value since the last advance; None if its changes are not followed."""
        return next(iter(self._failures.values()), None)

    def explain(self) -> Explanation:
        self._check()
        return self.db.explain_workers(self.name)

    # Life

    def _check_kept(self) -> None:
        """Raise if the output keeps no rows to read."""
        self._check()
        if not self.keep:
            raise InputError(f"output {self.name} keeps nothing to read", hint="Install it without keep=False.")

    def _check(self) -> None:
        self.db.check()
        if self.is_released:
            raise Closed(f"output {self.name} was released")

    def release(self) -> None:
        if not self.is_released:
            self.is_released = True
            self.db.outputs.remove(self)
            self.db.changed.discard(self)
            self.db.failed.discard(self)
            self.db.completion.watched.discard(self.name)
            self.db.release_on_workers(ReleaseOutputCommand(self.name))
