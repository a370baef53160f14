"""Sum the diffs of equal updates.

    consolidate({(d, t, r)})  =  {(d, t, Σ r)  |  Σ r ≠ 0}        in order of (d, t)

Each kernel writes to the front of its outputs, which have space for every row, and returns the number of updates that
remain. It takes rows as sorted positions, or packed into words (kpg.kernels.sort_rows). Cost: one pass.
Twin: kpg.testing.kernel_twins.consolidate_rows_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NARROW_COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.sort_rows import CHUNK_WORDS, compare_rows


@inlined
def is_zero(block, i):
    """Return whether a column is all zeros."""
    for lane in range(block.shape[0]):
        if block[lane, i] != 0:
            return False
    return True


@jit
def is_uniform(block, n):
    """Return 1 if the first n columns are all equal, else 0."""
    for lane in range(block.shape[0]):
        values = block[lane]
        for i in range(1, n):
            if values[i] != values[0]:
                return 0
    return 1


@jit
def consolidate_few(data, times, diffs, order, out_data, out_times, out_diffs):
    """Consolidate a few rows in any order, by binary insertion; `order` is scratch space, one entry a row."""
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
    """Consolidate sorted rows given by their positions, which are the bits of each word that are in `mask`.

    Rows differ if the other bits of their words differ. If those bits are equal and `exact` is 1, the rows are equal;
    if `exact` is 0, the kernel compares the rows. It keeps the word of one row for each sum that is not zero, at the
    front of `words`, and returns the number of these words.
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
def count_distinct(words, bits):
    """Return the number of sorted words, at least one, that differ above their lowest `bits` bits."""
    count = 1
    for i in range(1, len(words)):
        count += words[i] >> bits != words[i - 1] >> bits
    return count


@jit
def count_words(words, diff, out):
    """Consolidate sorted words of the same diff in place, into words[:kept] and out[:, :kept]; return kept."""
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
    """Consolidate in place sorted words that hold the diff in their lowest bits.

    (low, mask, shift) give the position of each lane of the diff. Return the number of words that remain; `out` holds
    their diffs, and the lowest bits of the words still hold parts of diffs.
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
    """Sum the diffs of sorted words, at least one, in place; the lowest `bits` bits give low + scale * (word & mask).

    No branch depends on which words are equal, because the processor would mispredict every other one.
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
def count_signed_words(diffs):
    """Return the number of words of diff ±1 that stand for the diffs, or -1 if more than twice the number of diffs."""
    total = 0
    limit = 2 * len(diffs)
    for i in range(len(diffs)):
        if diffs[i] > limit or diffs[i] < -limit or total > limit:
            return -1
        total += abs(diffs[i])
    return total if total <= limit else -1


@jit
def write_signed_words(words, diffs, out):
    """Write each word as often as the absolute value of its diff, with one more bit: 1 if the diff is positive."""
    n = 0
    for i in range(len(words)):
        word = (words[i] << 1) | (diffs[i] > 0)
        for _ in range(abs(diffs[i])):
            out[n] = word
            n += 1


@jit
def sum_signed_words(words, out):
    """Consolidate in place sorted words of `write_signed_words`, at least one; return the number that remain.

    Row 0 of `out` holds their diffs.
    """
    return sum_numbers(words, 1, -1, 1, 2, out)


@jit
def unpack_words(words, n, low, mask, shift, out):
    """Write the lanes of the first n words to `out`; the array of words may be the last lane of `out`."""
    for start in range(0, n, CHUNK_WORDS):
        end = min(n, start + CHUNK_WORDS)
        part = words[start:end]
        for lane in range(out.shape[0]):
            values = out[lane, start:end]
            least, bits, offset = low[lane], mask[lane], shift[lane]
            for i in range(len(part)):
                values[i] = ((part[i] >> offset) & bits) + least


@jit
def gather_lane(block, lane, words, mask, n, out):
    """Write one lane of some rows; the bits of the first n words that are in `mask` are the positions of the rows."""
    values, gathered = block[lane], out[lane]
    for i in range(n):
        gathered[i] = values[words[i] & mask]


