"""Outputs: answers that are kept up to date, and how people read them.

    answer = collection.output("answer")
    answer.snapshot(as_of=t)      an Arrow table of the rows at a time
    answer.changes()              (row, time, diff) since it was last asked
    answer.on_change(f)           f(changes) after each advance that changed something

An output owns its dataflow: `release()` drops it and everything it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kpg.algebra.frontier import Frontier
from kpg.api.changes import Change, Changes, in_time_order
from kpg.api.installed_arrangement import InstalledArrangement, install_arrangement, keep_errors, retain
from kpg.api.trace_reads import check_errors, check_readable, to_counted_table, to_table
from kpg.columns.consolidation import consolidate, consolidate_all
from kpg.columns.rows import rows_of
from kpg.columns.schema import Schema
from kpg.columns.selection import reorder_lanes
from kpg.columns.updates import Ints, Updates, concatenate, constant, no_updates
from kpg.config import CHANGES_LIMIT
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.graph import Dataflow
from kpg.errors import Closed, DataError, InputError, InUse, KpgError
from kpg.operators.deliver_updates import DeliverUpdates
from kpg.operators.import_arrangement import advance_batch
from kpg.plan import nodes
from kpg.plan.render import Renderer
from kpg.plan.rendered import RenderedArrangement

if TYPE_CHECKING:
    from kpg.api.capture import Capture
    from kpg.api.database import Database


class Output:
    """An installed answer."""

    def __init__(self, db: Database, node: nodes.PlanNode, name: str | None, keep: bool) -> None:
        self.db = db
        self.schema: Schema = node.schema
        self.name = output_name(db, name)
        self._waiting: list[Updates] = []
        self._waiting_rows = 0
        self._waiting_limit = CHANGES_LIMIT
        self._summed: Ints | None = None  # the time through which changes are left to the trace, which has them all
        self._listeners: list[Callable[[Changes], Any]] = []
        self.captures: list[Capture] = []
        self._order: list[int] = []
        self._lanes: Schema = node.schema
        self._released = False
        self._installed: InstalledArrangement | None = None
        self._errors: InstalledArrangement | None = None  # of an output that keeps nothing else
        self._taken = False  # whether some changes were handed out
        if keep:
            self._installed = install_arrangement(db, self.name, node, keys_of(node), self._extend)
            self._dataflow = self._installed.dataflow
        else:
            self._dataflow = db.install(self.name, lambda dataflow: self._build_unkept(dataflow, node))
        db.outputs[self.name] = self

    def _extend(self, dataflow: Dataflow, found: RenderedArrangement) -> None:
        self._watch(dataflow, found.arranged.stream, found.schema)

    def _build_unkept(self, dataflow: Dataflow, node: nodes.PlanNode) -> None:
        renderer = Renderer(dataflow, self.db.context, node)
        try:
            rendered = renderer.collection(node)
            if not rendered.tidy:  # a batch is consolidated already
                rendered = renderer.consolidate(rendered)
            errors = renderer.finish()
            self._watch(dataflow, rendered.stream, rendered.schema)
            if errors is not None:
                self._errors = keep_errors(self.db, renderer, errors, self.name)
        finally:
            renderer.release()
        retain(dataflow, renderer)

    def _watch(self, dataflow: Dataflow, stream: Any, schema: Schema) -> None:
        self._lanes = schema
        self._order = [schema.index(name) for name in self.schema.names]
        watch = DeliverUpdates(f"output {self.name}", self._take)
        dataflow.add(watch, [(stream, LocalPact())], depth=stream.depth)

    # Changes

    def _take(self, updates: Updates) -> None:
        self._waiting.append(updates)
        self._waiting_rows += len(updates)
        if self._listeners:
            self.db.changed.add(self)
        for capture in self.captures:
            capture.take(reorder_lanes(updates, self._order))
        if self._waiting_rows > self._waiting_limit:
            self._summarise()

    def _summarise(self) -> None:
        """Nobody reads: keep what changed in all, not when."""
        last = constant(tuple(self._waiting[-1].times.max(axis=1).tolist()))
        if self._installed is not None and not self._taken:  # what changed since the start is what is there
            self._waiting, self._waiting_rows, self._summed = [], 0, last
            return
        if len(self._waiting) > 1:
            parts = [Updates(updates.data, last, updates.diffs) for updates in self._waiting]
            self._waiting = [consolidate_all(parts)]
            self._waiting_rows = len(self._waiting[0])
        self._waiting_limit = max(CHANGES_LIMIT, 2 * self._waiting_rows)  # each row is summed up a few times only

    def _unsummed(self) -> list[Updates]:
        """What waits, and before it what was left to the trace: all it holds, without what waits."""
        last, installed = self._summed, self._installed
        if last is None or installed is None:
            return self._waiting
        parts = [Updates(batch.updates.data, last, batch.updates.diffs) for batch in installed.handle.batches(None)]
        parts += [Updates(updates.data, last, -updates.diffs) for updates in self._waiting]
        return [consolidate_all(parts), *self._waiting] if parts else []

    def take_changes(self) -> Changes:
        """All updates since this was last called, together."""
        self._check()
        self.db.settle()
        if self._errors is not None and self.db.sealed is not None:
            self._check_errors(self._errors)
        return self._drain()

    def _drain(self) -> Changes:
        waiting, self._waiting, self._waiting_rows = self._unsummed(), [], 0
        self._waiting_limit, self._summed = CHANGES_LIMIT, None
        found = concatenate(waiting) if waiting else no_updates(len(self.schema), self.db.config.coordinates)
        if not self._taken and len(waiting) > 1:  # what was there before comes in batches that may cancel each other
            found = in_time_order(consolidate(found))
        self._taken = True
        self.db.changed.discard(self)
        return Changes(reorder_lanes(found, self._order), self.schema, self.db)

    def changes(self) -> Iterator[Change]:
        """Each (row, time, diff) since this was last asked."""
        return iter(self.take_changes())

    def on_change(self, function: Callable[[Changes], Any]) -> Callable[[], None]:
        """Call `function(changes)` after each advance that changed something; returns a function that stops it."""
        self._check()
        self._listeners.append(function)
        if self._waiting or self._summed is not None:
            self.db.changed.add(self)
        return lambda: self._listeners.remove(function)

    def unread(self) -> Iterator[tuple[Schema, Updates]]:
        """The changes that nobody has read yet and that no trace has."""
        for updates in self._waiting:
            yield self._lanes, updates

    def notify(self) -> None:
        """Tell the listeners what changed, if there are any."""
        if self._listeners and (self._waiting or self._summed is not None):
            changes = self._drain()
            for listener in tuple(self._listeners):
                listener(changes)

    def capture(self, path: str | PathLike[str]) -> Capture:
        """Write this answer to a file, from what it holds now on: see kpg.replay()."""
        from kpg.api.capture import Capture

        self._check()
        return Capture(self, path)

    def contents(self) -> list[Updates]:
        """All updates so far, at the times that can still be told apart."""
        self.db.settle()
        installed = self._installed
        if installed is None and self._taken:
            raise InputError(
                f"output {self.name} keeps nothing, and some of its changes were read already",
                hint="Capture it before its changes are read, or install it without keep=False.",
            )
        found = self._waiting
        if installed is not None:
            since = installed.handle.since
            found = [advance_batch(batch, since).updates for batch in installed.handle.batches(None)]
        return [reorder_lanes(updates, self._order) for updates in found]

    # Reading

    def snapshot(self, as_of: Any = None, *, counts: bool = False) -> pa.Table:
        """The rows as of a time, the last complete one if not said; with counts=True each once with its count."""
        installed = self.readable()
        time = check_readable(self.db, installed, as_of)
        if counts:
            return to_counted_table(self.db, installed, self.schema, time)
        return to_table(self.db, installed, self.schema, time, None)

    def rows(self, as_of: Any = None) -> list[tuple[Any, ...]]:
        """The rows as of a time as tuples, sorted by their lanes."""
        return rows_of(self.snapshot(as_of), self.schema)

    def to_pandas(self, as_of: Any = None) -> Any:
        """The rows as of a time as a pandas DataFrame."""
        return self.snapshot(as_of).to_pandas()

    def readable(self) -> InstalledArrangement:
        """The trace to read from, if it keeps one."""
        self._check()
        if self._installed is None:
            raise InputError(f"output {self.name} keeps nothing to read", hint="Install it without keep=False.")
        return self._installed

    def frontier(self) -> Frontier:
        """What may still change."""
        self._check()
        return self._dataflow.operators[-1].frontier(0)

    @property
    def ended(self) -> bool:
        """Whether its dataflow is gone: released, or stopped by a failure."""
        return self._dataflow.dropped and not self._dataflow.retired

    def failure(self) -> str | None:
        """Why there is no answer now, in short, if there is none."""
        error = self.error()
        return None if error is None else error.what

    def error(self) -> KpgError | None:
        """Why there is no answer now, if there is none."""
        errors = self._installed.errors if self._installed is not None else self._errors
        if self._dataflow.failure is not None:
            return self._dataflow.failure
        if self.ended or errors is None or self.db.sealed is None:
            return None
        try:
            self._check_errors(errors)
        except DataError as error:
            return error
        return None

    def _check_errors(self, errors: InstalledArrangement) -> None:
        assert self.db.sealed is not None
        time = next(element for element in self.db.sealed if not self.db.time.beyond(element))
        check_errors(self.db, self.name, errors, time)

    def explain(self) -> str:
        """One block per arrangement that this answer keeps or shares."""
        from kpg.api.explain_dataflow import explain_dataflow

        return explain_dataflow(self.db, self._dataflow)

    # Life

    def _check(self) -> None:
        self.db.check()
        if self._released:
            raise Closed(f"output {self.name} was released")
        if self._dataflow.failure is not None:
            raise self._dataflow.failure

    def release(self) -> None:
        """Drop the answer and everything it holds; may be repeated."""
        if self._released:
            return
        self.db.check_thread()
        for capture in tuple(self.captures):
            capture.close()
        self._released = True
        self.db.outputs.pop(self.name, None)
        self.db.changed.discard(self)
        if self._installed is not None:
            self._installed.release()
        else:
            self.db.worker.drop(self._dataflow)
            if self._errors is not None:
                self._errors.handle.release()

    def __enter__(self) -> Output:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"Output({self.name!r}, {self.schema!r})"

    def _repr_html_(self) -> str:
        from kpg.api.notebook_html import html_output

        return html_output(self)


def output_name(db: Database, name: str | None) -> str:
    """The name asked for, which no other may have; else one that is free."""
    if name in db.outputs:
        raise InUse(f"there is an output {name!r} already", hint="Choose another name, or release() that one.")
    return name or next(free for number in count(len(db.outputs)) if (free := f"output {number}") not in db.outputs)


def keys_of(node: nodes.PlanNode) -> tuple[str, ...]:
    """What an answer is indexed by: for groups their keys, which the reduction has an index by; else all columns."""
    if isinstance(node, nodes.ReduceNode) and node.keys and node.schema.names[: len(node.keys)] == node.keys:
        return node.keys
    return node.schema.names


class Probe:
    """A dataflow that is installed only to know how far it has come."""

    def __init__(self, db: Database, node: nodes.PlanNode) -> None:
        self.db = db
        self._dataflow = db.install("probe", lambda dataflow: self._build(dataflow, node))

    def _build(self, dataflow: Dataflow, node: nodes.PlanNode) -> None:
        renderer = Renderer(dataflow, self.db.context, node)
        try:
            rendered = renderer.collection(node)
            renderer.finish()
            self._watch = DeliverUpdates("probe", lambda updates: None)
            dataflow.add(self._watch, [(rendered.stream, LocalPact())], depth=rendered.stream.depth)
        finally:
            renderer.release()
        retain(dataflow, renderer)

    def frontier(self) -> Frontier:
        """What may still come."""
        return self._watch.frontier(0)

    def passed(self, time: Any) -> bool:
        """Whether everything at a time has come."""
        return not self.frontier().beyond(self.db.as_time(time))

    def release(self) -> None:
        """Drop the dataflow; may be repeated."""
        self.db.check_thread()
        self.db.worker.drop(self._dataflow)
