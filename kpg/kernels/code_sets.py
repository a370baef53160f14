"""Sets of rows that only grow, each row one number, and what joins add to them.

A row's number, its code, is its columns' ids side by side in bits. A set of codes is a bitmap where all codes fit into
one (`mask` is -1), else a hash table with open addressing whose size is `mask` + 1 and whose free places hold -1.

    add          the codes of a list that are new, in order, now members
    extend       the same for left[i] + right[j], over all j in [low[i], high[i]): a join, a projection and a set in one
    lookup       the level of each code, in a hash table that has one for each
    store        the same, to be set
    expand       the pairs (i, j) of such ranges
    move         columns of codes to other bits of other codes
    members      the codes of a bitmap, in order
    decode       one column of codes as values

Twins: kpg.testing.kernels_saturate.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.partition_rows import mix

WORD = 6  # 64 members to a word


@inlined
def is_new(code, table, mask):
    """Put a code into the set; whether it was not in it."""
    if mask < 0:
        word = code >> WORD
        bit = np.int64(1) << (code & 63)
        if table[word] & bit:
            return False
        table[word] |= bit
        return True
    place = np.int64(mix(np.uint64(code)) >> np.uint64(1)) & mask
    while True:
        found = table[place]
        if found == code:
            return False
        if found < 0:
            table[place] = code
            return True
        place = (place + 1) & mask


@jit
def add(codes, table, mask, out):
    """Write the new ones among some codes; how many."""
    n = 0
    for i in range(codes.shape[0]):
        if is_new(codes[i], table, mask):
            out[n] = codes[i]
            n += 1
    return n


@jit
def extend(left, low, high, right, table, mask, out, start):
    """Write the new sums from row `start` on, while a whole row fits; where to go on, and how many were written."""
    n = 0
    room = out.shape[0]
    for i in range(start, left.shape[0]):
        if n + high[i] - low[i] > room:
            return i, n
        base = left[i]
        for j in range(low[i], high[i]):
            code = base + right[j]
            if is_new(code, table, mask):
                out[n] = code
                n += 1
    return left.shape[0], n


@jit
def lookup(codes, table, mask, levels, out):
    """Write the level of each code in a hash table with levels; -1 for those that are not there."""
    for i in range(codes.shape[0]):
        code = codes[i]
        place = np.int64(mix(np.uint64(code)) >> np.uint64(1)) & mask
        while table[place] != code and table[place] >= 0:
            place = (place + 1) & mask
        out[i] = levels[place] if table[place] == code else -1


@jit
def store(codes, values, table, mask, levels):
    """Set the level of each code; how many were not in the table."""
    n = 0
    for i in range(codes.shape[0]):
        code = codes[i]
        place = np.int64(mix(np.uint64(code)) >> np.uint64(1)) & mask
        while table[place] != code and table[place] >= 0:
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = code
            n += 1
        levels[place] = values[i] if values.shape[0] > 1 else values[0]
    return n


@jit
def expand(low, high, lefts, rights):
    """Write all pairs of a row and a place of its range."""
    n = 0
    for i in range(low.shape[0]):
        for j in range(low[i], high[i]):
            lefts[n] = i
            rights[n] = j
            n += 1


@jit
def move(codes, source, target, mask, out):
    """Write codes made of columns of other codes: from the bits at `source` to those at `target`."""
    for i in range(codes.shape[0]):
        made = np.int64(0)
        for column in range(source.shape[0]):
            made |= ((codes[i] >> source[column]) & mask) << target[column]
        out[i] = made


@jit
def members(table, start, out):
    """Write the members of a bitmap from word `start` on, while a whole word fits; where to go on, and how many."""
    n = 0
    room = out.shape[0]
    for word in range(start, table.shape[0]):
        bits = np.uint64(table[word])
        if bits == 0:
            continue
        if n + 64 > room:
            return word, n
        base = np.int64(word) << WORD
        for bit in range(64):
            if (bits >> np.uint64(bit)) & np.uint64(1):
                out[n] = base + bit
                n += 1
    return table.shape[0], n


@jit
def decode(codes, shift, mask, values, out):
    """Write the values whose ids are a column of some codes."""
    for i in range(codes.shape[0]):
        out[i] = values[(codes[i] >> shift) & mask]


def examples() -> Iterator[Example]:
    """How these are called."""
    yield add, (COLUMN, COLUMN, NUMBER, COLUMN)
    yield extend, (COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, NUMBER, COLUMN, NUMBER)
    yield lookup, (COLUMN, COLUMN, NUMBER, COLUMN, COLUMN)
    yield store, (COLUMN, COLUMN, COLUMN, NUMBER, COLUMN)
    yield expand, (COLUMN, COLUMN, COLUMN, COLUMN)
    yield move, (COLUMN, COLUMN, COLUMN, NUMBER, COLUMN)
    yield members, (COLUMN, NUMBER, COLUMN)
    yield decode, (COLUMN, NUMBER, NUMBER, COLUMN, COLUMN)
