"""A spine: a trace that merges neighbouring batches, so that their number stays logarithmic.

    At every time beyond `since`, the batches together accumulate to the inserted updates.

From newest to oldest, a spine consists of

    pending   batches that are not merged yet: those beyond the physical frontier, between which readers may cut; a few
              tiny ones before it, which are cheaper to search than to merge one by one; and perhaps a large last one
              that the since has not passed: if it were merged now, its retractions could not cancel anything
    tail      one batch of fewer than `policy.tail_rows` rows; inserts merge small batches into it
    layers    at most one for each level; level k holds one batch of at most `policy.level_capacity(k)` rows, or two
              that are being merged. The oldest layer comes first and has the highest level.

If the result of a merge is too large for its level, it moves up, and begins a merge there if that level is occupied.

`kpg.trace.merge_policy` decides how much fuel an insert pays, and explains why every merge is done before the next
batch reaches its level. The spine asserts this when a batch moves up.

Long merges pause, and other computations may then read the trace, but not change it: the operator that inserts has not
ended its step. They see the batches that were there before the merges (`_visible`).
Cost: merges read each row a logarithmic number of times. An insert does work proportional to its own size for each
merge in progress.

Idle work (`exert`) sorts loads that no reader has needed sorted (kpg.trace.unsorted_batch), finishes merges, restores
geometric sizes, merges where retractions may cancel an eighth of the rows or more, and compacts each batch once more
after the since has passed its upper. Then nothing is left to do until the trace or its since changes.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.pause_points import can_pause
from kpg.columns.updates import Updates
from kpg.events import TraceEvents
from kpg.trace.batch import Batch
from kpg.trace.layer import Layer
from kpg.trace.merge_policy import DEFAULT, MergePolicy
from kpg.trace.merger import UNLIMITED, has_single_time, merge_now, merge_tiny
from kpg.trace.search_table import SearchTable
from kpg.trace.unsorted_batch import is_unsorted

if TYPE_CHECKING:
    from kpg.trace.handle import TraceHandle

MAX_SUMMED_UPDATES: Final = 1 << 14  # whose diffs are summed to estimate rows, which takes some 10 µs


class Spine:
    """All batches of a collection, oldest first. The module header describes how they are organised."""

    def __init__(self, key_lanes: int, lanes: int, depth: int, width: int = 1, policy: MergePolicy = DEFAULT) -> None:
        self.key_lanes, self.lanes, self.depth, self.width = key_lanes, lanes, depth, width
        self.policy = policy
        self.upper = Frontier.start(depth)
        self.events: TraceEvents | None = None
        self._saved_fuel = 0  # not yet given to merges
        self._spent_fuel = 0  # given to merges since a batch last entered the layers
        self._layers: list[Layer] = []
        self._tail: Layer | None = None
        self._tail_merges = 0  # merges into the tail after `_since` was last computed
        self._balanced = True  # no layer changed since idle work last found sizes and retractions in order
        self._pending: deque[Batch] = deque()
        self._pending_rows = 0
        self._search_table: SearchTable | None = None
        self._searched_keys = 0  # with the search table
        self._handles: dict[int, weakref.ref[TraceHandle]] = {}
        self._since = Frontier.start(depth)
        self._physical = Frontier.start(depth)
        self._physical_is_current = True
        self._had_handle = False
        self._visible: tuple[Batch, ...] | None = None  # what readers see while merges change the layers

    # Readers

    @property
    def handles(self) -> tuple[TraceHandle, ...]:
        """The handles that hold this trace."""
        handles = [ref() for ref in self._handles.values()]
        if None in handles:
            self._handles = {key: ref for key, ref in self._handles.items() if ref() is not None}
            self._physical_is_current = False
        return tuple([handle for handle in handles if handle is not None])

    @property
    def since(self) -> Frontier:
        """The meet of the handles' since: the trace distinguishes times beyond it. It never moves back."""
        handles = self.handles
        if handles:
            met = handles[0].since
            for handle in handles[1:]:
                met = met.meet(handle.since)
            self._since = met
        elif self._had_handle:
            self._since = CLOSED
        return self._since

    @property
    def physical(self) -> Frontier:
        """The meet of the handles' physical frontiers. No batch reaches across it, or across a later upper."""
        if not self._physical_is_current:
            met, handles = CLOSED, self.handles
            for handle in handles:
                met = met.meet(handle.physical)
            self._physical = met
            self._physical_is_current = not any(handle.follows_physical for handle in handles)
        return self._physical

    def invalidate_physical(self) -> None:
        """Compute `physical` again on its next read, because the physical frontier of a handle has changed."""
        self._physical_is_current = False

    def register(self, handle: TraceHandle) -> None:
        """Keep the trace readable for one more handle."""
        self._had_handle = True
        self._handles[id(handle)] = weakref.ref(handle)
        self._physical_is_current = False

    def unregister(self, handle: TraceHandle) -> None:
        """Remove a handle."""
        self._handles.pop(id(handle), None)
        self._physical_is_current = False

    # Batches

    def batches_through(self, upper: Frontier | None) -> tuple[Batch, ...]:
        """Return the batches with an upper at or before the given one, oldest first; all batches for None."""
        batches = self._present() if self._visible is None else self._visible
        if upper is None or self.upper.elements == upper.elements or self.upper.precedes(upper):
            return batches
        end = len(batches)
        while end and not batches[end - 1].upper.precedes(upper):  # uppers are in order: few batches come after `upper`
            end -= 1
            batch = batches[end]
            assert upper.precedes(batch.lower), f"a batch from {batch.lower} to {batch.upper} reaches across {upper}"
        return batches[:end]

    def _present(self) -> tuple[Batch, ...]:
        merged: list[Batch] = []
        for layer in self._layers:
            merged += layer.batches
        if self._tail is not None:
            merged.append(self._tail.batch)
        return (*merged, *self._pending)

    def search_table(self, upper: Frontier, keys: int, sort: bool = True) -> tuple[SearchTable, int] | None:
        """Return the table of all batches to search some keys, and the number of batches through an upper.

        Return None unless the upper is that of the trace, or the lower of the last batch, and while a merge pauses.
        Unless it may `sort`, there is none while a load is unsorted.
        """
        if self._visible is not None or not (sort or self._search_table is not None or self.is_sorted):
            return None
        table, self._searched_keys = self._search_table, self._searched_keys + keys
        if table is None or self._searched_keys >= table.keys_until_rebuild:
            self._search_table = table = SearchTable(self.batches_through(None), self._searched_keys)
            self._searched_keys = 0
        if upper.elements == self.upper.elements:
            return table, table.count
        if self._pending and upper.elements == self._pending[-1].description.lower.elements:
            return table, table.count - 1
        return None

    @property
    def is_sorted(self) -> bool:
        """Whether all batches are sorted, so that a search table costs little."""
        return self._search_table is not None or not any(map(is_unsorted, self.batches_through(None)))

    @property
    def rows(self) -> int:
        """The number of updates held."""
        return sum(map(len, self.batches_through(None)))

    @property
    def estimated_rows(self) -> int:
        """An estimate of the row count: of few updates, what inserts leave over removals; of many, their number.

        A small trace may hold more changes that cancel than rows, until their times are merged; a large one is
        compacted before these are many.
        """
        batches = self.batches_through(None)
        updates = sum(map(len, batches))
        if updates > MAX_SUMMED_UPDATES:
            return updates
        return min(updates, max(0, sum(sum_of_diffs(batch.updates) for batch in batches)))

    @property
    def nbytes(self) -> int:
        """The memory of all batches, in bytes."""
        return sum(batch.nbytes for batch in self.batches_through(None))

    @property
    def batch_count(self) -> int:
        """The number of batches that a reader searches."""
        return len(self.batches_through(None))

    def insert(self, batch: Batch) -> None:
        """Append the batch that continues this trace, and merge as far as it pays for."""
        if self.append(batch):
            self.merge_due()

    def append(self, batch: Batch) -> bool:
        """Append the batch that continues this trace. Return whether merges are due; an empty one moves the upper."""
        description, policy, rows = batch.description, self.policy, len(batch)
        lower = description.lower
        assert lower is self.upper or lower == self.upper, f"expected a batch from {self.upper}, not {batch.lower}"
        assert self._visible is None, "a trace is changed by one step at a time"
        self.upper = description.upper
        if rows and self.events is not None:
            self.events.log_insert(batch)
        if rows:
            self._pending.append(batch)
            self._saved_fuel += policy.fuel_per_row * rows
            self._pending_rows += rows
            if self._search_table is not None and not self._search_table.append(batch):
                self._search_table = None
        if self._saved_fuel >= policy.min_fuel or self._pending_rows > policy.max_pending_rows:
            return True
        return len(self._pending) > policy.max_pending_batches

    def _has_many_pending(self) -> bool:
        policy = self.policy
        return self._pending_rows > policy.max_pending_rows or len(self._pending) > policy.max_pending_batches

    def merge_due(self) -> None:
        """Merge as far as the batches that were appended pay for."""
        self._search_table = None
        if can_pause():
            with self._merging():
                self._merge_due()
        else:
            self._merge_due()

    def _merge_due(self) -> None:
        if self._saved_fuel >= self.policy.min_fuel:
            self._spend_fuel()
        if self._has_many_pending():
            self._merge_pending()

    @contextmanager
    def _merging(self) -> Iterator[None]:
        """Let readers see the present batches while this block pauses halfway through a merge."""
        assert self._visible is None, "a trace is changed by one step at a time"
        self._visible = self._present()
        yield
        self._visible = None  # not if the block was ended: then the layers may lack batches that were being merged

    def _merge_pending(self, idle: bool = False) -> None:
        """Merge pending batches that the physical frontier has passed into the tail; tiny ones together."""
        physical = self.physical
        passed: list[Batch] = []
        while self._pending and self._pending[0].upper.precedes(physical):
            if self._must_be_sorted(self._pending[0], passed):
                self._merge_behind_load(physical)
                break
            if not idle and self._should_wait(self._pending[0]):
                break
            passed.append(self._pending.popleft())
        rows = sum(map(len, passed))
        self._pending_rows = sum(map(len, self._pending))  # counted again: an unsorted batch has fewer rows once sorted
        if len(passed) > 1 and rows <= self.policy.max_pending_rows + len(passed[-1]):
            tiny, passed = passed, [merge_tiny(passed)]
            self._log_merge(tuple(tiny), passed[0])
        for batch in passed:
            self._merge_into_tail(batch)

    def _must_be_sorted(self, batch: Batch, before: list[Batch]) -> bool:
        """Return whether a batch is a load that is sorted by another thread before it is merged with older batches."""
        if not is_unsorted(batch) or self.policy.completes_merges:
            return False
        meets_layer = self._layers and self._layers[-1].level <= self.policy.level_of(len(batch))
        if batch.sorted_elsewhere or before or self._tail is not None or meets_layer:
            batch.sort_soon()
            return True
        return False

    def _merge_behind_load(self, physical: Frontier) -> None:
        """Merge the batches behind a load that is being sorted, so that they stay few."""
        load, *later = self._pending
        passed = [batch for batch in later if batch.upper.precedes(physical) and not is_unsorted(batch)]
        is_prefix = all(one is other for one, other in zip(passed, later, strict=False))
        if is_prefix and len(passed) > self.policy.max_pending_batches:
            merged = merge_tiny(passed)
            self._log_merge(tuple(passed), merged)
            self._pending = deque([load, merged, *later[len(passed) :]])
            self._pending_rows = sum(map(len, self._pending))

    def _should_wait(self, batch: Batch) -> bool:
        """Return whether a large batch is better merged with the next insert.

        Its retractions cannot cancel before the since has passed it, so its rows would be read twice.
        """
        if len(self._pending) > 1 or not self.policy.is_worth_computing_since(len(batch), len(self._handles)):
            return False
        if self.policy.completes_merges or self.depth > 1 or not batch.upper:
            return False
        since = self.since
        return bool(since) and not has_single_time(batch, since)

    def _merge_into_tail(self, batch: Batch) -> None:
        if self._tail is not None:
            self._tail_merges += 1  # not each merge computes the since: with many readers it costs more than the merge
            if self._tail_merges >= len(self._handles):
                self._tail_merges = 0
                self._since = self.since
            batch = self._merge_now(self._tail.batch, batch, self._since)
        rows = len(batch)
        self._tail = Layer(0, batch) if 0 < rows < self.policy.tail_rows else None
        self._balanced = False
        if rows >= self.policy.tail_rows:
            self._enter_layers(batch)

    def _merge_now(self, older: Batch, newer: Batch, since: Frontier) -> Batch:
        result = merge_now(older, newer, since)
        self._log_merge((older, newer), result)
        return result

    def _complete(self, layer: Layer) -> Batch:
        merged = layer.batches
        result = layer.complete()
        if result is not merged[0]:
            self._log_merge(merged, result)
        return result

    def _log_merge(self, merged: tuple[Batch, ...], result: Batch) -> None:
        if self.events is not None:
            self.events.log_merge(merged, result)

    # Layers

    def _spend_fuel(self) -> None:
        """Give the saved fuel to each merge in progress."""
        fuel, self._saved_fuel = self._saved_fuel, 0
        self._spent_fuel += fuel
        self._fuel_merges(fuel)

    def _fuel_merges(self, fuel: int) -> None:
        """Give `fuel` to each merge in progress."""
        for layer in tuple(self._layers):  # oldest first, so that a level is free before a batch moves up to it
            left, merging = fuel, layer
            while merging.merge is not None and left > 0:  # a merge that a result begins gets the rest of the fuel
                left -= max(1, merging.merge.work(left))
                merging = self._place_result(merging)

    def _place_result(self, layer: Layer) -> Layer:
        """If the layer's merge is done, move the result to its level. Return the layer that holds it."""
        if layer.merge is None or not layer.merge.done:
            return layer
        merged = layer.batches
        layer.finish()
        self._log_merge(merged, layer.batch)
        self._balanced = False
        position = self._layers.index(layer)
        natural = self.policy.level_of(len(layer.batch))
        if len(layer.batch) == 0:
            self._layers.pop(position)
        elif natural <= layer.level:
            below = self._layers[position + 1].level + 1 if position + 1 < len(self._layers) else 0
            layer.level = max(natural, below)
        else:
            layer.level = natural
            if position and self._layers[position - 1].level <= natural:
                self._layers.pop(position)
                return self._begin_merge(self._layers[position - 1], layer.batch)
        return layer

    def _begin_merge(self, layer: Layer, newer: Batch) -> Layer:
        layer.begin_merge(newer, self.since)
        return self._place_result(layer)

    def _enter_layers(self, batch: Batch) -> None:
        """Add a batch that is too large for the tail to the layers."""
        policy = self.policy
        level = policy.level_of(len(batch))
        while self._layers and self._layers[-1].level < level:  # it is older, so it cannot stay below: merge both
            batch = self._merge_now(self._complete(self._layers.pop()), batch, self.since)
            level = max(level, policy.level_of(len(batch)))
        self._fuel_merges(max(0, policy.fuel_before_level(level) - self._spent_fuel))
        self._spent_fuel = 0
        if len(batch) == 0:
            return
        if self._layers and self._layers[-1].level <= level:
            self._begin_merge(self._layers[-1], batch)
        else:
            self._layers.append(Layer(level, batch))
        if policy.completes_merges:
            self._fuel_merges(UNLIMITED)

    # Idle work

    def exert(self, fuel: int) -> bool:
        """Do about `fuel` rows of idle work. Return whether more is left."""
        self._search_table = None
        if not can_pause():
            return self._exert(fuel)
        with self._merging():
            return self._exert(fuel)

    def _exert(self, fuel: int) -> bool:
        if self._pending:
            self._merge_pending(idle=True)
        while fuel > 0:
            layer = next((layer for layer in self._layers if layer.merge is not None), None)
            if layer is None:
                if not self._begin_idle_work():
                    return False
                self._spent_fuel = 0  # earlier fuel did not go to the merge that just began
            else:
                assert layer.merge is not None
                fuel -= max(1, layer.merge.work(fuel))
                self._place_result(layer)
        return True

    @property
    def unsettled(self) -> bool:
        """Whether idle work may follow when the since advances: some batch is not compacted beyond its upper yet."""
        layers = self._layers if self._tail is None else [*self._layers, self._tail]
        return bool(self._pending) or any(
            layer.needs_compaction(CLOSED) or is_unsorted(layer.batch) for layer in layers
        )

    def _begin_idle_work(self) -> bool:
        """Begin the next merge or compaction and return True, or return False. No merge may be in progress."""
        since, tail, layers = self.since, self._tail, self._layers
        unsorted = next((layer.batch for layer in layers if is_unsorted(layer.batch)), None)
        if unsorted is not None:
            unsorted.sort_soon()  # later idle work finds it sorted
            return False
        if tail is not None and tail.needs_compaction(since):
            tail.begin_compaction(since)
            self._tail = tail if len(self._complete(tail)) else None
            return True
        if not self._balanced:
            if tail is not None and self._may_cancel_enough(len(layers)):
                self._tail = None
                self._begin_merge(layers[-1], tail.batch)
                return True
            if len(layers) > 1 and (
                not self.policy.is_geometric(layers[-2].rows, layers[-1].rows)
                or self._may_cancel_enough(len(layers) - 1)
            ):
                self._begin_merge(layers[-2], layers.pop().batch)
                return True
            self._balanced = True
        for layer in layers:
            if layer.needs_compaction(since):
                layer.begin_compaction(since)
                self._place_result(layer)
                return True
        return False

    def _may_cancel_enough(self, position: int) -> bool:
        """Return whether merging everything newer into a layer before `position` may cancel enough rows to pay off."""
        positive = negative = 0
        if self._tail is not None:
            negative = self._tail.negatives
            positive = self._tail.rows - negative
        for number in range(len(self._layers) - 1, -1, -1):
            layer = self._layers[number]
            rows, minus = layer.rows, layer.negatives
            cancelling = 2 * (min(negative, rows - minus) + min(positive, minus))
            if number < position and self.policy.cancels_enough(cancelling, rows + positive + negative):
                return True
            positive += rows - minus
            negative += minus
        return False


def sum_of_diffs(updates: Updates) -> int:
    """Return the sum of the first lane of the diffs."""
    counts = updates.diffs[0]
    return int(counts[0]) * len(updates) if len(counts) == 1 else int(counts.sum())
