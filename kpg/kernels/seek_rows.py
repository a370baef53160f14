"""Pair a few rows with the rows of equal keys in all batches of a trace, in one call for any number of batches.

`data`, `times` and `diffs` are the few rows, sorted by key; those of key k are columns offsets[k] to offsets[k + 1].
`table` describes the batches (kpg.kernels.array_address); `ranges` holds where each batch has the rows of each key
(kpg.kernels.locate_keys).

    count_pairs        returns the number of pairs, and whether all have the one time of the few rows
    write_seek_pairs   writes pairs: data by projection, times joined (missing coordinates are zero), diffs multiplied

The kernel first lists a chunk of pairs as row numbers, then writes the chunk lane by lane. It prefetches rows while it
lists them, so that waits for memory overlap, and the loop over a lane has no branch on the number of rows of a key.
Cost: linear in keys times batches, and in pairs. Twin: kpg.testing.kernel_twins.match_rows_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, peek, prefetch
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

CHUNK_PAIRS = 512  # pairs listed before they are written: prefetched rows are then still in the cache


@jit
def count_pairs(times, offsets, table, ranges):
    """Return the number of pairs, and 1 if all pairs have the one time of the few rows."""
    total = 0
    one_time = times.shape[1] == 1
    for block in range(table.shape[0]):
        for k in range(len(offsets) - 1):
            total += (offsets[k + 1] - offsets[k]) * (ranges[2 * block + 1, k] - ranges[2 * block, k])
        rows = table[block, TIME_ROWS]
        for d in range(table[block, DEPTH]):
            time = times[d, 0] if d < times.shape[0] else 0
            if one_time and rows == 1:
                one_time = peek(table[block, TIMES], d) <= time
            elif one_time:
                for k in range(len(offsets) - 1):
                    for j in range(ranges[2 * block, k], ranges[2 * block + 1, k]):
                        one_time &= peek(table[block, TIMES], d * rows + j) <= time
    return total, 1 if one_time else 0


@inlined
def prefetch_range(table, block, side, projection, start, end):
    """Prefetch the first and the last of the rows [start, end) of a batch, in the lanes that the projection takes."""
    rows = table[block, ROWS]
    for p in range(projection.shape[0]):
        if projection[p, 0] != side:
            prefetch(table[block, DATA], projection[p, 1] * rows + start)
            prefetch(table[block, DATA], projection[p, 1] * rows + end - 1)


@inlined
def write_data(data, table, block, side, projection, few_rows, other_rows, n, out, position):
    """Write the data of the first n pairs: row numbers `few_rows` and, in a batch, `other_rows`."""
    for p in range(projection.shape[0]):
        written = out[p, position : position + n]
        if projection[p, 0] == side:
            values = data[projection[p, 1]]
            for x in range(n):
                written[x] = values[few_rows[x]]
        else:
            lane = projection[p, 1] * table[block, ROWS]
            for x in range(n):
                written[x] = peek(table[block, DATA], lane + other_rows[x])


@inlined
def write_times(times, table, block, few_rows, other_rows, n, out, position):
    """Write the joins of the times of the first n pairs."""
    step = 1 if times.shape[1] > 1 else 0
    rows = table[block, TIME_ROWS]
    other_step = 1 if rows > 1 else 0
    for d in range(out.shape[0]):
        for x in range(n):
            time = times[d, few_rows[x] * step] if d < times.shape[0] else 0
            if d < table[block, DEPTH]:
                time = max(time, peek(table[block, TIMES], d * rows + other_rows[x] * other_step))
            out[d, position + x] = time


@inlined
def write_diffs(diffs, width, table, block, few_rows, other_rows, n, out, position):
    """Write the products of the diffs of the first n pairs."""
    step = 1 if diffs.shape[1] > 1 else 0
    rows = table[block, DIFF_ROWS]
    other_step = 1 if rows > 1 else 0
    for w in range(out.shape[0]):
        values, written = diffs[min(w, diffs.shape[0] - 1)], out[w, position : position + n]
        lane = min(w, width - 1) * rows
        for x in range(n):
            written[x] = values[few_rows[x] * step] * peek(table[block, DIFFS], lane + other_rows[x] * other_step)


@jit
def write_chunk(
    data, times, diffs, table, block, side, width, projection, timed, few_rows, other_rows, n,
    out_data, out_times, out_diffs, position,
):  # fmt: skip
    """Write n pairs, given by their row numbers, from column `position` on; return the new end."""
    write_data(data, table, block, side, projection, few_rows, other_rows, n, out_data, position)
    if timed == 1:
        write_times(times, table, block, few_rows, other_rows, n, out_times, position)
    write_diffs(diffs, width, table, block, few_rows, other_rows, n, out_diffs, position)
    return position + n


@jit
def write_seek_pairs(
    data, times, diffs, offsets, table, ranges, side, width, projection, timed, out_data, out_times, out_diffs
):
    """Write the pairs, with times if `timed` is 1; `side` is that of the few rows, `width` that of the other diffs."""
    few_rows, other_rows = np.empty(CHUNK_PAIRS, np.int64), np.empty(CHUNK_PAIRS, np.int64)
    position = 0
    for block in range(table.shape[0]):
        n = 0
        for k in range(len(offsets) - 1):
            start, end = ranges[2 * block, k], ranges[2 * block + 1, k]
            if start < end:
                prefetch_range(table, block, side, projection, start, end)
            for j in range(start, end):
                for i in range(offsets[k], offsets[k + 1]):
                    few_rows[n] = i
                    other_rows[n] = j
                    n += 1
                    if n == CHUNK_PAIRS:
                        position = write_chunk(
                            data, times, diffs, table, block, side, width, projection, timed, few_rows, other_rows, n,
                            out_data, out_times, out_diffs, position,
                        )  # fmt: skip
                        n = 0
        position = write_chunk(
            data, times, diffs, table, block, side, width, projection, timed, few_rows, other_rows, n,
            out_data, out_times, out_diffs, position,
        )  # fmt: skip


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield count_pairs, (TABLE, COLUMN, TABLE, TABLE)
    yield (
        write_seek_pairs,
        (TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, NUMBER, NUMBER, TABLE, NUMBER, TABLE, TABLE, TABLE),
    )
