"""Sort rows as 64-bit words: pack as many of their bits as fit, so that NumPy's sort of words sorts the rows.

    word(row)  =  Σ over lanes of (((value − low) >> drop) & mask) << shift

With drop 0 a word is the whole row; otherwise a window of its leading bits, and rows that agree there are *tied*. A
word may carry the position of its row in its lowest bits: `tag` puts it there, and a sort of words is then a sort of
positions. No word is negative. A difference value − low of more than 63 bits wraps, which the mask repairs. Cost: one
pass each; `merge_runs` is n log n, and linear when rows are in order already. Twins: kpg.testing.kernels_trace.
"""

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

CHUNK = 1024  # words that stay in the first-level cache while each lane is added to them
LONG = 1  # rows tied with so many others are better told apart by more of their bits than by comparing them


@jit
def bounds(block, low, high):
    """The least and the greatest value of each lane; there must be a column."""
    for lane in range(block.shape[0]):
        values = block[lane]
        least = values[0]
        most = values[0]
        for i in range(len(values)):
            least = min(least, values[i])
            most = max(most, values[i])
        low[lane] = least
        high[lane] = most


@jit
def pack(block, low, drop, mask, shift, first, words):
    """Add bits of each lane of a block to the words, or begin the words if `first` is 1."""
    for start in range(0, len(words), CHUNK):
        part = words[start : start + CHUNK]
        if first == 1:
            for i in range(len(part)):
                part[i] = 0
        for lane in range(block.shape[0]):
            values = block[lane, start : start + CHUNK]
            least, unused, bits, place = low[lane], drop[lane], mask[lane], shift[lane]
            for i in range(len(part)):
                part[i] |= (((values[i] - least) >> unused) & bits) << place


@jit
def tag(words, bits):
    """Make room below each word and put its position there."""
    for i in range(len(words)):
        words[i] = (words[i] << bits) | i


@jit
def crowd(words, bits):
    """How many rows are tied, in sorted and tagged words, with LONG others or more."""
    n = len(words)
    crowded = 0
    start = 0
    for i in range(n):
        if words[i] >> bits != words[start] >> bits:
            crowded += i - start if i - start > LONG else 0
            start = i
    return crowded + (n - start if n - start > LONG else 0)


@jit
def rank(words, bits, ranks):
    """For each position how many different words come before its own, into row 0 of `ranks`; returns how many are."""
    mask = (1 << bits) - 1
    found = 0
    for i in range(len(words)):
        if i > 0 and words[i] >> bits != words[i - 1] >> bits:
            found += 1
        ranks[0, words[i] & mask] = found
    return found + 1


@inlined
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


@inlined
def compare_rows(data, times, step, i, j):
    """Below, at or above 0 as row i sorts before, with or after row j by data, then time unless constant (step 0)."""
    sign = compare(data, i, data, j)
    if sign == 0 and step == 1:
        sign = compare(times, i, times, j)
    return sign


@jit
def merge_runs(data, times, start, end, order, scratch):
    """Sort the positions in order[start:end] by merging runs that are in order already."""
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
    """Where the run of ordered positions that begins at `start` ends."""
    start += 1
    while start < end and compare_rows(data, times, step, order[start - 1], order[start]) <= 0:
        start += 1
    return start


@jit
def untie(data, times, words, bits, scratch):
    """Put rows that are tied in sorted, tagged words into order by comparing them."""
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
            merge_runs(data, times, start, end, words, scratch)
            for i in range(start, end):
                words[i] |= word << bits
        start = end


def examples() -> Iterator[Example]:
    """How Python calls these."""
    yield bounds, (TABLE, COLUMN, COLUMN)
    yield pack, (TABLE, COLUMN, COLUMN, COLUMN, COLUMN, NUMBER, COLUMN)
    yield tag, (COLUMN, NUMBER)
    yield crowd, (COLUMN, NUMBER)
    yield rank, (COLUMN, NUMBER, TABLE)
    yield untie, (TABLE, TABLE, COLUMN, NUMBER, COLUMN)
