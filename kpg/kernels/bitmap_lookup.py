"""Bitmap lookup: find out whether a batch of one lane holds a key, and in which row.

    cell of a key      =  (key >> shift) − base                         64 cells share a word
    bitmap[2 w]        one bit for each cell of word w: whether the cell holds a key
    bitmap[2 w + 1]    the number of rows before word w; one more word, without bits, ends the bitmap

If the bit of a key is not set, the batch does not hold the key: one read decides that, without a branch and without
reading a row. If it is set, let r be the number of rows before the key's word plus the number of set bits before the
key's bit. The first row of the cell is r if every earlier cell of the word holds one row, otherwise it is later. The
kernel searches for the key from row r on. In an *exact* bitmap each cell is one value with at most one row, so the
kernel reads no row.

Keys are processed in groups, so that their waits for memory overlap.
Twin: kpg.testing.kernel_twins.locate_keys_twin.locate_keys.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import count_bits, peek, prefetch
from kpg.kernels.example import COLUMN, NUMBER, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.lookup_tables import interval_of
from kpg.kernels.search_lane import lower_bound, run_end

KEYS_IN_STEP = 16  # keys per group: the kernel prefetches the words of all of them before it reads the first
BITMAP_FLAG = 64  # added to the shift in a batch's row to distinguish bitmap lookup from interval lookup
EXACT_BITMAP_SHIFT = 128  # the shift in a batch's row that marks an exact bitmap


@jit
def fill_bitmap(keys, base, shift, bitmap):
    """Fill the bitmap of sorted keys; return the number of cells that hold one."""
    word = 0
    bits = np.int64(0)
    cells = 0
    last = -1
    bitmap[1] = 0
    for i in range(len(keys)):
        cell = (keys[i] >> shift) - base
        if cell >> 6 != word:
            bitmap[2 * word] = bits
            bits = np.int64(0)
            for next_word in range(word + 1, (cell >> 6) + 1):
                bitmap[2 * next_word] = 0
                bitmap[2 * next_word + 1] = i
            word = cell >> 6
        bits |= np.int64(1) << (cell & 63)
        cells += cell != last
        last = cell
    bitmap[2 * word] = bits
    bitmap[2 * word + 2] = 0
    bitmap[2 * word + 3] = len(keys)
    return cells


@jit
def search_bitmap(data, n, bitmap, base, shift, keys, starts, ends):
    """Fill where the rows of each key begin and end; a missing key gets an empty range at any position."""
    exact = shift == EXACT_BITMAP_SHIFT
    shift = 0 if exact else shift - BITMAP_FLAG
    low, high = peek(data, 0), peek(data, n - 1)
    total = 0
    for first in range(0, len(keys), KEYS_IN_STEP):
        last = min(len(keys), first + KEYS_IN_STEP)
        for k in range(first, last):
            cell = interval_of(keys[k], base, shift, high >> shift)
            starts[k] = cell
            prefetch(bitmap, 2 * (cell >> 6))
        for k in range(first, last):
            cell = starts[k]
            bits, bit = peek(bitmap, 2 * (cell >> 6)), cell & 63
            row = peek(bitmap, 2 * (cell >> 6) + 1) + count_bits(bits & ~(-1 << bit))
            present = (bits >> bit) & np.int64(low <= keys[k]) & np.int64(keys[k] <= high)
            starts[k], ends[k] = row, row + present
            total += present
            prefetch(data, row if present == 1 and not exact else 0)
        if not exact:
            for k in range(first, last):
                if starts[k] < ends[k]:
                    word = ((keys[k] >> shift) - base) >> 6
                    start, end = rows_of_key(data, n, starts[k], peek(bitmap, 2 * word + 3), keys[k])
                    total += end - start - 1
                    starts[k], ends[k] = start, end
    return total


@inlined
def rows_of_key(data, n, row, last, key):
    """Return where the rows of a key begin and end; its first row is between `row` and `last`."""
    if peek(data, row) < key:
        row = lower_bound(data, row + 1, last, key)
    return row, run_end(data, row, n, key)


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield fill_bitmap, (COLUMN, NUMBER, NUMBER, COLUMN)
