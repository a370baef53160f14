"""Read the history of some keys from the batches of a trace.

    gather(batches, keys, floor)  =  for each key:
        consolidate({(value, join(t, floor), r)  |  ((key, value), t, r) in any batch})

Joining the times with the floor (the meet of the times that will be asked) is what makes a history short. Keys are
sorted and distinct. Cost: a seek for each key and batch, then linear in what was found (times the logarithm of the
batches).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kpg.algebra.order import Time, less_equal
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Ints, Updates, constant, spread, trim
from kpg.kernels.gather_rows import consolidate_keys, copy_histories, copy_rows_as_of, fill_offsets, group_offsets
from kpg.kernels.sum_diffs import sum_diffs
from kpg.trace.batch import Batch
from kpg.trace.batch_table import table_of
from kpg.trace.locate_batches import locate
from kpg.trace.merger import merge_updates

EARLIEST = -(1 << 63)
NOW = constant((0,))  # any time will do for a collection as of one time


@dataclass(frozen=True, slots=True, eq=False)
class KeyHistory:
    """The histories of m keys: that of key k is columns offsets[k] to offsets[k + 1], sorted by value, then time."""

    offsets: Ints  # int64[m + 1]
    data: Ints  # int64[value lanes, n]
    times: Ints  # int64[depth, n], never a constant
    diffs: Ints  # int64[width, n], never a constant


def gather(batches: Sequence[Batch], keys: Ints, floor: Time | None, depth: int) -> KeyHistory:
    """The history of some keys over all batches, times extended to `depth` and joined with `floor`.

    Without batches nothing is known of values and diffs: no value lanes, and diffs of one lane.
    """
    key_lanes, m = keys.shape
    lanes, width = _shape(batches, key_lanes)
    table, ranges, n = locate(batches, keys)
    offsets = np.empty(m + 1, np.int64)
    fill_offsets(ranges, offsets)
    data, times = np.empty((lanes - key_lanes, n), np.int64), np.empty((depth, n), np.int64)
    diffs = np.empty((width, n), np.int64)
    least = np.array(floor if floor is not None else (EARLIEST,) * depth, np.int64)
    copy_histories(table, key_lanes, ranges, least, data, times, diffs)
    if len(batches) <= 1 and floor is None:
        return KeyHistory(offsets, data, times, diffs)
    spare = (np.empty_like(data), np.empty_like(times), np.empty_like(diffs))
    kept = consolidate_keys(offsets, data, times, diffs, np.empty(n, np.int64), np.empty(n, np.int64), *spare)
    return KeyHistory(offsets, trim(data, kept), trim(times, kept), trim(diffs, kept))


def accumulate(batches: Sequence[Batch], keys: Ints, width: int) -> Ints:
    """The sum of the diffs of each key over all values and times: int64[width, m]."""
    lanes, m = keys.shape
    sums = np.zeros((width, m), np.int64)
    if batches:
        table = table_of([batch.row_for(m if lanes else 0) for batch in batches])
        sum_diffs(table, keys, np.empty((2, m), np.int64), sums)
    return sums


def distinct_keys(updates: Updates, key_lanes: int) -> tuple[Ints, Ints]:
    """The keys of sorted updates, int64[key_lanes, m], and where each begins and the last ends, int64[m + 1]."""
    data = updates.data
    offsets = np.empty(data.shape[1] + 1, np.int64)
    m = group_offsets(data, key_lanes, offsets)
    return data[:key_lanes].take(offsets[:m], axis=1), offsets[: m + 1].copy()


def read(batches: Sequence[Batch], at: Time, keys: Ints | None) -> tuple[Ints, Ints]:
    """The collection as of a time: data int64[lanes, k] in order and its multiplicity int64[width, k], none zero.

    Of all keys if `keys` is None. `at` must be beyond the since of the batches.
    """
    if not batches:
        return np.empty((0, 0), np.int64), np.empty((1, 0), np.int64)
    if keys is None:
        rows = _part(batches[-1], at)
        for batch in reversed(batches[:-1]):  # newest and smallest first
            rows = merge_updates(_part(batch, at), rows)
    else:
        table, ranges, n = locate(batches, keys)
        rows = _filtered(batches, table, ranges, n, at)
    return rows.data, spread(rows.diffs, len(rows))


def _part(batch: Batch, at: Time) -> Updates:
    """What a batch contributes to the collection as of a time."""
    updates = batch.updates
    if updates.times.shape[1] > 1 or not less_equal(tuple(updates.times[:, 0].tolist()), at):
        everything = np.array([[0], [len(updates)]], np.int64)
        return _filtered([batch], table_of([batch.row]), everything, len(updates), at)
    return Updates(updates.data, NOW, updates.diffs)


def _filtered(batches: Sequence[Batch], table: Ints, ranges: Ints, n: int, at: Time) -> Updates:
    lanes, width = _shape(batches, 0)
    data, diffs = np.empty((lanes, n), np.int64), np.empty((width, n), np.int64)
    kept = copy_rows_as_of(table, ranges, np.array(at, np.int64), data, diffs)
    return consolidate(Updates(trim(data, kept), NOW, trim(diffs, kept)))


def _shape(batches: Sequence[Batch], lanes: int) -> tuple[int, int]:
    """Lanes and width of the batches; if there is none, the given lanes and 1."""
    if not batches:
        return lanes, 1
    updates = batches[0].updates
    return updates.data.shape[0], updates.diffs.shape[0]
