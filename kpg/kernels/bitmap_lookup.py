"""Signs of a batch whose rows are keys of one lane: which keys there are at all, and the row of each.

    cell of a key  =  (key >> shift) − base                         64 cells are a word
    marks[2 w]      which cells of word w hold a key: a bit each
    marks[2 w + 1]  how many rows are before word w; one word more, without bits, ends them

A key whose bit is not set is not there: one look, and neither branch nor row. The row of another is not before
the rows before its word and the bits before its own, and is just that where each cell holds one row; from there it is
searched. If the marks are *exact*, each cell being one value with at most one row, no row is looked at.

Keys are taken a group at a time, so that the memory they wait for is fetched at once.
Twin: kpg.testing.kernels_locate.locate.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import count_bits, fetch, peek
from kpg.kernels.example import COLUMN, NUMBER, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.lookup_tables import place_of
from kpg.kernels.search_lane import lower_bound, past

GROUP = 16
MARKED = 64  # what the shift of marks is more, as signposts have it, to be told from places
EXACT = 128  # the shift of exact ones there


@jit
def mark(keys, base, shift, marks):
    """Fill the marks of sorted keys; returns how many cells hold one."""
    word = 0
    bits = np.int64(0)
    cells = 0
    last = -1
    marks[1] = 0
    for i in range(len(keys)):
        cell = (keys[i] >> shift) - base
        if cell >> 6 != word:
            marks[2 * word] = bits
            bits = np.int64(0)
            for passed in range(word + 1, (cell >> 6) + 1):
                marks[2 * passed] = 0
                marks[2 * passed + 1] = i
            word = cell >> 6
        bits |= np.int64(1) << (cell & 63)
        cells += cell != last
        last = cell
    marks[2 * word] = bits
    marks[2 * word + 2] = 0
    marks[2 * word + 3] = len(keys)
    return cells


@jit
def by_marks(data, n, marks, base, shift, wanted, starts, ends):
    """Fill where the rows of each key begin and end; those of a key that is not there begin and end somewhere."""
    exact = shift == EXACT
    shift = 0 if exact else shift - MARKED
    low, high = peek(data, 0), peek(data, n - 1)
    total = 0
    for first in range(0, len(wanted), GROUP):
        last = min(len(wanted), first + GROUP)
        for k in range(first, last):
            cell = place_of(wanted[k], base, shift, high >> shift)
            starts[k] = cell
            fetch(marks, 2 * (cell >> 6))
        for k in range(first, last):
            cell = starts[k]
            bits, bit = peek(marks, 2 * (cell >> 6)), cell & 63
            row = peek(marks, 2 * (cell >> 6) + 1) + count_bits(bits & ~(-1 << bit))
            here = (bits >> bit) & np.int64(low <= wanted[k]) & np.int64(wanted[k] <= high)
            starts[k], ends[k] = row, row + here
            total += here
            fetch(data, row if here == 1 and not exact else 0)
        if not exact:
            for k in range(first, last):
                if starts[k] < ends[k]:
                    word = ((wanted[k] >> shift) - base) >> 6
                    start, end = narrow(data, n, starts[k], peek(marks, 2 * word + 3), wanted[k])
                    total += end - start - 1
                    starts[k], ends[k] = start, end
    return total


@inlined
def narrow(data, n, row, last, key):
    """Where the rows of a key begin and end, given a row not after it and one behind."""
    if peek(data, row) < key:
        row = lower_bound(data, row + 1, last, key)
    return row, past(data, row, n, key)


def examples() -> Iterator[Example]:
    """How Python calls these."""
    yield mark, (COLUMN, NUMBER, NUMBER, COLUMN)
