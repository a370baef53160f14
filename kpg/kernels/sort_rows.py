"""Sort rows as 64-bit words: pack as many of their bits as fit, so that NumPy's sort of words sorts the rows.

    word(row)  =  Σ over lanes of (((value − low) >> drop) & mask) << shift

With drop 0 a word is the whole row; otherwise it is a window of its leading bits, and rows that agree there are *tied*.
`append_positions` puts the position of each row into the lowest bits of its word, so that sorting words also sorts
positions. No word is negative. A difference value − low of more than 63 bits overflows; the mask removes the wrong
bits. Cost: one pass each; `merge_sort` is n log n, and linear if the rows are sorted already. Twins:
kpg.testing.kernel_twins.sort_rows_twin.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

CHUNK_WORDS = 1024  # words that stay in the first-level cache while the lanes are added
MAX_COMPARED_TIE_ROWS = 1  # in larger ties, sorting by more bits of the rows is faster than comparing rows


@jit
def lane_bounds(block, low, high):
    """Write the least and the greatest value of each lane; the block must have a column."""
    for lane in range(block.shape[0]):
        values = block[lane]
        least = values[0]
        greatest = values[0]
        for i in range(len(values)):
            least = min(least, values[i])
            greatest = max(greatest, values[i])
        low[lane] = least
        high[lane] = greatest


@jit
def pack_words(block, low, drop, mask, shift, first, words):
    """Add bits of each lane of a block to the words; if `first` is 1, start from empty words."""
    for start in range(0, len(words), CHUNK_WORDS):
        part = words[start : start + CHUNK_WORDS]
        if first == 1:
            for i in range(len(part)):
                part[i] = 0
        for lane in range(block.shape[0]):
            values = block[lane, start : start + CHUNK_WORDS]
            least, unused, bits, offset = low[lane], drop[lane], mask[lane], shift[lane]
            if bits == 0:
                continue
            for i in range(len(part)):
                part[i] |= (((values[i] - least) >> unused) & bits) << offset


@jit
def is_increasing(block):
    """Return 1 if each column is greater than the one before, lane by lane from the first; else 0."""
    lanes, n = block.shape
    for i in range(1, n):
        lane = 0
        while lane < lanes and block[lane, i] == block[lane, i - 1]:
            lane += 1
        if lane == lanes or block[lane, i] < block[lane, i - 1]:
            return 0
    return 1


@jit
def append_positions(words, bits):
    """Shift each word to the left and put its position into the lowest bits."""
    for i in range(len(words)):
        words[i] = (words[i] << bits) | i


@jit
def count_tied_rows(words, bits):
    """Return the number of rows in ties of more than MAX_COMPARED_TIE_ROWS, in sorted words with positions."""
    n = len(words)
    crowded = 0
    start = 0
    for i in range(n):
        if words[i] >> bits != words[start] >> bits:
            crowded += i - start if i - start > MAX_COMPARED_TIE_ROWS else 0
            start = i
    return crowded + (n - start if n - start > MAX_COMPARED_TIE_ROWS else 0)


@jit
def rank_words(words, bits, ranks):
    """Write into row 0 of `ranks` the rank of each position among the distinct words; return the number of ranks."""
    mask = (1 << bits) - 1
    rank = 0
    for i in range(len(words)):
        if i > 0 and words[i] >> bits != words[i - 1] >> bits:
            rank += 1
        ranks[0, words[i] & mask] = rank
    return rank + 1


@inlined
def compare_columns(a, i, b, j):
    """Return a number below, equal to or above 0 if column i of a is before, equal to or after column j of b."""
    for lane in range(a.shape[0]):
        x = a[lane, i]
        y = b[lane, j]
        if x < y:
            return -1
        if x > y:
            return 1
    return 0


@inlined
def compare_rows(data, times, step, i, j):
    """Return the same number for rows i and j, by data, then by time unless times are constant (step 0)."""
    sign = compare_columns(data, i, data, j)
    if sign == 0 and step == 1:
        sign = compare_columns(times, i, times, j)
    return sign


@jit
def merge_sort(data, times, start, end, order, scratch):
    """Sort the positions in order[start:end] by merging their sorted runs."""
    step = 1 if times.shape[1] > 1 else 0
    runs = 2
    while runs > 1:
        runs = 0
        low = start
        while low < end:
            middle = run_end(data, times, step, low, end, order)
            high = run_end(data, times, step, middle, end, order) if middle < end else end
            if middle < end:
                i, j = low, middle
                for o in range(low, high):
                    if j == high or (i < middle and compare_rows(data, times, step, order[i], order[j]) <= 0):
                        scratch[o] = order[i]
                        i += 1
                    else:
                        scratch[o] = order[j]
                        j += 1
                order[low:high] = scratch[low:high]
            low = high
            runs += 1


@jit
def run_end(data, times, step, start, end, order):
    """Return the end of the sorted run of positions that begins at `start`."""
    start += 1
    while start < end and compare_rows(data, times, step, order[start - 1], order[start]) <= 0:
        start += 1
    return start


@jit
def sort_ties(data, times, words, bits, scratch):
    """Sort the rows that are tied in sorted words with positions, by comparing them."""
    n = len(words)
    mask = (1 << bits) - 1
    start = 0
    while start < n:
        word = words[start] >> bits
        end = start + 1
        while end < n and words[end] >> bits == word:
            end += 1
        if end - start > 1:
            for i in range(start, end):
                words[i] &= mask
            merge_sort(data, times, start, end, words, scratch)
            for i in range(start, end):
                words[i] |= word << bits
        start = end


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield lane_bounds, (TABLE, COLUMN, COLUMN)
    yield pack_words, (TABLE, COLUMN, COLUMN, COLUMN, COLUMN, NUMBER, COLUMN)
    yield is_increasing, (TABLE,)
    yield append_positions, (COLUMN, NUMBER)
    yield count_tied_rows, (COLUMN, NUMBER)
    yield rank_words, (COLUMN, NUMBER, TABLE)
    yield sort_ties, (TABLE, TABLE, COLUMN, NUMBER, COLUMN)
