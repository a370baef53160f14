"""Read the history of some keys from the batches of a trace.

    gather(batches, keys, floor)  =  for each key:
        consolidate({(value, join(t, floor), r)  |  ((key, value), t, r) in any batch})

Joining the times with the floor (the meet of all times that will be evaluated) makes histories short. Keys are sorted
and distinct.
Cost: a search for each key and batch, then linear in the rows found, times the logarithm of the number of batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpg.algebra.order import Time, less_equal
from kpg.columns.consolidation import consolidate
from kpg.columns.exact_diffs import MAX_MASS, digit_count, is_exact, join_digits, narrow, with_digits
from kpg.columns.pause_points import aside
from kpg.columns.updates import Ints, Updates, constant, spread, trim
from kpg.kernels.gather_rows import consolidate_keys, copy_histories, copy_rows_as_of, fill_offsets, group_offsets
from kpg.kernels.sum_diffs import sum_diffs
from kpg.trace.batch import Batch, may_leave_64_bits
from kpg.trace.batch_table import table_of
from kpg.trace.locate_batches import locate
from kpg.trace.merger import merge_updates
from kpg.trace.unsorted_batch import searchable

EARLIEST = -(1 << 63)  # joining with it changes no coordinate
SAME_TIME = constant((0,))  # given to all rows of a collection as of one time, so that equal rows consolidate


@dataclass(frozen=True, slots=True, eq=False)
class KeyHistory:
    """The histories of m keys. That of key k is columns offsets[k] to offsets[k + 1], sorted by value, then time."""

    offsets: Ints  # int64[m + 1]
    data: Ints  # int64[value lanes, n]
    times: Ints  # int64[depth, n], never a constant
    diffs: Ints  # int64[width, n], never a constant; Python ints if sums of them may leave 64 bits


def gather(batches: Sequence[Batch], keys: Ints, floor: Time | None, depth: int) -> KeyHistory:
    """Return the history of some keys over all batches, with times extended to `depth` and joined with `floor`.

    Without batches the numbers of lanes are unknown: the result has no value lanes and diffs of one lane.
    """
    if not may_leave_64_bits(batches):
        return _gather(batches, keys, floor, depth)
    digits, split = _split_batches(batches)
    history = _gather(split, keys, floor, depth)
    diffs = join_digits(history.diffs, digits)
    fits = sum(map(abs, diffs.flat)) <= MAX_MASS  # no sum that a reader computes can leave 64 bits
    return replace(history, diffs=narrow(diffs) if fits else diffs)


def _split_batches(batches: Sequence[Batch]) -> tuple[int, list[Batch]]:
    """Return the batches with digits as diffs, and the number of digits of a diff."""
    digits = digit_count([batch.updates for batch in batches])
    return digits, [Batch(with_digits(batch.updates, digits), batch.key_lanes, batch.description) for batch in batches]


def _gather(batches: Sequence[Batch], keys: Ints, floor: Time | None, depth: int) -> KeyHistory:
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
    """Return the sum of the diffs of each key over all values and times: int64[width, m], or Python ints."""
    if not may_leave_64_bits(batches):
        return accumulate_in_64_bits(batches, keys, width)
    digits, split = _split_batches(batches)
    return narrow(join_digits(accumulate_in_64_bits(split, keys, width * digits), digits))


def accumulate_in_64_bits(batches: Sequence[Batch], keys: Ints, width: int) -> Ints:
    """Return the same where the caller knows that no sum can leave 64 bits."""
    lanes, m = keys.shape
    sums = np.zeros((width, m), np.int64)
    if batches:
        table = table_of([batch.row_for_search(m if lanes else 0) for batch in batches])
        sum_diffs(table, keys, np.empty((2, m), np.int64), sums)
    return sums


def distinct_keys(updates: Updates, key_lanes: int) -> tuple[Ints, Ints]:
    """Return the keys of sorted updates, int64[key_lanes, m], and their first rows and the end, int64[m + 1]."""
    data = updates.data
    offsets = np.empty(data.shape[1] + 1, np.int64)
    m = group_offsets(data, key_lanes, offsets)
    return data[:key_lanes].take(offsets[:m], axis=1), offsets[: m + 1].copy()


def read(batches: Sequence[Batch], at: Time, keys: Ints | None) -> tuple[Ints, Ints]:
    """Return the collection as of a time: data int64[lanes, k] in order, and multiplicities int64[width, k], none zero.

    `keys` restricts it to some keys; None means all. `at` must be beyond the since of the batches. Multiplicities that
    leave 64 bits are Python ints.
    """
    if not batches:
        return np.empty((0, 0), np.int64), np.empty((1, 0), np.int64)
    if keys is None:
        rows = _read_batch(batches[-1], at)
        for batch in reversed(batches[:-1]):  # newest and smallest first
            rows = merge_updates(_read_batch(batch, at), rows)
    else:
        batches = [searchable(batch, keys) for batch in batches]
        table, ranges, n = locate(batches, keys)
        rows = _rows_as_of(batches, table, ranges, n, at)
    return rows.data, spread(rows.diffs, len(rows))


def _read_batch(batch: Batch, at: Time) -> Updates:
    """Return the rows of a batch that count as of a time."""
    updates = batch.updates
    if updates.times.shape[1] > 1 or not less_equal(tuple(updates.times[:, 0].tolist()), at):
        everything = np.array([[0], [len(updates)]], np.int64)
        return _rows_as_of([batch], table_of([batch.row]), everything, len(updates), at)
    return updates.with_times(SAME_TIME)


def _rows_as_of(batches: Sequence[Batch], table: Ints, ranges: Ints, n: int, at: Time) -> Updates:
    digits = 0
    if any(is_exact(batch.updates.diffs) for batch in batches):  # the kernel only copies diffs
        digits, batches = _split_batches(batches)
        table = table_of([batch.row for batch in batches])
    lanes, width = _shape(batches, 0)
    data, diffs = np.empty((lanes, n), np.int64), np.empty((width, n), np.int64)
    kept = aside(data.size, _copy_rows, batches, table, ranges, np.array(at, np.int64), data, diffs)
    if digits:
        diffs = narrow(join_digits(diffs, digits))
    rows = Updates(trim(data, kept), SAME_TIME, trim(diffs, kept))
    return aside(rows.data.size, consolidate, rows) if kept > 1 else rows


def _copy_rows(batches: Sequence[Batch], table: Ints, ranges: Ints, at: Ints, data: Ints, diffs: Ints) -> int:
    """Copy the rows as of a time, and return their number; the batches stay in memory meanwhile."""
    return int(copy_rows_as_of(table, ranges, at, data, diffs))


def _shape(batches: Sequence[Batch], lanes: int) -> tuple[int, int]:
    """Return lanes and width of the batches; `lanes` and 1 if there are none."""
    if not batches:
        return lanes, 1
    updates = batches[0].updates
    return updates.data.shape[0], updates.diffs.shape[0]
