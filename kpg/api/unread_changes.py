"""The unread changes of an output: a buffer between the dataflow, which produces them, and the reader.

    what drain() returns, accumulated  =  the answer now  −  the answer at the last drain()

The buffer is bounded. When it exceeds its limit, it gives up the times of its changes and keeps their sums, as of the
latest time. If nothing was read yet and a trace holds the answer, it keeps nothing at all: the sum of all changes so
far is the content of the trace. Each change is summed a few times only, since the limit doubles with the sums.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from kpg.api.changes import in_time_order
from kpg.api.unread_parts import UnreadParts, split_at
from kpg.columns.consolidation import consolidate, consolidate_all
from kpg.columns.schema import Schema
from kpg.columns.selection import reorder_lanes
from kpg.columns.updates import Ints, Updates, concatenate, constant, no_updates
from kpg.config import CHANGES_LIMIT
from kpg.trace.handle import TraceHandle


class UnreadChanges:
    """Changes in the order of arrival. `schema` is the reader's order of columns."""

    def __init__(self, schema: Schema, coordinates: int) -> None:
        self.schema = schema
        self.trace: TraceHandle | None = None  # holds the answer, if the output keeps it
        self.was_read = False  # whether some changes were drained
        self.is_held = False  # whether none may be drained before `begin`
        self.taps: list[Callable[[Updates], None]] = []  # called with all changes as they arrive
        self._coordinates = coordinates
        self.until: int | None = None  # changes at this epoch and later ones are not needed
        self._parts = UnreadParts()
        self._limit = CHANGES_LIMIT
        self._left_to_trace: Ints | None = None  # the time through which only the trace holds the changes
        self._restarted_at: int | None = None  # the epoch of all changes of an answer that was rebuilt
        self.set_lanes(schema)

    def keep_times_apart(self) -> None:
        """Do not consolidate changes of different times before they are drained once."""
        self._limit = sys.maxsize

    def set_lanes(self, schema: Schema) -> None:
        """Set the order of columns in which the dataflow delivers changes."""
        self._lanes = schema
        order = list(schema.lanes_of(self.schema.names))
        self._order = None if order == sorted(order) else order

    def in_reading_order(self, updates: Updates) -> Updates:
        """Return delivered updates with their columns in the reader's order."""
        return updates if self._order is None else reorder_lanes(updates, self._order)

    def take(self, updates: Updates) -> None:
        """Accept changes from the dataflow."""
        if self.until is None:
            self._parts.add(updates)
        else:
            for part in split_at([updates], self.until - 1)[0]:
                self._parts.add(part)
        for tap in self.taps:
            tap(updates)
        if self._parts.rows > self._limit:
            self._summarise()

    def _summarise(self) -> None:
        """Consolidate the buffered changes at their last time, or leave them to the trace."""
        if self.trace is not None and not self.was_read:
            times = self._parts.latest_time()
            self._left_to_trace = constant(times)
            self._parts.set([])
            self._parts.summed_through = times[0]
            return
        if len(self._parts) > 1:
            self._parts.sum_through(None)
        self._limit = max(CHANGES_LIMIT, 2 * self._parts.rows)

    @property
    def rows(self) -> int:
        """The number of changes in the buffer."""
        return self._parts.rows

    @property
    def summed_through(self) -> int:
        """The epoch to which changes of earlier ones were moved; -1 if none were."""
        return self._parts.summed_through

    def _all_parts(self) -> list[Updates]:
        """Return the buffered changes, preceded by those left to the trace: all it holds, minus the buffered ones."""
        last = self._left_to_trace
        if last is None or self.trace is None:
            return list(self._parts)
        parts = [Updates(batch.updates.data, last, batch.updates.diffs) for batch in self.trace.batches(None)]
        parts += [Updates(part.data, last, -part.diffs) for part in self._parts]
        return [consolidate_all(parts), *self._parts] if parts else []

    def drain(self, through: int | None = None) -> Updates:
        """Return all changes since this was last called, in the reader's order of columns.

        With `through`, changes at later epochs stay; an answer that lags has not completed them.
        """
        if through is not None and not self.has_some(through):
            return no_updates(self.schema.width, self._coordinates)
        parts, later = self._all_parts(), list[Updates]()
        if through is not None:
            parts, later = split_at(parts, through)
        self._parts.set(later)
        self._limit, self._left_to_trace = CHANGES_LIMIT, None
        if self._restarted_at is not None and parts:
            parts = [
                consolidate_all([Updates(part.data, constant((self._restarted_at,)), part.diffs) for part in parts])
            ]
        self._restarted_at = None
        changes = concatenate(parts) if parts else no_updates(self.schema.width, self._coordinates)
        if not self.was_read and len(parts) > 1:  # the initial content arrives in batches that may cancel each other
            changes = in_time_order(consolidate(changes))
        self.was_read = True
        return self.in_reading_order(changes)

    def begin(self, after: int) -> bool:
        """Drop the changes through an epoch that is complete: the reader has the rows as of it. End `is_held`.

        Return False, and do nothing, if only the trace holds some of the later changes: try again when they are
        complete.
        """
        if self._left_to_trace is not None and int(self._left_to_trace[0, 0]) > after:
            return False
        self._parts.take(after)
        self._limit, self._left_to_trace = CHANGES_LIMIT, None
        self.was_read, self.is_held = True, False
        return True

    def restart(self, before: Updates, epoch: int) -> None:
        """Begin again for an answer that was rebuilt: the first changes are its rows minus those before, at an epoch.

        `before` has the rows that the reader knows, in the reader's order of columns.
        """
        removed = reorder_lanes(before, list(self.schema.lanes_of(self._lanes.names)))
        self._parts.add(Updates(removed.data, constant((epoch,)), -removed.diffs))
        self._parts.summed_through = epoch
        self.was_read, self._restarted_at = True, epoch

    def has_some(self, through: int) -> bool:
        """Return whether there are changes at or before an epoch that may be drained."""
        if self.is_held:
            return False
        if self._restarted_at is not None and through < self._restarted_at:
            return False
        if self._left_to_trace is not None:  # all or none: the trace does not separate completed changes from others
            assert self.trace is not None
            upper = self.trace.spine.upper
            return int(self._left_to_trace[0, 0]) <= through and all(time[0] <= through + 1 for time in upper)
        return self._parts.has_some(through)

    def parts(self) -> list[Updates]:
        """Return the buffered changes, in the order of columns in which they were delivered."""
        return list(self._parts)

    def kept_rows(self) -> Iterator[tuple[Schema, Updates]]:
        """Yield the buffered changes with their columns: their symbols are in use."""
        for part in self._parts:
            yield self._lanes, part

    def __bool__(self) -> bool:
        return len(self._parts) > 0 or self._left_to_trace is not None
