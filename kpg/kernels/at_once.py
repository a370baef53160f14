"""What changes in sums or presence when new updates come at one time after all others, straight from the batches.

    changed   for each key:  old = Σ diffs of its rows in the batches,  new = old + Σ diffs of its new rows
              PRESENCE   a row without values, +1 or −1 where "lane 0 is at least …" changes
              SUMS       −old +new, a row being the sums themselves, none where all are zero; the lesser first

`keys` are the keys of the new rows, sorted and distinct; the new rows of key k are columns offsets[k] to offsets[k + 1]
of `diffs`, or column k if there are no offsets. `table` and `ranges` are as in kpg.kernels.gather. Rows come out as a
batch has them: key, then values, in order. Cost: one pass over keys and batches; rows of large batches are asked for
before they are read. Twins: kpg.testing.kernels_operators.sums_changes and .presence_changes.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.address import DIFF_ROWS, DIFFS, fetch, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.react import PRESENCE

AHEAD = 16  # keys between asking for rows and reading them


@inlined
def put(keys, k, sums, values, diff, out, out_diffs, n):
    """Write a row; returns how many there are then."""
    lanes = keys.shape[0]
    for lane in range(lanes):
        out[lane, n] = keys[lane, k]
    for lane in range(values):
        out[lanes + lane, n] = sums[lane]
    out_diffs[0, n] = diff
    return n + 1


@inlined
def add_known(table, ranges, k, sums):
    """Add the diffs of the rows of key k in all batches."""
    for block in range(table.shape[0]):
        start, end = ranges[2 * block, k], ranges[2 * block + 1, k]
        if start < end:
            rows = table[block, DIFF_ROWS]
            for lane in range(len(sums)):
                if rows == 1:
                    sums[lane] += peek(table[block, DIFFS], lane) * (end - start)
                else:
                    for row in range(start, end):
                        sums[lane] += peek(table[block, DIFFS], lane * rows + row)


@jit
def changed(kind, at_least, keys, offsets, diffs, table, ranges, out, out_diffs):
    """Write the changes of all keys; returns how many. There is room for two of each, or one if nothing is known."""
    width = diffs.shape[0]
    step = 1 if diffs.shape[1] > 1 else 0
    old, new = np.empty(width, np.int64), np.empty(width, np.int64)
    m = keys.shape[1]
    n = 0
    for k in range(m):
        if k + AHEAD < m:
            for block in range(table.shape[0]):
                if table[block, DIFF_ROWS] > 1:
                    fetch(table[block, DIFFS], ranges[2 * block, k + AHEAD])
        for lane in range(width):
            old[lane] = 0
        add_known(table, ranges, k, old)
        first, last = (offsets[k], offsets[k + 1]) if len(offsets) > 0 else (k, k + 1)
        order = 0
        was, now = False, False
        for lane in range(width):
            total = old[lane]
            if step == 0:
                total += (last - first) * diffs[lane, 0]
            else:
                for i in range(first, last):
                    total += diffs[lane, i]
            new[lane] = total
            if order == 0:
                order = (1 if old[lane] > total else 0) - (1 if old[lane] < total else 0)
            was = was or old[lane] != 0
            now = now or total != 0
        if kind == PRESENCE:
            there = 1 if new[0] >= at_least else 0
            there -= 1 if old[0] >= at_least else 0
            if there != 0:
                n = put(keys, k, new, 0, there, out, out_diffs, n)
        elif order < 0:
            if was:
                n = put(keys, k, old, width, -1, out, out_diffs, n)
            if now:
                n = put(keys, k, new, width, 1, out, out_diffs, n)
        elif order > 0:
            if now:
                n = put(keys, k, new, width, 1, out, out_diffs, n)
            if was:
                n = put(keys, k, old, width, -1, out, out_diffs, n)
    return n


def examples() -> Iterator[Example]:
    """How the engine calls this kernel."""
    yield changed, (NUMBER, NUMBER, TABLE, COLUMN, TABLE, TABLE, TABLE, TABLE, TABLE)
