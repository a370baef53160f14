"""Sum the diffs of equal updates.

    consolidate({(d, t, r)})  =  {(d, t, Σ r)  |  Σ r ≠ 0}        in order of (d, t)

Each kernel writes to the front of its outputs and returns how many updates remain; outputs have room for every row.
Rows come as positions in order, or packed into words (kpg.kernels.sort_rows). Cost: one pass.
Twins: kpg.testing.kernels_trace.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.sort_rows import CHUNK, compare_rows


@inlined
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
def sum_few(data, times, diffs, order, out_data, out_times, out_diffs):
    """Consolidate a few rows in any order; `order` is scratch, one entry a row. Sorts by binary insertion."""
    time_step = 1 if times.shape[1] > 1 else 0
    for i in range(len(order)):
        low = 0
        high = i
        if i > 0 and compare_rows(data, times, time_step, order[i - 1], i) <= 0:
            low = i
        while low < high:
            middle = (low + high) >> 1
            if compare_rows(data, times, time_step, order[middle], i) <= 0:
                low = middle + 1
            else:
                high = middle
        for j in range(i, low, -1):
            order[j] = order[j - 1]
        order[low] = i
    kept = sum_positions(data, times, diffs, order, -1, 0, out_diffs)
    for i in range(kept):
        for lane in range(data.shape[0]):
            out_data[lane, i] = data[lane, order[i]]
        if time_step == 1:
            for lane in range(times.shape[0]):
                out_times[lane, i] = times[lane, order[i]]
    return kept


@jit
def sum_positions(data, times, diffs, words, mask, exact, out_diffs):
    """Consolidate rows that are in order, given by their positions: the bits of each word that are in `mask`.

    The other bits tell rows apart where they differ, and always if `exact` is 1. Leaves the word of one row of each sum
    that remains, and returns how many.
    """
    n = len(words)
    time_step = 1 if times.shape[1] > 1 else 0
    diff_step = 1 if diffs.shape[1] > 1 else 0
    kept = 0
    i = 0
    while i < n:
        word = words[i]
        row = word & mask
        for lane in range(diffs.shape[0]):
            out_diffs[lane, kept] = diffs[lane, row * diff_step]
        i += 1
        while i < n:
            other = words[i] & mask
            if (words[i] ^ word) & ~mask != 0 or (exact == 0 and compare_rows(data, times, time_step, row, other) != 0):
                break
            for lane in range(diffs.shape[0]):
                out_diffs[lane, kept] += diffs[lane, other * diff_step]
            i += 1
        words[kept] = word
        if not is_zero(out_diffs, kept):
            kept += 1
    return kept


@jit
def distinct(words, bits):
    """How many sorted words differ above their lowest `bits` bits; there must be one."""
    count = 1
    for i in range(1, len(words)):
        count += words[i] >> bits != words[i - 1] >> bits
    return count


@jit
def count_words(words, diff, out):
    """Consolidate sorted words, each of the same diff, in place: words[:kept] and out[:, :kept]; returns kept."""
    n = len(words)
    kept = 0
    start = 0
    counts = out[0]
    for i in range(1, n):
        words[kept] = words[i - 1]
        counts[kept] = i - start
        new = words[i] != words[i - 1]
        kept += new
        start = i if new else start
    words[kept] = words[n - 1]
    counts[kept] = n - start
    kept += 1
    for lane in range(out.shape[0] - 1, -1, -1):
        for i in range(kept):
            out[lane, i] = counts[i] * diff[lane]
    return kept


@jit
def sum_words(words, diff_bits, low, mask, shift, out):
    """Consolidate sorted words whose lowest bits hold the diff, as (low, mask, shift) of each lane say, in place.

    Returns how many remain; their diffs are in `out`, and the words keep some of the diffs' bits.
    """
    n = len(words)
    width = out.shape[0]
    if width == 1 and n > 0:
        return sum_numbers(words, diff_bits, low[0], mask[0], 1, out)
    kept = 0
    i = 0
    while i < n:
        first = words[i]
        for lane in range(width):
            out[lane, kept] = 0
        while i < n and words[i] >> diff_bits == first >> diff_bits:
            for lane in range(width):
                out[lane, kept] += ((words[i] >> shift[lane]) & mask[lane]) + low[lane]
            i += 1
        words[kept] = first
        if not is_zero(out, kept):
            kept += 1
    return kept


@inlined
def sum_numbers(words, bits, low, mask, scale, out):
    """Sum the diffs of sorted words, at least one, in place: low + scale * (word & mask), in their lowest `bits` bits.

    No branch depends on what is equal: that would be guessed wrong every other time.
    """
    sums = out[0]
    kept = 0
    total = 0
    last = words[0]
    for i in range(len(words)):
        word = words[i]
        new = word >> bits != last >> bits
        kept += new & (total != 0)
        total = (0 if new else total) + scale * (word & mask) + low
        words[kept] = word
        sums[kept] = total
        last = word
    return kept + (total != 0)


@jit
def weight(diffs):
    """How many words of diff 1 or -1 the diffs come to; or -1 if that is more than twice as many as there are diffs."""
    total = 0
    most = 2 * len(diffs)
    for i in range(len(diffs)):
        if diffs[i] > most or diffs[i] < -most or total > most:
            return -1
        total += abs(diffs[i])
    return total if total <= most else -1


@jit
def sign(words, diffs, out):
    """Write each word as often as its diff says, with a last bit more: 1 if it is added, 0 if it is taken away."""
    n = 0
    for i in range(len(words)):
        word = (words[i] << 1) | (diffs[i] > 0)
        for _ in range(abs(diffs[i])):
            out[n] = word
            n += 1


@jit
def sum_signs(words, out):
    """Consolidate sorted words that `sign` wrote, of which there must be one, in place; returns how many remain.

    Their diffs are in row 0 of `out`.
    """
    return sum_numbers(words, 1, -1, 1, 2, out)


@jit
def unpack(words, n, low, mask, shift, out):
    """Write the lanes of the first n words, which may themselves be the last lane."""
    for start in range(0, n, CHUNK):
        end = min(n, start + CHUNK)
        part = words[start:end]
        for lane in range(out.shape[0]):
            values = out[lane, start:end]
            least, bits, place = low[lane], mask[lane], shift[lane]
            for i in range(len(part)):
                values[i] = ((part[i] >> place) & bits) + least


@jit
def pick(block, lane, words, mask, n, out):
    """Write one lane of the rows whose positions are in the first n words, in the bits of `mask`."""
    values, taken = block[lane], out[lane]
    for i in range(n):
        taken[i] = values[words[i] & mask]


@jit
def tally(data, times, low, shift, diffs, table):
    """Add the diff of each row to the place of its word in the table; constant times are no part of the word.

    The words are made a few at a time, as kpg.kernels.sort_rows packs them whole.
    """
    words = np.empty(CHUNK, np.int64)
    lanes, depth = data.shape[0], times.shape[0] if times.shape[1] > 1 else 0
    for start in range(0, data.shape[1], CHUNK):
        count = min(CHUNK, data.shape[1] - start)
        for i in range(count):
            words[i] = 0
        for lane in range(lanes + depth):
            values = data[lane, start : start + count] if lane < lanes else times[lane - lanes, start : start + count]
            least, place = low[lane], shift[lane]
            for i in range(count):
                words[i] |= (values[i] - least) << place
        if diffs.shape[1] == 1:
            diff = diffs[0, 0]
            for i in range(count):
                table[words[i]] += diff
        else:
            values = diffs[0, start : start + count]
            for i in range(count):
                table[words[i]] += values[i]


@jit
def tallied(table, words, out):
    """Write the words whose place in the table is not zero, and their sums; returns how many.

    No branch depends on which these are, as that would be guessed wrong every other time.
    """
    sums = out[0]
    kept = 0
    for word in range(len(table)):
        words[kept] = word
        sums[kept] = table[word]
        kept += table[word] != 0
    return kept


@jit
def slide(flat, lanes, room, kept):
    """Close the gaps between the lanes of a flat block with room for `room` columns, of which `kept` are used."""
    for lane in range(1, lanes):
        for i in range(kept):
            flat[lane * kept + i] = flat[lane * room + i]


def examples() -> Iterator[Example]:
    """How Python calls these."""
    yield uniform, (TABLE, NUMBER)
    yield sum_positions, (TABLE, TABLE, TABLE, COLUMN, NUMBER, NUMBER, TABLE)
    yield pick, (TABLE, NUMBER, COLUMN, NUMBER, NUMBER, TABLE)
    yield sum_few, (TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE)
    yield distinct, (COLUMN, NUMBER)
    yield count_words, (COLUMN, COLUMN, TABLE)
    yield sum_words, (COLUMN, NUMBER, COLUMN, COLUMN, COLUMN, TABLE)
    yield weight, (COLUMN,)
    yield sign, (COLUMN, COLUMN, COLUMN)
    yield sum_signs, (COLUMN, TABLE)
    yield unpack, (COLUMN, NUMBER, COLUMN, COLUMN, COLUMN, TABLE)
    yield tally, (TABLE, TABLE, COLUMN, COLUMN, TABLE, COLUMN)
    yield slide, (COLUMN, NUMBER, NUMBER, NUMBER)
    yield tallied, (COLUMN, COLUMN, TABLE)
