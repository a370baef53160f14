"""Read the history of some keys from the batches of a trace.

    gather(batches, keys, floor)  =  for each key  consolidate({(value, join(t, floor), r)  |  (key value, t, r) in any batch})

Joining the times with the floor (the meet of the times that will be asked) is what makes a history short. Keys are sorted and
distinct. Cost: a galloping seek for each key and batch, then linear in what was found (times the logarithm of the batches).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kpg.algebra.order import Time
from kpg.columns.consolidate import consolidate
from kpg.columns.updates import Ints, Updates, constant, spread, trim
from kpg.kernels.gather import boundaries, find, layout, settle_keys, take, total, upto
from kpg.trace.batch import Batch

EARLIEST = -(1 << 63)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """The histories of m keys: those of key k are the columns offsets[k] to offsets[k + 1], sorted by value, then time."""

    offsets: Ints  # int64[m + 1]
    data: Ints  # int64[value lanes, n]
    times: Ints  # int64[depth, n], never a constant
    diffs: Ints  # int64[width, n], never a constant


def gather(batches: Sequence[Batch], keys: Ints, floor: Time | None, depth: int) -> Run:
    """The history of some keys over all batches, times extended to `depth` and joined with `floor`."""
    key_lanes, m = keys.shape
    lanes, width = (batches[0].updates.lanes, batches[0].updates.width) if batches else (key_lanes, 1)
    ranges = np.zeros((2 * len(batches), m), np.int64)
    found = [block for block, batch in enumerate(batches) if find(batch.updates.data, keys, ranges, block)]
    offsets, cursor = np.empty(m + 1, np.int64), np.empty(m, np.int64)
    layout(ranges, offsets, cursor)
    n = int(offsets[m])
    data, times = np.empty((lanes - key_lanes, n), np.int64), np.empty((depth, n), np.int64)
    diffs = np.empty((width, n), np.int64)
    least = np.array(floor if floor is not None else (EARLIEST,) * depth, np.int64)
    for block in found:
        part = batches[block].updates
        take(part.data, part.times, part.diffs, key_lanes, ranges, block, cursor, least, data, times, diffs)
    if len(found) <= 1 and floor is None:
        return Run(offsets, data, times, diffs)
    return _settle(offsets, data, times, diffs, n)


def _settle(offsets: Ints, data: Ints, times: Ints, diffs: Ints, n: int) -> Run:
    order, scratch, ends = np.empty(n, np.int64), np.empty(n, np.int64), np.empty_like(offsets)
    out_data, out_times, out_diffs = np.empty_like(data), np.empty_like(times), np.empty_like(diffs)
    kept = settle_keys(offsets, data, times, diffs, order, scratch, ends, out_data, out_times, out_diffs)
    return Run(ends, trim(out_data, kept), trim(out_times, kept), trim(out_diffs, kept))


def accumulate(batches: Sequence[Batch], keys: Ints) -> Ints:
    """The sum of the diffs of each key over all values and times: int64[width, m]."""
    width = batches[0].updates.width if batches else 1
    out = np.zeros((width, keys.shape[1]), np.int64)
    for batch in batches:
        total(batch.updates.data, batch.updates.diffs, keys, out)
    return out


def distinct_keys(updates: Updates, key_lanes: int) -> tuple[Ints, Ints]:
    """The keys of sorted updates, int64[key_lanes, m], and where each begins and the last ends, int64[m + 1]."""
    data = updates.data
    offsets = np.empty(data.shape[1] + 1, np.int64)
    m = boundaries(data, key_lanes, offsets)
    return data[:key_lanes].take(offsets[:m], axis=1), offsets[: m + 1].copy()


def read(batches: Sequence[Batch], at: Time, keys: Ints | None) -> tuple[Ints, Ints]:
    """The collection as of a time: data int64[lanes, k] in order and its multiplicity int64[width, k], none zero.

    Of all keys if `keys` is None. `at` must be beyond the since of the batches.
    """
    if not batches:
        return np.empty((0, 0), np.int64), np.empty((1, 0), np.int64)
    lanes, width = batches[0].updates.lanes, batches[0].updates.width
    ranges = [_ranges(batch, keys) for batch in batches]
    n = sum(end - start for parts in ranges for start, end in parts)
    data, diffs = np.empty((lanes, n), np.int64), np.empty((width, n), np.int64)
    time = np.array(at, np.int64)
    o = 0
    for batch, parts in zip(batches, ranges, strict=True):
        part = batch.updates
        for start, end in parts:
            o = upto(part.data, part.times, part.diffs, start, end, time, data, diffs, o)
    rows = consolidate(Updates(trim(data, o), constant((0,)), trim(diffs, o)))
    return rows.data, spread(rows.diffs, len(rows))


def _ranges(batch: Batch, keys: Ints | None) -> list[tuple[int, int]]:
    if keys is None:
        return [(0, len(batch))]
    ranges = np.empty((2, keys.shape[1]), np.int64)
    find(batch.updates.data, keys, ranges, 0)
    return [(start, end) for start, end in ranges.T.tolist() if start < end]
