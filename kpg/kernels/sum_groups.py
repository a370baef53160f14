"""Sum values by group in a hash table, before anything is sorted.

    group(key)  =  the number of a key, in the order in which keys are first seen
    sums        int64[capacity, key lanes + width]: the key of each group, then the sums of its diffs

`number_groups` finds or adds the group of each row. The other kernels add the rows of a slice to the sums of their
groups: counts, and the parts of numbers (kpg.columns.exact_sums): each part times the diff of the row. `slots` is an
open-addressing table with the number of a group plus one, or 0; its size is a power of two, at least twice the
capacity. The caller makes sure that no sum leaves 64 bits. Constant diffs have one column. Entries of the sums are
computed as unsigned numbers, because for signed ones machine code would check for negative ones.
Cost: one pass each. Twins: kpg.testing.kernel_twins.sum_groups_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, and about 2^64 / the golden ratio: spreads consecutive keys
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
WORD_BITS = 64
HALF_WORD = np.uint64(32)
CHUNK_ROWS = 1024  # rows whose hashes stay in the first-level cache
PART_BITS = 32
PART_MASK = 0xFFFFFFFF
NULL = -(1 << 63)


@inlined
def hash_rows(data, lanes, start, hashes, count):
    """Write a hash of some lanes of each of `count` rows; its upper bits are the best ones."""
    for i in range(count):
        hashes[i] = np.uint64(0)
    for lane in lanes:
        values = data[lane, start : start + count]
        for i in range(count):
            hashes[i] = (hashes[i] ^ (hashes[i] >> HALF_WORD) ^ np.uint64(values[i])) * FACTOR


@inlined
def has_key(sums, group, data, lanes, i):
    """Return whether a group has the key of a row."""
    for k in range(len(lanes)):
        if sums[group, k] != data[lanes[k], i]:
            return False
    return True


@jit
def number_groups(data, lanes, start, slot_bits, slots, sums, count, groups):
    """Write the group of each row from `start` on, and add the groups of new keys after the first `count`.

    Stop where a new group does not fit the capacity of `sums`. Return the row at which the kernel stopped, and the
    number of groups. Of a chunk of rows, the kernel first reads the slots of their hashes, which nearly always hold
    their groups, and then compares the keys lane by lane; so the processor waits for many slots at once.
    """
    shift = np.uint64(WORD_BITS - slot_bits)
    mask = (1 << slot_bits) - 1
    flat, row_width, n = sums.reshape(-1), np.uint64(sums.shape[1]), data.shape[1]
    hashes, wrong = np.empty(CHUNK_ROWS, np.uint64), np.empty(CHUNK_ROWS, np.int64)
    for first in range(start, n, CHUNK_ROWS):
        size = min(CHUNK_ROWS, n - first)
        found = groups[first : first + size]
        hash_rows(data, lanes, first, hashes, size)
        for i in range(size):
            entry = slots[hashes[i] >> shift]
            wrong[i] = entry == 0
            found[i] = entry - (entry != 0)
        for k in range(len(lanes)):
            values, column = data[lanes[k], first : first + size], np.uint64(k)
            for i in range(size):
                wrong[i] |= flat[np.uint64(found[i]) * row_width + column] != values[i]
        for i in range(size):
            if wrong[i] == 0:
                continue
            slot = np.int64(hashes[i] >> shift)
            while slots[slot] != 0 and not has_key(sums, slots[slot] - 1, data, lanes, first + i):
                slot = (slot + 1) & mask
            if slots[slot] == 0:
                if count == sums.shape[0]:
                    return first + i, count
                for k in range(len(lanes)):
                    sums[count, k] = data[lanes[k], first + i]
                count += 1
                slots[slot] = count
            found[i] = slots[slot] - 1
    return n, count


@jit
def fill_slots(keys, slot_bits, slots):
    """Write the groups of some keys, int64[key lanes, groups], into empty slots."""
    shift = np.uint64(WORD_BITS - slot_bits)
    mask = (1 << slot_bits) - 1
    hashes = np.empty(keys.shape[1], np.uint64)
    hash_rows(keys, np.arange(keys.shape[0]), 0, hashes, keys.shape[1])
    for group in range(keys.shape[1]):
        slot = np.int64(hashes[group] >> shift)
        while slots[slot] != 0:
            slot = (slot + 1) & mask
        slots[slot] = group + 1


@jit
def add_counts(groups, diffs, at, sums):
    """Add the diff of each row to one column of its group."""
    step = 1 if diffs.shape[1] > 1 else 0
    flat, width, column = sums.reshape(-1), np.uint64(sums.shape[1]), np.uint64(at)
    for i in range(len(groups)):
        flat[np.uint64(groups[i]) * width + column] += diffs[0, i * step]


@jit
def add_true(data, lane, groups, diffs, at, sums):
    """Add the diffs of the rows with 1 in a lane."""
    step = 1 if diffs.shape[1] > 1 else 0
    flat, width, column = sums.reshape(-1), np.uint64(sums.shape[1]), np.uint64(at)
    values = data[lane]
    for i in range(len(groups)):
        flat[np.uint64(groups[i]) * width + column] += diffs[0, i * step] * (values[i] == 1)


@jit
def add_numbers(data, lane, bias, nullable, groups, diffs, at, sums):
    """Add the two parts of numbers of one lane to the columns after `at`; `bias` is added to the upper part.

    If they are nullable, column `at` counts those that are not null.
    """
    step = 1 if diffs.shape[1] > 1 else 0
    flat, width, column = sums.reshape(-1), np.uint64(sums.shape[1]), np.uint64(at)
    values = data[lane]
    for i in range(len(groups)):
        value, diff, entry = values[i], diffs[0, i * step], np.uint64(groups[i]) * width + column
        if nullable == 1:
            diff = diff * (value != NULL)
            flat[entry] += diff
        flat[entry + ONE] += diff * (value & PART_MASK)
        flat[entry + TWO] += diff * ((value >> PART_BITS) + bias)


@jit
def add_wide_numbers(data, lane, nullable, groups, diffs, at, sums):
    """Add the four parts of numbers of two lanes (kpg.columns.wide_integers), as `add_numbers` does."""
    step = 1 if diffs.shape[1] > 1 else 0
    flat, width, column = sums.reshape(-1), np.uint64(sums.shape[1]), np.uint64(at)
    highs, lows = data[lane], data[lane + 1]
    for i in range(len(groups)):
        high, low = highs[i], lows[i] ^ NULL
        diff, entry = diffs[0, i * step], np.uint64(groups[i]) * width + column
        if nullable == 1:
            diff = diff * (high != NULL or low != 0)
            flat[entry] += diff
        flat[entry + ONE] += diff * (low & PART_MASK)
        flat[entry + TWO] += diff * ((low >> PART_BITS) & PART_MASK)
        flat[entry + THREE] += diff * (high & PART_MASK)
        flat[entry + FOUR] += diff * (high >> PART_BITS)


@jit
def write_groups(sums, count, key_lanes, data, diffs):
    """Write the keys and sums of the groups that are not all zeros; return their number."""
    kept = 0
    for group in range(count):
        zero = True
        for k in range(key_lanes, sums.shape[1]):
            zero = zero and sums[group, k] == 0
        if zero:
            continue
        for k in range(key_lanes):
            data[k, kept] = sums[group, k]
        for k in range(key_lanes, sums.shape[1]):
            diffs[k - key_lanes, kept] = sums[group, k]
        kept += 1
    return kept


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield number_groups, (TABLE, COLUMN, NUMBER, NUMBER, COLUMN, TABLE, NUMBER, COLUMN)
    yield fill_slots, (TABLE, NUMBER, COLUMN)
    yield add_counts, (COLUMN, TABLE, NUMBER, TABLE)
    yield add_true, (TABLE, NUMBER, COLUMN, TABLE, NUMBER, TABLE)
    yield add_numbers, (TABLE, NUMBER, NUMBER, NUMBER, COLUMN, TABLE, NUMBER, TABLE)
    yield add_wide_numbers, (TABLE, NUMBER, NUMBER, COLUMN, TABLE, NUMBER, TABLE)
    yield write_groups, (TABLE, NUMBER, NUMBER, TABLE, TABLE)
