"""Sum the diffs of equal updates.

    consolidate({(d, t, r)})  =  {(d, t, Σ r)  |  Σ r ≠ 0}        in order of (d, t)

Each kernel fills the front of its outputs and returns how many updates remain. Outputs have a column for each input row;
`out_times` is left alone when the times are constant (one column). Cost: one pass over rows that are in order.
Twins: kpg.testing.kernels_trace.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit


@jit
def compare(a, i, b, j):
    """Below, at or above 0 as column i of a sorts before, with or after column j of b."""
    for lane in range(a.shape[0]):
        x = a[lane, i]
        y = b[lane, j]
        if x < y:
            return -1
        if x > y:
            return 1
    return 0


@jit
def is_zero(block, i):
    """Whether a column is all zeros."""
    for lane in range(block.shape[0]):
        if block[lane, i] != 0:
            return False
    return True


@jit
def uniform(block, n):
    """1 if the first n columns are all alike, else 0."""
    for lane in range(block.shape[0]):
        first = block[lane, 0]
        for i in range(1, n):
            if block[lane, i] != first:
                return 0
    return 1


@jit
def sum_ordered(data, times, diffs, order, out_data, out_times, out_diffs):
    """Consolidate the rows taken in `order`, which sorts them by data, then time."""
    n = len(order)
    time_step = 1 if times.shape[1] > 1 else 0
    diff_step = 1 if diffs.shape[1] > 1 else 0
    kept = 0
    i = 0
    while i < n:
        row = order[i]
        for lane in range(diffs.shape[0]):
            out_diffs[lane, kept] = diffs[lane, row * diff_step]
        i += 1
        while i < n:
            other = order[i]
            if compare(data, row, data, other) != 0:
                break
            if time_step == 1 and compare(times, row, times, other) != 0:
                break
            for lane in range(diffs.shape[0]):
                out_diffs[lane, kept] += diffs[lane, other * diff_step]
            i += 1
        if not is_zero(out_diffs, kept):
            for lane in range(data.shape[0]):
                out_data[lane, kept] = data[lane, row]
            if time_step == 1:
                for lane in range(times.shape[0]):
                    out_times[lane, kept] = times[lane, row]
            kept += 1
    return kept


@jit
def sum_few(data, times, diffs, order, out_data, out_times, out_diffs):
    """Consolidate a few rows in any order; `order` is scratch, one entry a row."""
    n = len(order)
    time_step = 1 if times.shape[1] > 1 else 0
    for i in range(n):
        j = i
        while j > 0:
            before = order[j - 1]
            sign = compare(data, before, data, i)
            if sign == 0 and time_step == 1:
                sign = compare(times, before, times, i)
            if sign <= 0:
                break
            order[j] = before
            j -= 1
        order[j] = i
    return sum_ordered(data, times, diffs, order, out_data, out_times, out_diffs)


@jit
def sum_words(words, drop, fields, lanes, diffs, out_data, out_times, out_diffs):
    """Consolidate sorted words.

    `fields` is int64[3, f]: low, shift and mask of each data lane, then of each time lane if the times are packed.
    Below `drop` bits stands the position of the row, whose diff is then in `diffs`; with 0, `diffs` is constant.
    """
    n = len(words)
    width = diffs.shape[0]
    mask = (1 << drop) - 1
    kept = 0
    i = 0
    while i < n:
        word = words[i]
        row = word >> drop
        start = i
        if drop == 0:
            i += 1
            while i < n and words[i] == word:
                i += 1
            for lane in range(width):
                out_diffs[lane, kept] = diffs[lane, 0] * (i - start)
        else:
            for lane in range(width):
                out_diffs[lane, kept] = 0
            while i < n and words[i] >> drop == row:
                position = words[i] & mask
                for lane in range(width):
                    out_diffs[lane, kept] += diffs[lane, position]
                i += 1
        if not is_zero(out_diffs, kept):
            for lane in range(lanes):
                out_data[lane, kept] = ((row >> fields[1, lane]) & fields[2, lane]) + fields[0, lane]
            for lane in range(lanes, fields.shape[1]):
                out_times[lane - lanes, kept] = ((row >> fields[1, lane]) & fields[2, lane]) + fields[0, lane]
            kept += 1
    return kept


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield uniform, (TABLE, NUMBER)
    yield sum_ordered, (TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE)
    yield sum_few, (TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE)
    yield sum_words, (COLUMN, NUMBER, TABLE, NUMBER, TABLE, TABLE, TABLE, TABLE)
