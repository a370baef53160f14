"""Sum the diffs of equal updates.

    consolidate({(d, t, r)})  =  {(d, t, Σ r)  |  Σ r ≠ 0}        in order of (d, t)

Each kernel writes to the front of its outputs and returns how many updates remain; outputs have room for every row.
Rows come as positions in order, or packed into words (kpg.kernels.sort). Cost: one pass.
Twins: kpg.testing.kernels_trace.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.sort import CHUNK, compare_rows


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
        values = block[lane]
        for i in range(1, n):
            if values[i] != values[0]:
                return 0
    return 1


@jit
def sum_ordered(data, times, diffs, order, out_data, out_times, out_diffs):
    """Consolidate the rows at the positions in `order`, which sorts them by data, then time."""
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
        while i < n and compare_rows(data, times, time_step, row, order[i]) == 0:
            for lane in range(diffs.shape[0]):
                out_diffs[lane, kept] += diffs[lane, order[i] * diff_step]
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
    """Consolidate a few rows in any order; `order` is scratch, one entry a row. Sorts by insertion."""
    time_step = 1 if times.shape[1] > 1 else 0
    for i in range(len(order)):
        j = i
        while j > 0 and compare_rows(data, times, time_step, order[j - 1], i) > 0:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    return sum_ordered(data, times, diffs, order, out_data, out_times, out_diffs)


@jit
def sum_words(words, diff_bits, low, mask, shift, out):
    """Consolidate sorted words in place; returns how many remain.

    The lowest `diff_bits` bits of a word hold its diff, lane by lane as (low, mask, shift) say; with 0 bits, every diff
    is `low`. Afterwards words[:kept] are without those bits, and out[:, :kept] the sums.
    """
    n = len(words)
    width = out.shape[0]
    kept = 0
    i = 0
    while i < n:
        word = words[i] >> diff_bits
        start = i
        if diff_bits == 0:
            i += 1
            while i < n and words[i] == word:
                i += 1
            for lane in range(width):
                out[lane, kept] = low[lane] * (i - start)
        else:
            for lane in range(width):
                out[lane, kept] = 0
            while i < n and words[i] >> diff_bits == word:
                for lane in range(width):
                    out[lane, kept] += ((words[i] >> shift[lane]) & mask[lane]) + low[lane]
                i += 1
        words[kept] = word
        if not is_zero(out, kept):
            kept += 1
    return kept


@jit
def unpack(words, n, low, mask, shift, out):
    """Write the lanes of the first n words."""
    for start in range(0, n, CHUNK):
        end = min(n, start + CHUNK)
        part = words[start:end]
        for lane in range(out.shape[0]):
            values = out[lane, start:end]
            least, bits, place = low[lane], mask[lane], shift[lane]
            for i in range(len(part)):
                values[i] = ((part[i] >> place) & bits) + least


@jit
def tally(words, diffs, table):
    """Add the diff of each word to its place in the table."""
    if diffs.shape[1] == 1:
        diff = diffs[0, 0]
        for i in range(len(words)):
            table[words[i]] += diff
    else:
        values = diffs[0]
        for i in range(len(words)):
            table[words[i]] += values[i]


@jit
def tallied(table, words, out):
    """Write the words whose place in the table is not zero, and their sums; returns how many."""
    kept = 0
    for word in range(len(table)):
        if table[word] != 0:
            words[kept] = word
            out[0, kept] = table[word]
            kept += 1
    return kept


def examples() -> Iterator[Example]:
    """How Python calls these."""
    yield uniform, (TABLE, NUMBER)
    yield sum_ordered, (TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE)
    yield sum_few, (TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE)
    yield sum_words, (COLUMN, NUMBER, COLUMN, COLUMN, COLUMN, TABLE)
    yield unpack, (COLUMN, NUMBER, COLUMN, COLUMN, COLUMN, TABLE)
    yield tally, (COLUMN, TABLE, COLUMN)
    yield tallied, (COLUMN, COLUMN, TABLE)
