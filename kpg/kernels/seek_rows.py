"""Pair a few rows with the rows of equal keys in all batches of a trace, in one call whatever the number of batches.

`data`, `times` and `diffs` are the few rows, sorted by key; those of key k are columns offsets[k] to offsets[k + 1].
`table` describes the batches (kpg.kernels.array_address), and `ranges` says where each has the rows of each key
(kpg.kernels.locate_keys).

    pairs   how many pairs there are, and whether all have the one time of the few rows
    paired  writes them: data by projection, times joined (missing coordinates are zero), diffs multiplied

Pairs are first numbers of rows, some at a time, and then written lane after lane: rows are asked for before they are
read, so that waits for memory pass at the same time, and no lane has to guess again how many rows a key has.
Cost: linear in keys times batches, and in pairs.
Twin: kpg.testing.kernels_operators.match.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, fetch, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

CHUNK = 512  # pairs that are found, then written: what was asked for is still near


@jit
def pairs(times, offsets, table, ranges):
    """How many pairs there are; and 1 if the few rows have one time that no time they are paired with is after."""
    total = 0
    plain = times.shape[1] == 1
    for block in range(table.shape[0]):
        for k in range(len(offsets) - 1):
            total += (offsets[k + 1] - offsets[k]) * (ranges[2 * block + 1, k] - ranges[2 * block, k])
        rows = table[block, TIME_ROWS]
        for d in range(table[block, DEPTH]):
            known = times[d, 0] if d < times.shape[0] else 0
            if plain and rows == 1:
                plain = peek(table[block, TIMES], d) <= known
            elif plain:
                for k in range(len(offsets) - 1):
                    for j in range(ranges[2 * block, k], ranges[2 * block + 1, k]):
                        plain &= peek(table[block, TIMES], d * rows + j) <= known
    return total, 1 if plain else 0


@inlined
def fetch_rows(table, block, side, projection, start, end):
    """Have the rows [start, end) of a batch brought near, or the first and last few of them."""
    rows = table[block, ROWS]
    for p in range(projection.shape[0]):
        if projection[p, 0] != side:
            fetch(table[block, DATA], projection[p, 1] * rows + start)
            fetch(table[block, DATA], projection[p, 1] * rows + end - 1)


@inlined
def gather_data(data, table, block, side, projection, mine, theirs, n, out, at):
    """Write the data of the first n pairs, which are rows of the few and rows of a batch."""
    for p in range(projection.shape[0]):
        written = out[p, at : at + n]
        if projection[p, 0] == side:
            values = data[projection[p, 1]]
            for x in range(n):
                written[x] = values[mine[x]]
        else:
            lane = projection[p, 1] * table[block, ROWS]
            for x in range(n):
                written[x] = peek(table[block, DATA], lane + theirs[x])


@inlined
def gather_times(times, table, block, mine, theirs, n, out, at):
    """Write the joins of the times of the first n pairs."""
    step = 1 if times.shape[1] > 1 else 0
    rows = table[block, TIME_ROWS]
    other_step = 1 if rows > 1 else 0
    for d in range(out.shape[0]):
        for x in range(n):
            time = times[d, mine[x] * step] if d < times.shape[0] else 0
            if d < table[block, DEPTH]:
                time = max(time, peek(table[block, TIMES], d * rows + theirs[x] * other_step))
            out[d, at + x] = time


@inlined
def gather_diffs(diffs, width, table, block, mine, theirs, n, out, at):
    """Write the products of the diffs of the first n pairs."""
    step = 1 if diffs.shape[1] > 1 else 0
    rows = table[block, DIFF_ROWS]
    other_step = 1 if rows > 1 else 0
    for w in range(out.shape[0]):
        values, written = diffs[min(w, diffs.shape[0] - 1)], out[w, at : at + n]
        lane = min(w, width - 1) * rows
        for x in range(n):
            written[x] = values[mine[x] * step] * peek(table[block, DIFFS], lane + theirs[x] * other_step)


@jit
def write(
    data, times, diffs, table, block, side, width, projection, timed, mine, theirs, n,
    out_data, out_times, out_diffs, at,
):  # fmt: skip
    """Write the first n pairs, rows `mine` of the few and `theirs` of a batch, from column `at` on."""
    gather_data(data, table, block, side, projection, mine, theirs, n, out_data, at)
    if timed == 1:
        gather_times(times, table, block, mine, theirs, n, out_times, at)
    gather_diffs(diffs, width, table, block, mine, theirs, n, out_diffs, at)
    return at + n


@jit
def paired(data, times, diffs, offsets, table, ranges, side, width, projection, timed, out_data, out_times, out_diffs):
    """Write the pairs, times if `timed` is 1; `side` is that of the few rows, `width` that of the others' diffs."""
    mine, theirs = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    at = 0
    for block in range(table.shape[0]):
        n = 0
        for k in range(len(offsets) - 1):
            start, end = ranges[2 * block, k], ranges[2 * block + 1, k]
            if start < end:
                fetch_rows(table, block, side, projection, start, end)
            for j in range(start, end):
                for i in range(offsets[k], offsets[k + 1]):
                    mine[n] = i
                    theirs[n] = j
                    n += 1
                    if n == CHUNK:
                        at = write(
                            data, times, diffs, table, block, side, width, projection, timed, mine, theirs, n,
                            out_data, out_times, out_diffs, at,
                        )  # fmt: skip
                        n = 0
        at = write(
            data, times, diffs, table, block, side, width, projection, timed, mine, theirs, n,
            out_data, out_times, out_diffs, at,
        )  # fmt: skip


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield pairs, (TABLE, COLUMN, TABLE, TABLE)
    yield paired, (TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, NUMBER, NUMBER, TABLE, NUMBER, TABLE, TABLE, TABLE)
