"""Sets of row codes that only grow, and the kernels that insert the results of joins into them.

A row's code is one number: the ids of its columns side by side in bits. A set of codes is a bitmap if all codes fit
into one (`mask` is -1), otherwise a hash table with open addressing: its size is `mask` + 1, and a free slot holds -1.

    insert_codes     insert a list of codes; write the new ones, in order
    insert_slots     insert all codes of a hash table
    insert_sums      the same for left[i] + right[j], over all j in [low[i], high[i]): one loop joins, projects, inserts
    read_levels      write the level of each code, from a hash table with a level per slot
    write_levels     set the level of each code
    expand_ranges    write all pairs (i, j) with j in [low[i], high[i])
    move_columns     write codes made of columns of other codes, at other bits
    bitmap_members   write the codes of a bitmap, in order
    table_members    write the codes of a hash table
    write_starts     write where each key starts in sorted codes
    read_ranges      write where each of some keys starts and ends
    decode_column    write the values of one column of codes

The slots of a table of `FAR_SLOTS` and more are mostly not in the processor's caches. There the kernels request the
slots of some codes (`prefetch`) before they read the first of them, so that the waits for memory overlap.

Twins: kpg.testing.kernel_twins.code_sets_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import address_of_column, prefetch
from kpg.kernels.example import COLUMN, NUMBER, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.partition_rows import mix

WORD_SHIFT = 6  # a word of a bitmap holds 2^6 codes
FAR_SLOTS = 1 << 20  # slots of a table (8 MB) that is larger than the caches of one core
AHEAD = 32  # slots requested before the first of them is read


@inlined
def slot_of(code, mask):
    """Return the first slot of a hash table that may hold a code."""
    return np.int64(mix(np.uint64(code)) >> np.uint64(1)) & mask


@inlined
def insert_code(code, table, mask):
    """Insert a code; return whether it is new."""
    if mask < 0:
        word = code >> WORD_SHIFT
        bit = np.int64(1) << (code & 63)
        if table[word] & bit:
            return False
        table[word] |= bit
        return True
    slot = slot_of(code, mask)
    while True:
        held = table[slot]
        if held == code:
            return False
        if held < 0:
            table[slot] = code
            return True
        slot = (slot + 1) & mask


@inlined
def insert_held(held, count, table, mask, out, n):
    """Insert the first `count` of some codes and write the new ones from position `n` on; return the next position."""
    for k in range(count):
        if insert_code(held[k], table, mask):
            out[n] = held[k]
            n += 1
    return n


@jit
def insert_codes(codes, table, mask, out):
    """Insert the codes and write the new ones; return their number."""
    n = 0
    slots = address_of_column(table)
    for i in range(codes.shape[0]):
        if mask >= FAR_SLOTS - 1 and i + AHEAD < codes.shape[0]:
            prefetch(slots, slot_of(codes[i + AHEAD], mask))
        if insert_code(codes[i], table, mask):
            out[n] = codes[i]
            n += 1
    return n


@jit
def insert_slots(slots, table, mask):
    """Insert the codes of all slots that are not free."""
    new_slots = address_of_column(table)
    for i in range(slots.shape[0]):
        if mask >= FAR_SLOTS - 1 and i + AHEAD < slots.shape[0]:
            prefetch(new_slots, slot_of(slots[i + AHEAD], mask))
        if slots[i] >= 0:
            insert_code(slots[i], table, mask)


@inlined
def insert_far_sums(left, low, high, right, table, mask, out, start):
    """Insert sums into a large hash table: request the slots of some sums, then insert them."""
    n, count = 0, 0
    capacity, rows = out.shape[0], left.shape[0]
    held = np.empty(AHEAD, np.int64)
    slots, rights = address_of_column(table), address_of_column(right)
    for i in range(start, rows):
        if i + AHEAD < rows:
            prefetch(rights, low[i + AHEAD])
        if n + count + high[i] - low[i] > capacity:
            n = insert_held(held, count, table, mask, out, n)
            count = 0
            if n + high[i] - low[i] > capacity:
                return i, n
        for j in range(low[i], high[i]):
            code = left[i] + right[j]
            prefetch(slots, slot_of(code, mask))
            held[count] = code
            count += 1
            if count == AHEAD:
                n = insert_held(held, count, table, mask, out, n)
                count = 0
    return rows, insert_held(held, count, table, mask, out, n)


@jit
def insert_sums(left, low, high, right, table, mask, out, start):
    """Insert the sums from row `start` on, while all sums of a row fit; return the next row and the number written."""
    if mask >= FAR_SLOTS - 1:
        return insert_far_sums(left, low, high, right, table, mask, out, start)
    n = 0
    capacity = out.shape[0]
    for i in range(start, left.shape[0]):
        if n + high[i] - low[i] > capacity:
            return i, n
        base = left[i]
        for j in range(low[i], high[i]):
            code = base + right[j]
            if insert_code(code, table, mask):
                out[n] = code
                n += 1
    return left.shape[0], n


@jit
def read_levels(codes, table, mask, levels, out):
    """Write the level of each code in a hash table with levels; -1 for codes that it does not hold."""
    slots, values = address_of_column(table), address_of_column(levels)
    for i in range(codes.shape[0]):
        if mask >= FAR_SLOTS - 1 and i + AHEAD < codes.shape[0]:
            ahead = slot_of(codes[i + AHEAD], mask)
            prefetch(slots, ahead)
            prefetch(values, ahead)
        code = codes[i]
        slot = slot_of(code, mask)
        while table[slot] != code and table[slot] >= 0:
            slot = (slot + 1) & mask
        out[i] = levels[slot] if table[slot] == code else -1


@jit
def write_levels(codes, values, table, mask, levels):
    """Set the level of each code; return the number of codes that the table did not hold."""
    n = 0
    slots, level_slots = address_of_column(table), address_of_column(levels)
    for i in range(codes.shape[0]):
        if mask >= FAR_SLOTS - 1 and i + AHEAD < codes.shape[0]:
            ahead = slot_of(codes[i + AHEAD], mask)
            prefetch(slots, ahead)
            prefetch(level_slots, ahead)
        code = codes[i]
        slot = slot_of(code, mask)
        while table[slot] != code and table[slot] >= 0:
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = code
            n += 1
        levels[slot] = values[i] if values.shape[0] > 1 else values[0]
    return n


@jit
def expand_ranges(low, high, lefts, rights):
    """Write all pairs of a row and a position of its range."""
    n = 0
    for i in range(low.shape[0]):
        for j in range(low[i], high[i]):
            lefts[n] = i
            rights[n] = j
            n += 1


@jit
def move_columns(codes, source, target, masks, out):
    """Write codes made of columns of other codes: the bits at `source` move to `target`."""
    for i in range(codes.shape[0]):
        moved = np.int64(0)
        for column in range(source.shape[0]):
            moved |= ((codes[i] >> source[column]) & masks[column]) << target[column]
        out[i] = moved


@jit
def bitmap_members(table, start, out):
    """Write the members of a bitmap from word `start` on, while a word's fit; return the next word and the number."""
    n = 0
    capacity = out.shape[0]
    for word in range(start, table.shape[0]):
        bits = np.uint64(table[word])
        if bits == 0:
            continue
        if n + 64 > capacity:
            return word, n
        base = np.int64(word) << WORD_SHIFT
        for bit in range(64):
            if (bits >> np.uint64(bit)) & np.uint64(1):
                out[n] = base + bit
                n += 1
    return table.shape[0], n


