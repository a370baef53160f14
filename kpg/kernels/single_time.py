"""Compute the changes of sums or presence caused by updates at one time that is after all others.

    single_time_changes   for each key:  new = old + Σ diffs of its new rows
              PRESENCE   a row without values, with diff +1 or −1, if "lane 0 ≥ at_least" differs between old and new
              SUMS       row `old` with diff −1 and row `new` with diff +1, the lesser first; a row of zeros is left out

`keys` holds the keys of the new rows, sorted and distinct. The new rows of key k are columns offsets[k] to offsets[k +
1] of `diffs`, or column k if there are no offsets. `old`, int64[width, m], holds the sums before. The output has the
form of batch rows: key, then values, sorted. Cost: one pass over keys and new rows. Counts and sums of one lane, the
most frequent case, are written without branches, because the processor cannot predict whether a count rises or falls.
Twins: `sums_changes` and `presence_changes` in kpg.testing.kernel_twins.sweep_totals_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.one_pass_corrections import PRESENCE, SUMS


@inlined
def write_row(keys, k, sums, values, diff, out, out_diffs, n):
    """Write a row; return the new number of rows."""
    lanes = keys.shape[0]
    for lane in range(lanes):
        out[lane, n] = keys[lane, k]
    for lane in range(values):
        out[lanes + lane, n] = sums[lane]
    out_diffs[0, n] = diff
    return n + 1


@jit
def changes_of_one_lane(keys, offsets, diffs, old, out, out_diffs):
    """Write the changes of sums of one lane: write both rows of each key, and overwrite those that are no change."""
    lanes = keys.shape[0]
    step = 1 if diffs.shape[1] > 1 else 0
    values, signs = out[lanes], out_diffs[0]
    n = 0
    for k in range(keys.shape[1]):
        was = old[0, k]
        now = was
        if len(offsets) == 0:
            now += diffs[0, k * step]
        else:
            for i in range(offsets[k], offsets[k + 1]):
                now += diffs[0, i * step]
        sign = 2 * np.int64(was > now) - 1  # of the lesser row
        changed = np.int64(was != now)
        for lane in range(lanes):
            out[lane, n] = keys[lane, k]
        values[n], signs[n] = min(was, now), sign
        n += changed & np.int64(min(was, now) != 0)
        for lane in range(lanes):
            out[lane, n] = keys[lane, k]
        values[n], signs[n] = max(was, now), -sign
        n += changed & np.int64(max(was, now) != 0)
    return n


@jit
def single_time_changes(kind, at_least, keys, offsets, diffs, old, out, out_diffs):
    """Write the changes of all keys; return their number.

    `out` has two columns per key; one is enough if the old sums of all keys are zero.
    """
    width = diffs.shape[0]
    if kind == SUMS and width == 1 and out.shape[1] >= 2 * keys.shape[1]:
        return changes_of_one_lane(keys, offsets, diffs, old, out, out_diffs)
    step = 1 if diffs.shape[1] > 1 else 0
    before, new = np.empty(width, np.int64), np.empty(width, np.int64)
    n = 0
    for k in range(keys.shape[1]):
        first, last = (offsets[k], offsets[k + 1]) if len(offsets) > 0 else (k, k + 1)
        order = 0
        had_row, has_row = False, False
        for lane in range(width):
            total = before[lane] = old[lane, k]
            if step == 0:
                total += (last - first) * diffs[lane, 0]
            else:
                for i in range(first, last):
                    total += diffs[lane, i]
            new[lane] = total
            if order == 0:
                order = (1 if old[lane, k] > total else 0) - (1 if old[lane, k] < total else 0)
            had_row = had_row or old[lane, k] != 0
            has_row = has_row or total != 0
        if kind == PRESENCE:
            presence_change = 1 if new[0] >= at_least else 0
            presence_change -= 1 if old[0, k] >= at_least else 0
            if presence_change != 0:
                n = write_row(keys, k, new, 0, presence_change, out, out_diffs, n)
        elif order < 0:
            if had_row:
                n = write_row(keys, k, before, width, -1, out, out_diffs, n)
            if has_row:
                n = write_row(keys, k, new, width, 1, out, out_diffs, n)
        elif order > 0:
            if has_row:
                n = write_row(keys, k, new, width, 1, out, out_diffs, n)
            if had_row:
                n = write_row(keys, k, before, width, -1, out, out_diffs, n)
    return n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield single_time_changes, (NUMBER, NUMBER, TABLE, COLUMN, TABLE, TABLE, TABLE, TABLE)
