"""The outputs and probes of a db in this process.

    answer = collection.output("answer")
    answer.snapshot(as_of=t)      an Arrow table of the rows at a time
    answer.changes()              each (row, time, diff) since changes were last read
    answer.on_change(f)           f(changes) after each advance that changed the answer

An output owns its dataflow: `release()` drops it and everything it holds. Reading a snapshot costs the rows of the
trace; reading changes costs the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.api.answer_preview import PREVIEW_ROWS, AnswerPreview
from kpg.api.changes import Changes
from kpg.api.contracts import Output, Probe
from kpg.api.contracts.output_contract import clock_behind
from kpg.api.explanation import Explanation
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.api.ordered_read import OrderedRead
from kpg.api.pending_warning import warn_of_pending
from kpg.api.shared_indexes import OutputIndexes, indexed_rows
from kpg.api.times import show_time
from kpg.api.trace_reads import (
    check_errors,
    check_readable,
    first_rows_table,
    read_first_rows,
    read_rows,
    to_counted_table,
    to_table,
)
from kpg.api.unread_changes import UnreadChanges
from kpg.api.usage_guard import LimitedUsage
from kpg.columns.consolidation import consolidate_all
from kpg.columns.schema import Schema
from kpg.columns.table_rows import decode_rows, encode
from kpg.columns.updates import Updates, constant
from kpg.dataflow.graph import Dataflow
from kpg.errors import Closed, DataError, InputError, KpgError
from kpg.operators.deliver_updates import DeliverUpdates
from kpg.operators.import_arrangement import advance_batch

if TYPE_CHECKING:
    from kpg.api.capture import Capture
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.usage_groups import UsageGroup
    from kpg.plan.nodes import PlanNode


class EmbeddedOutput(Output):
    """An answer that a dataflow of this process maintains."""

    db: EmbeddedDatabase

    def __init__(
        self,
        db: EmbeddedDatabase,
        name: str,
        dataflow: Dataflow,
        changes: UnreadChanges,
        installed: InstalledArrangement | None,  # None: the output keeps no rows to read
        errors: InstalledArrangement | None,
        reads: frozenset[str],
    ) -> None:
        self.db = db
        self.name = name
        self.schema: Schema = changes.schema
        self.captures: list[Capture] = []
        self.node: PlanNode | None = None  # its plan, to rebuild it
        self._rebuilt = False
        self._dataflow = dataflow
        self._changes = changes
        self._installed = installed
        self._errors = errors
        self._listeners: list[Callable[[Changes], Any]] = []
        self._indexes: OutputIndexes | None = None
        self._released = False
        changes.trace = None if installed is None else installed.handle
        self.reads = reads

    # Changes

    def take_changes(self) -> Changes:
        self._check()
        if not self.db.completion.lags:
            self.db.settle()
        elif self.db.config.coordinates == 1 and self.db.epoch > 0:
            self.db.completion.newest(self._dataflow)
        error = self.changes_error()
        if error is not None:
            raise error.with_traceback(None)  # it is raised again and again
        with self.db.uninterrupted():  # changes are removed before they are sorted
            return self.drain()

    def changes_error(self) -> KpgError | None:
        """Return the reason why changes cannot be read now; an output that keeps rows tells it when they are read."""
        return self.error() if self._installed is None else self._dataflow.failure

    def drain(self) -> Changes:
        """Return all updates of completed times since the last call, also while the answer has no value."""
        through = self._lag_bound() if self.db.completion.lags else None
        changes = Changes(self._changes.drain(through), self.schema, self.db)
        if through is None or not self._changes:
            self.db.changed.discard(self)
        return changes

    def _lag_bound(self) -> int | None:
        """Return the last epoch whose changes may be read; None if all may."""
        if not self.db.completion.lags or self.db.config.coordinates != 1:
            return None
        return self.db.completion.complete_through(self._dataflow)

    @property
    def unread_rows(self) -> int:
        return self._changes.rows

    @property
    def summed_through(self) -> int:
        return self._changes.summed_through

    def begin_reading(self, until: int | None) -> None:
        self._check()
        self._changes.until = until

    def on_change(self, function: Callable[[Changes], Any]) -> Callable[[], None]:
        self._check()
        if not self._listeners:
            self._changes.taps.append(self._mark_changed)
        self._listeners.append(function)
        self.db.outputs.hold(self)
        if self._changes:
            self.db.changed.add(self)

        def stop() -> None:
            if function not in self._listeners:
                return  # the output was released
            self._listeners.remove(function)
            if not self._listeners:
                self._changes.taps.remove(self._mark_changed)
                self.db.outputs.let_go(self)

        return stop

    def _mark_changed(self, updates: Updates) -> None:
        self.db.changed.add(self)

    @property
    def has_news(self) -> bool:
        """Whether there are listeners, and unread changes of completed times."""
        if not (self._listeners and self._changes) or self._changes.is_held:
            return False
        bound = self._lag_bound()
        return bound is None or self._changes.has_some(bound)

    def notify(self) -> None:
        """Pass the unread changes of completed times to the listeners, if there are both."""
        if self.has_news:
            changes = self.drain()
            for listener in tuple(self._listeners):
                listener(changes)

    def keep_times_apart(self) -> None:
        self._changes.keep_times_apart()

    def hold_changes(self) -> None:
        self._check()
        self._changes.is_held = self._installed is not None and not self._changes.was_read

    def begin_changes(self, after: int) -> bool:
        self._check()
        return not self._changes.is_held or self._changes.begin(after)

    def skip_changes(self) -> None:
        self._check()
        self.db.settle()
        self.drain()

    def unread(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the unread changes that no trace holds, with the columns of their lanes."""
        return self._changes.kept_rows()

    # Captures

    def capture(self, path: str | PathLike[str]) -> Capture:
        from kpg.api.capture import Capture

        self._check()
        return Capture(self, path)

    def start_capture(self, capture: Capture) -> None:
        """Pass all later changes to a capture too."""
        self.captures.append(capture)
        self.db.captures.append(capture)
        self._changes.taps.append(capture.take)

    def end_capture(self, capture: Capture) -> None:
        """Pass no more changes to a capture; may be repeated."""
        if capture in self.captures:
            self.captures.remove(capture)
            self.db.captures.remove(capture)
            self._changes.taps.remove(capture.take)

    def in_reading_order(self, updates: Updates) -> Updates:
        """Return updates of the dataflow with the columns in the order of `schema`."""
        return self._changes.in_reading_order(updates)

    def contents(self) -> list[Updates]:
        """Return all updates so far, at the times that can still be distinguished."""
        if self.db.completion.lags:
            self.db.worker.run_dataflow(self._dataflow)  # so that the trace holds exactly the delivered changes
        else:
            self.db.settle()
        installed = self._installed
        if installed is None and self._changes.was_read:
            raise InputError(
                f"output {self.name} keeps nothing, and some of its changes were read already",
                hint="Capture it before its changes are read, or install it without keep=False.",
            )
        parts = self._changes.parts()
        if installed is not None:
            since = installed.handle.since
            parts = [advance_batch(batch, since).updates for batch in installed.handle.batches(None)]
        return [self.in_reading_order(part) for part in parts]

    # Reading

    def read_rows(self, as_of: Any, counts: bool) -> pa.Table:
        installed = self.readable()
        warn_of_pending(self, as_of)
        time = check_readable(self.db, installed, as_of)
        with self.db.in_turns():  # a request may have been left above already, so its caller expects it
            if counts:
                return to_counted_table(self.db, installed, self.schema, time)
            return to_table(self.db, installed, self.schema, time, None)

    def read_first_rows(self, size: int, as_of: Any) -> tuple[pa.Table, int]:
        installed = self.readable()
        warn_of_pending(self, as_of)
        time = check_readable(self.db, installed, as_of)
        with self.db.in_turns():
            data, counts, total = read_first_rows(installed, self.schema, time, size)
            return first_rows_table(self.db, installed.name, self.schema, data, counts, size), total

    def preview(self, size: int = PREVIEW_ROWS) -> AnswerPreview:
        if self.order:
            return OrderedRead(self, self.order).preview(size)
        installed = self.readable()
        time = check_readable(self.db, installed, None)
        data, counts = read_rows(installed, self.schema, time, None)
        rows = decode_rows(self.schema, np.ascontiguousarray(data[:, :size]), self.db.symbols)
        return AnswerPreview(self.schema.names, rows, counts[:size].tolist(), len(counts), show_time(time))

    def lanes(self, as_of: int | None = None) -> Updates:
        epoch, installed = self.complete_through if as_of is None else as_of, self.readable()
        assert epoch is not None
        time = check_readable(self.db, installed, epoch, failing=True)
        with self.db.in_turns():
            data, counts = read_rows(installed, self.schema, time, None)
            return Updates(np.ascontiguousarray(data), constant(time), counts.reshape(1, -1))

    def look_up(self, keys: tuple[str, ...], rows: Any, as_of: Any = None) -> Callable[[], pa.Table] | None:
        data = encode(self.schema.select(keys), rows, self.db.symbols)
        return indexed_rows(self.db, self.indexes, self.schema, keys, data, as_of)

    @property
    def indexes(self) -> OutputIndexes:
        """The indexes that queries on this answer share."""
        if self._indexes is None:
            self._indexes = OutputIndexes(self)
        return self._indexes

    @property
    def dataflow(self) -> Dataflow:
        """The dataflow that maintains the answer."""
        return self._dataflow

    def readable(self) -> InstalledArrangement:
        """Return the arrangement to read from; raise if the output keeps none."""
        self._check()
        if self._installed is None:
            raise InputError(f"output {self.name} keeps nothing to read", hint="Install it without keep=False.")
        return self._installed

    def frontier(self) -> Frontier:
        self._check()
        return self._dataflow.operators[-1].frontier(0)

    @property
    def complete_through(self) -> int | None:
        self._check()
        if self.db.config.coordinates != 1:
            return None
        if not self.db.completion.lags:
            self.db.settle()
        epoch = self.db.completion.complete_through(self._dataflow)
        return epoch if epoch >= 0 else None

    @property
    def answered(self) -> bool:
        complete = self.complete_through if not self.ended else None
        return self.ended or (-1 if complete is None else complete) >= self._dataflow.first_epoch

    def catch_up(self, asked: int = -1) -> None:
        self.db.completion.newest(self._dataflow, asked)

    def wait(self, time: Any = None) -> None:
        self._check()
        if self.db.config.coordinates != 1:
            self.db.settle()
            return
        epoch = self.db.epoch - 1 if time is None else self.db.as_time(time)[0]
        if epoch >= self.db.epoch:
            raise clock_behind(self, epoch)
        self.db.completion.wait_for(self._dataflow, epoch)
        self._check()

    @property
    def ended(self) -> bool:
        return self._dataflow.dropped and not self._dataflow.retired

    def error(self) -> KpgError | None:
        return self.error_at(self._lag_bound())

    def error_at(self, epoch: int | None) -> KpgError | None:
        """Return the reason why the answer has no value at a completed epoch; None: at the last sealed one."""
        if self._dataflow.failure is not None:
            return self._dataflow.failure
        if self.ended or self._errors is None or (self.db.sealed is None and epoch is None):
            return None
        try:
            self._check_errors(self._errors, epoch)
        except DataError as error:
            return error
        return None

    def _check_errors(self, errors: InstalledArrangement, epoch: int | None) -> None:
        if not errors.handle.batches(None):  # as usual
            return
        if epoch is not None:
            time: Time = (epoch,)
        else:
            assert self.db.sealed is not None
            time = next(element for element in self.db.sealed if not self.db.time.beyond(element))
        if time >= (0,):
            check_errors(self.db, self.name, errors, time)

    # Limits and failures

    def share_limits(self, tenants: int, asking: int = 0, asked_at: int = -1) -> None:
        if isinstance(self._dataflow.usage, LimitedUsage):
            self._dataflow.usage.share(tenants, asking, asked_at)

    def take_limits(self, other: Output) -> None:
        assert isinstance(other, EmbeddedOutput)
        usage, own = other.dataflow.usage, self._dataflow.usage
        if isinstance(usage, LimitedUsage) and isinstance(own, LimitedUsage):
            own.replace_limits(usage.limits)
        self._dataflow.take_owners(other.dataflow)

    def stay_in_groups(self, groups: Sequence[UsageGroup]) -> None:
        if isinstance(self._dataflow.usage, LimitedUsage):
            self._dataflow.usage.stay_in_groups({group.number for group in groups})

    def add_owner(self) -> None:
        if self.db.admission is not None:
            self.db.admission.add_owner(self._dataflow)

    @property
    def circulating(self) -> tuple[int, ...]:
        return self._dataflow.circulating

    def on_failure(self, function: Callable[[], None]) -> None:
        self._dataflow.on_failure = function

    def explain(self) -> Explanation:
        from kpg.api.explain_dataflow import explain_dataflow

        return explain_dataflow(self.db, self._dataflow)

    # Life

    def rebuild(self) -> bool:
        """Replace the dataflow by a new one that begins with the current rows; return whether that is possible.

        It is possible once, for an answer that no other query reads, and that keeps its rows or was not read yet.
        Readers get the difference of the answers as changes at one time.
        """
        old = self._installed
        if self._rebuilt or self.node is None or self.captures:
            return False
        if old.publisher.importers or old.users > 1 if old is not None else self._changes.was_read:
            return False
        known = None if old is None else self._known_rows(old)
        usage, taps, is_held = self._dataflow.usage, self._changes.taps, self._changes.is_held
        fresh = self.db.installer.build_output(self.node, self.name, keep=old is not None)
        fresh.dataflow.take_owners(self._dataflow)
        self._release_dataflow()  # after the new one holds the indexes that both read
        self._dataflow, self._changes, self._installed = fresh._dataflow, fresh._changes, fresh._installed
        self._errors, self._dataflow.usage, self._rebuilt = fresh._errors, usage, True
        self._changes.taps, self._changes.is_held = taps, is_held
        if known is not None:
            self._changes.restart(known, self.db.epoch - 1)
        return True

    def _known_rows(self, installed: InstalledArrangement) -> Updates | None:
        """Return the rows that readers of changes know; None if none were read."""
        epoch = self.db.completion.complete_through(self._dataflow)
        if not self._changes.was_read or epoch < 0:
            return None
        data, counts = read_rows(installed, self.schema, (epoch,), None)
        rows = Updates(np.ascontiguousarray(data), constant((epoch,)), counts.reshape(1, -1))
        unread = self._changes.drain(epoch)
        return consolidate_all([rows, Updates(unread.data, constant((epoch,)), -unread.diffs)])

    def _check(self) -> None:
        self.db.check()
        if self._released:
            raise Closed(f"output {self.name} was released")
        if self._dataflow.failure is not None:
            raise self._dataflow.failure.with_traceback(None)  # it is raised again and again

    def release(self) -> None:
        if self._released:
            return
        self.db.check_thread()
        for capture in tuple(self.captures):
            capture.close()
        self._released = True
        self.db.outputs.remove(self)
        self.db.changed.discard(self)
        self._release_dataflow()
        self._listeners.clear()  # they may refer to this output
        self._changes.taps.clear()
        self.node = None

    def _release_dataflow(self) -> None:
        if self._installed is not None:
            self._installed.release()
        else:
            self.db.worker.drop(self._dataflow)
            if self._errors is not None:
                self._errors.handle.release()


class EmbeddedProbe(Probe):
    """A dataflow of this process that reports only its progress."""

    db: EmbeddedDatabase

    def __init__(self, db: EmbeddedDatabase, dataflow: Dataflow, delivery: DeliverUpdates) -> None:
        self.db = db
        self._dataflow = dataflow
        self._delivery = delivery

    def frontier(self) -> Frontier:
        return self._delivery.frontier(0)

    def release(self) -> None:
        self.db.check_thread()
        self.db.worker.drop(self._dataflow)
