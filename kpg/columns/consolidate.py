"""Sum the diffs of equal updates, in the order of (data, time).

    consolidate({(d, t, r)})  =  {(d, t, Σ r)  |  Σ r ≠ 0}        sorted lexicographically by data lanes, then time lanes

A constant time stays constant; diffs that come out equal become a constant. Ways, the first that applies:

    few rows                          one kernel sorts positions by insertion
    a row fits into 63 bits           lanes are packed after subtracting their least value, and the words sorted
    with its position into 63 bits    likewise, when diffs differ: the position finds the diff
    otherwise                         positions are sorted lane by lane
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints, Updates, trim
from kpg.kernels.consolidate import sum_few, sum_ordered, sum_words, uniform
from kpg.kernels.sort import bounds, number, pack

FEW = 64
WORD_BITS = 63  # so that words are never negative


def consolidate(updates: Updates) -> Updates:
    """The same accumulated diffs, each (data, time) once and in order."""
    n = updates.data.shape[1]
    if n == 0:
        return updates
    if n <= FEW:
        return _few(updates, n)
    fields = _fields(updates)
    if fields is None:
        return _ordered(updates, n)
    return _packed(updates, n, fields)


def _few(updates: Updates, n: int) -> Updates:
    data, times, diffs = updates.data, updates.times, updates.diffs
    out_data = np.empty((data.shape[0], n), np.int64)
    out_times = np.empty((times.shape[0], n), np.int64)
    out_diffs = np.empty((diffs.shape[0], n), np.int64)
    kept = sum_few(data, times, diffs, np.empty(n, np.int64), out_data, out_times, out_diffs)
    return _finish(updates, kept, out_data, out_times, out_diffs)


def _finish(updates: Updates, kept: int, data: Ints, times: Ints, diffs: Ints) -> Updates:
    if updates.times.shape[1] == 1 or kept == 0:
        times = updates.times[:, :1].copy() if updates.times.shape[1] != 1 else updates.times
    else:
        times = compact_block(times, kept)
    return Updates(trim(data, kept), times, compact_block(diffs, kept))


def compact_block(block: Ints, n: int) -> Ints:
    """The first n columns, as one column if they are alike."""
    if n == 0 or uniform(block, n):
        return block[:, :1].copy() if block.shape[1] else np.ones((block.shape[0], 1), np.int64)
    return trim(block, n)


def _fields(updates: Updates) -> Ints | None:
    """Low, shift and mask of each data lane, and of each time lane unless the time is constant; none if too wide."""
    blocks = [updates.data] if updates.times.shape[1] == 1 else [updates.data, updates.times]
    lows: list[int] = []
    bits: list[int] = []
    for block in blocks:
        ends = np.empty((2, block.shape[0]), np.int64)
        bounds(block, ends[0], ends[1])
        least, most = ends.tolist()
        lows += least
        bits += [(high - low).bit_length() for low, high in zip(least, most, strict=True)]
    if sum(bits) > WORD_BITS:
        return None
    shifts: list[int] = []
    shift = sum(bits)
    for width in bits:
        shift -= width
        shifts.append(shift)
    return np.array([lows, shifts, [(1 << width) - 1 for width in bits]], np.int64).reshape(3, len(bits))


def _packed(updates: Updates, n: int, fields: Ints) -> Updates:
    data, times, diffs = updates.data, updates.times, updates.diffs
    lanes = data.shape[0]
    drop = 0 if diffs.shape[1] == 1 else n.bit_length()
    bits = 0 if fields.shape[1] == 0 else (int(fields[1, 0]) + int(fields[2, 0]).bit_length())
    if bits + drop > WORD_BITS:
        return _ordered(updates, n)
    words = np.empty(n, np.int64)
    pack(data, fields[0], fields[1], 1, words)
    if times.shape[1] > 1:
        pack(times, fields[0, lanes:], fields[1, lanes:], 0, words)
    if drop:
        number(drop, words)
    words.sort()
    out_data = np.empty(data.shape, np.int64)
    out_times = np.empty(times.shape, np.int64)
    out_diffs = np.empty((diffs.shape[0], n), np.int64)
    kept = sum_words(words, drop, fields, lanes, diffs, out_data, out_times, out_diffs)
    return _finish(updates, kept, out_data, out_times, out_diffs)


def _ordered(updates: Updates, n: int) -> Updates:
    data, times, diffs = updates.data, updates.times, updates.diffs
    lanes = list(data) if times.shape[1] == 1 else [*data, *times]
    order = np.lexsort(lanes[::-1])
    out_data = np.empty(data.shape, np.int64)
    out_times = np.empty(times.shape, np.int64)
    out_diffs = np.empty((diffs.shape[0], n), np.int64)
    kept = sum_ordered(data, times, diffs, order, out_data, out_times, out_diffs)
    return _finish(updates, kept, out_data, out_times, out_diffs)
