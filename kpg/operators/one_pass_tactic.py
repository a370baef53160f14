"""The one-pass tactic: correct groups with short histories directly from the batches, in one pass over the keys.

    OnePassTactic(general).correct(task)  ==  general.correct(task)

Most groups that change have few distinct times after compaction, and gathering whole histories would cost more than the
evaluation. Keys with long histories are left to the general tactic, and so is everything if sums may leave 64 bits.

Two cases need even less. While the input has had insertions only, `distinct` of many keys searches its output only: a
key that is present stays, and a key that is absent is inserted. The few keys that this does not decide are evaluated
as usual. And the minimum of a group is not computed again where only larger rows were inserted or deleted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kpg.columns.exact_diffs import is_exact
from kpg.columns.pause_points import aside
from kpg.columns.updates import Ints, Updates, constant, spread
from kpg.kernels.new_keys import new_keys
from kpg.kernels.one_pass_corrections import FIRST, POOL_LISTS, PRESENCE, SUMS, one_pass_corrections
from kpg.kernels.unchanged_minimum import keys_with_changed_minimum
from kpg.operators.correction_columns import Corrections
from kpg.operators.payload import Batches
from kpg.operators.tactic import ReduceResult, ReduceTask, Tactic
from kpg.trace.batch import may_leave_64_bits
from kpg.trace.description import elements
from kpg.trace.locate_batches import locate

__all__ = ["FIRST", "PRESENCE", "SUMS", "OnePassTactic"]

MAX_HISTORY_ROWS = 96  # of one key's history, closure or corrections; longer ones go to the general tactic
MIN_KEYS_FOR_NEW_KEYS = 512  # fewer keys do not pay for the call of the kernel that finds new keys
MIN_KEYS_FOR_MINIMUM = 64  # the same for the kernel that finds changed minima, which saves more for each key
ONE = constant((1,))


@dataclass(frozen=True, slots=True)
class OnePassTactic:
    """Correct groups with short histories, and leave the others to `general`."""

    kind: int
    at_least: int
    in_values: int
    out_values: int
    width: int
    general: Tactic

    def affected_keys(self, news: Updates, keys: Ints, offsets: Ints, outputs: Batches) -> Ints | None:
        m = keys.shape[1]
        if self.kind != FIRST or m < MIN_KEYS_FOR_MINIMUM or not outputs or is_exact(news.diffs):
            return None
        if may_leave_64_bits(outputs):
            return None
        table, ranges, _ = locate(outputs, keys)
        return aside(news.data.size, _keys_with_changed_minimum, table, ranges, keys, news, offsets, outputs)

    def correct(self, task: ReduceTask) -> ReduceResult:
        if task.keys.shape[0] == 0:  # a single group of all rows: its history is long, or there is little work
            return self.general.correct(task)
        if may_leave_64_bits(task.inputs) or may_leave_64_bits(task.outputs):
            return self.general.correct(task)
        if (
            task.never_retracted
            and self.kind == PRESENCE
            and self.at_least == 1
            and task.keys.shape[1] >= MIN_KEYS_FOR_NEW_KEYS
        ):
            result, undecided = _insert_new_keys(task)
            if not len(undecided):
                return result
            return combine(result, self.correct(replace(subset(task, undecided), monotone=True)), undecided)
        result, long = self._correct_short(task)
        if not len(long):
            return result
        return combine(result, self.general.correct(subset(task, long)), long)

    def _correct_short(self, task: ReduceTask) -> tuple[ReduceResult, Ints]:
        depth, m, values = task.depth, task.keys.shape[1], self.out_values
        in_table, in_ranges, _ = locate(task.inputs, task.keys)
        out_table, out_ranges, _ = locate(task.outputs, task.keys)
        upper = elements(task.upper, depth)
        at_diff = max(self.in_values, values, self.width) + depth
        size = at_diff + self.width
        pool = np.empty(POOL_LISTS * MAX_HISTORY_ROWS * size, np.int64)
        long_keys = np.empty(m, np.int64)
        capacity = 2 * m + 2 * MAX_HISTORY_ROWS
        parts: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
        long_count, at = 0, 0
        while at < m:
            row_keys, rows = np.empty(capacity, np.int64), np.empty((values + depth, capacity), np.int64)
            pending_keys, pending_times = np.empty(capacity, np.int64), np.empty((depth, capacity), np.int64)
            row_diffs = np.empty(capacity, np.int64)
            state = np.array((0, 0, long_count), np.int64)
            at = one_pass_corrections(
                self.kind, self.at_least, int(task.monotone), at, task.offsets, task.seeds,
                task.keys.shape[0], self.in_values, values, self.width, upper,
                in_table, in_ranges, out_table, out_ranges, pool, MAX_HISTORY_ROWS, size, at_diff,
                row_keys, rows, row_diffs, pending_keys, pending_times, long_keys, state,
            )  # fmt: skip
            n, pending_count, long_count = state.tolist()
            parts.append(
                (
                    row_keys[:n],
                    rows[:, :n],
                    row_diffs[:n],
                    pending_keys[:pending_count],
                    pending_times[:, :pending_count],
                )
            )
        if len(parts) == 1:
            row_keys, rows, row_diffs, pending_keys, pending_times = parts[0]
        else:
            row_keys, row_diffs, pending_keys = [np.concatenate([part[i] for part in parts]) for i in (0, 2, 3)]
            rows, pending_times = [np.concatenate([part[i] for part in parts], axis=1) for i in (1, 4)]
        corrections = Corrections(row_keys, rows[:values], rows[values:], row_diffs.reshape(1, -1))
        return ReduceResult(corrections, pending_keys, np.ascontiguousarray(pending_times)), long_keys[:long_count]


def _keys_with_changed_minimum(
    table: Ints, ranges: Ints, keys: Ints, news: Updates, offsets: Ints, outputs: Batches
) -> Ints:
    """Return the keys with a new minimum. The batches keep the arrays that the table has the addresses of."""
    lanes, m = keys.shape
    chosen = np.empty(m, np.int64)
    n = keys_with_changed_minimum(table, ranges, lanes, news.times, offsets, news.data, news.diffs, chosen)
    return chosen[:n]


def _insert_new_keys(task: ReduceTask) -> tuple[ReduceResult, Ints]:
    """Insert the keys that are absent from the output, given insertions only. Return also the undecided keys."""
    m = task.keys.shape[1]
    table, ranges, _ = locate(task.outputs, task.keys)
    fresh, unclear = np.empty(m, np.int64), np.empty(m, np.int64)
    upper = elements(task.upper, task.depth)
    n, others = new_keys(table, ranges, task.offsets, task.seeds, upper, fresh, unclear)
    keys, times = fresh[:n], task.seeds
    if times.shape[1] > 1:
        times = times.take(task.offsets.take(keys), axis=1)
    corrections = Corrections(keys, np.empty((0, n), np.int64), times, ONE)
    nothing = np.empty(0, np.int64), np.empty((task.depth, 0), np.int64)
    return ReduceResult(corrections, *nothing), unclear[:others]


def subset(task: ReduceTask, chosen: Ints) -> ReduceTask:
    """Return the task restricted to some of its keys."""
    starts, ends = task.offsets[chosen], task.offsets[chosen + 1]
    counts = ends - starts
    offsets = np.concatenate([[0], np.cumsum(counts)])
    seeds = task.seeds
    if seeds.shape[1] > 1:
        rows = np.repeat(starts - offsets[:-1], counts) + np.arange(offsets[-1])
        seeds = np.ascontiguousarray(seeds[:, rows])
    keys = np.ascontiguousarray(task.keys[:, chosen])
    return replace(task, keys=keys, offsets=offsets, seeds=seeds, monotone=False, never_retracted=False)


def combine(result: ReduceResult, other: ReduceResult, chosen: Ints) -> ReduceResult:
    """Combine two results of disjoint keys. The keys of `other` are numbered by their position in `chosen`.

    The rows are contiguous, as batches need them; indexing with `[:, order]` would transpose the memory.
    """
    first, second = result.corrections, other.corrections
    keys = np.concatenate([first.key_index, chosen[second.key_index]])
    order = np.argsort(keys, kind="stable")

    def merge(a: Ints, b: Ints) -> Ints:
        return np.concatenate([spread(a, len(first)), spread(b, len(second))], axis=1).take(order, axis=1)

    corrections = Corrections(
        keys[order],
        merge(first.data, second.data),
        merge(first.times, second.times),
        merge(first.diffs, second.diffs),
    )
    pending_keys = np.concatenate([result.pending_keys, chosen[other.pending_keys]])
    pending_times = np.concatenate([result.pending_times, other.pending_times], axis=1)
    return ReduceResult(corrections, pending_keys, pending_times)
