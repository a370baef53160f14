"""Pair a few rows with the rows of equal keys in all batches of a trace, in one call whatever the number of batches.

`data`, `times` and `diffs` are the few rows, sorted by key; those of key k are columns offsets[k] to offsets[k + 1].
`table` describes the batches (kpg.kernels.address), and `ranges` says where each has the rows of each key
(kpg.kernels.locate). Rows of large batches are asked for some keys before they are read.

    pairs   how many pairs there are
    paired  writes them: data by projection, times joined (missing coordinates are zero), diffs multiplied

Cost: linear in keys times batches, and in pairs. Twin: kpg.testing.kernels_operators.match.
"""

from collections.abc import Iterator

from kpg.kernels.address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, fetch, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

AHEAD = 8  # keys between asking for rows and reading them


@jit
def pairs(offsets, ranges):
    """How many pairs there are."""
    total = 0
    for block in range(ranges.shape[0] // 2):
        for k in range(len(offsets) - 1):
            total += (offsets[k + 1] - offsets[k]) * (ranges[2 * block + 1, k] - ranges[2 * block, k])
    return total


@inlined
def fetch_rows(table, block, start, side, projection):
    """Have a row of a batch brought near."""
    rows = table[block, ROWS]
    for p in range(projection.shape[0]):
        if projection[p, 0] != side:
            fetch(table[block, DATA], projection[p, 1] * rows + start)
    if table[block, TIME_ROWS] > 1:
        for d in range(table[block, DEPTH]):
            fetch(table[block, TIMES], d * rows + start)
    if table[block, DIFF_ROWS] > 1:
        fetch(table[block, DIFFS], start)


@jit
def paired(data, times, diffs, offsets, table, ranges, side, width, projection, out_data, out_times, out_diffs):
    """Write the pairs; `side` is that of the few rows, `width` that of the others' diffs.

    Returns 1 if all times came out alike, else 0; and the same of diffs.
    """
    time_step = 1 if times.shape[1] > 1 else 0
    diff_step = 1 if diffs.shape[1] > 1 else 0
    keys = len(offsets) - 1
    n = 0
    times_alike = 1
    diffs_alike = 1
    for block in range(table.shape[0]):
        rows = table[block, ROWS]
        other_time_step = 1 if table[block, TIME_ROWS] > 1 else 0
        other_diff_step = 1 if table[block, DIFF_ROWS] > 1 else 0
        for k in range(keys):
            if k + AHEAD < keys and ranges[2 * block, k + AHEAD] < ranges[2 * block + 1, k + AHEAD]:
                fetch_rows(table, block, ranges[2 * block, k + AHEAD], side, projection)
            for j in range(ranges[2 * block, k], ranges[2 * block + 1, k]):
                for i in range(offsets[k], offsets[k + 1]):
                    for p in range(projection.shape[0]):
                        lane = projection[p, 1]
                        if projection[p, 0] == side:
                            out_data[p, n] = data[lane, i]
                        else:
                            out_data[p, n] = peek(table[block, DATA], lane * rows + j)
                    for d in range(out_times.shape[0]):
                        time = 0
                        if d < times.shape[0]:
                            time = times[d, i * time_step]
                        if d < table[block, DEPTH]:
                            other = peek(table[block, TIMES], d * table[block, TIME_ROWS] + j * other_time_step)
                            time = max(time, other)
                        out_times[d, n] = time
                        if time != out_times[d, 0]:
                            times_alike = 0
                    for w in range(out_diffs.shape[0]):
                        mine = diffs[min(w, diffs.shape[0] - 1), i * diff_step]
                        at = min(w, width - 1) * table[block, DIFF_ROWS] + j * other_diff_step
                        out_diffs[w, n] = mine * peek(table[block, DIFFS], at)
                        if out_diffs[w, n] != out_diffs[w, 0]:
                            diffs_alike = 0
                    n += 1
    return times_alike, diffs_alike


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield pairs, (COLUMN, TABLE)
    yield paired, (TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, NUMBER, NUMBER, TABLE, TABLE, TABLE, TABLE)