@jit
def table_members(table, out):
    """Write the codes of all slots that are not free; return their number. `out` has room for one number more."""
    n = 0
    for slot in range(table.shape[0]):
        out[n] = table[slot]
        n += 1 if table[slot] >= 0 else 0  # without a branch that the processor would often guess wrongly
    return n


@jit
def write_starts(codes, value_bits, starts):
    """Write the position of the first code of each key, for sorted codes; keys are the bits above `value_bits`."""
    at = np.int64(0)
    for key in range(starts.shape[0]):
        while at < codes.shape[0] and (codes[at] >> value_bits) < key:
            at += 1
        starts[key] = at


@jit
def read_ranges(keys, starts, low, high):
    """Write the start of each key, and the start of the key after it, which is its end."""
    for i in range(keys.shape[0]):
        low[i] = starts[keys[i]]
        high[i] = starts[keys[i] + 1]


@jit
def decode_column(codes, shift, mask, values, out):
    """Write the values of one column of codes; the column holds ids."""
    for i in range(codes.shape[0]):
        out[i] = values[(codes[i] >> shift) & mask]


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield insert_codes, (COLUMN, COLUMN, NUMBER, COLUMN)
    yield insert_slots, (COLUMN, COLUMN, NUMBER)
    yield insert_sums, (COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, NUMBER, COLUMN, NUMBER)
    yield read_levels, (COLUMN, COLUMN, NUMBER, COLUMN, COLUMN)
    yield write_levels, (COLUMN, COLUMN, COLUMN, NUMBER, COLUMN)
    yield expand_ranges, (COLUMN, COLUMN, COLUMN, COLUMN)
    yield move_columns, (COLUMN, COLUMN, COLUMN, COLUMN, COLUMN)
    yield bitmap_members, (COLUMN, NUMBER, COLUMN)
    yield table_members, (COLUMN, COLUMN)
    yield write_starts, (COLUMN, NUMBER, COLUMN)
    yield read_ranges, (COLUMN, COLUMN, COLUMN, COLUMN)
    yield decode_column, (COLUMN, NUMBER, NUMBER, COLUMN, COLUMN)