@jit
def add_to_table(data, times, low, shift, diffs, table):
    """Add the diff of each row to the table entry of its word; constant times are not part of the word.

    The kernel packs the words of a chunk at a time, like kpg.kernels.sort_rows.
    """
    words = np.empty(CHUNK_WORDS, np.int64)
    lanes, depth = data.shape[0], times.shape[0] if times.shape[1] > 1 else 0
    for start in range(0, data.shape[1], CHUNK_WORDS):
        count = min(CHUNK_WORDS, data.shape[1] - start)
        for i in range(count):
            words[i] = 0
        for lane in range(lanes + depth):
            values = data[lane, start : start + count] if lane < lanes else times[lane - lanes, start : start + count]
            least, offset = low[lane], shift[lane]
            for i in range(count):
                words[i] |= (values[i] - least) << offset
        if diffs.shape[1] == 1:
            diff = diffs[0, 0]
            for i in range(count):
                table[words[i]] += diff
        else:
            values = diffs[0, start : start + count]
            for i in range(count):
                table[words[i]] += values[i]


@jit
def add_words_to_table(words, diff_bits, diff_low, table):
    """Add the diff of each word to the table entry of its other bits: `diff_low` plus its lowest `diff_bits` bits.

    The table has a power of two entries. Bits beyond these are ignored, since words may come from another process.
    """
    row_mask, diff_mask = len(table) - 1, (1 << diff_bits) - 1
    for i in range(len(words)):
        table[(words[i] >> diff_bits) & row_mask] += diff_low + (words[i] & diff_mask)


@jit
def add_narrow_to_table(words, diff_bits, diff_low, table):
    """Do the same for words of 32 bits, without a copy of them."""
    row_mask, diff_mask = np.uint64(len(table) - 1), np.uint64((1 << diff_bits) - 1)
    shift = np.uint64(diff_bits)
    for i in range(len(words)):
        word = np.uint64(words[i])
        table[(word >> shift) & row_mask] += diff_low + np.int64(word & diff_mask)


@jit
def read_table(table, words, out):
    """Write the words with a nonzero entry in the table, and their sums; return their number.

    No branch depends on which entries are zero, because the processor would mispredict every other one.
    """
    sums = out[0]
    kept = 0
    for word in range(len(table)):
        words[kept] = word
        sums[kept] = table[word]
        kept += table[word] != 0
    return kept


@jit
def close_lane_gaps(flat, lanes, capacity, kept):
    """Move the lanes of a flat block together: each has `capacity` columns, of which `kept` are used."""
    for lane in range(1, lanes):
        for i in range(kept):
            flat[lane * kept + i] = flat[lane * capacity + i]


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield is_uniform, (TABLE, NUMBER)
    yield sum_positions, (TABLE, TABLE, TABLE, COLUMN, NUMBER, NUMBER, TABLE)
    yield gather_lane, (TABLE, NUMBER, COLUMN, NUMBER, NUMBER, TABLE)
    yield consolidate_few, (TABLE, TABLE, TABLE, COLUMN, TABLE, TABLE, TABLE)
    yield count_distinct, (COLUMN, NUMBER)
    yield count_words, (COLUMN, COLUMN, TABLE)
    yield sum_words, (COLUMN, NUMBER, COLUMN, COLUMN, COLUMN, TABLE)
    yield count_signed_words, (COLUMN,)
    yield write_signed_words, (COLUMN, COLUMN, COLUMN)
    yield sum_signed_words, (COLUMN, TABLE)
    yield unpack_words, (COLUMN, NUMBER, COLUMN, COLUMN, COLUMN, TABLE)
    yield add_to_table, (TABLE, TABLE, COLUMN, COLUMN, TABLE, COLUMN)
    yield add_words_to_table, (COLUMN, NUMBER, NUMBER, COLUMN)
    yield add_narrow_to_table, (NARROW_COLUMN, NUMBER, NUMBER, COLUMN)
    yield close_lane_gaps, (COLUMN, NUMBER, NUMBER, NUMBER)
    yield read_table, (COLUMN, COLUMN, TABLE)
