"""Partition rows among workers by key, in two passes, and pack them on the way if they fit into words.

    owner(row)  =  the worker of the hash of its key (kpg.kernels.key_hash)

`assign_owners` computes the owner of each row and counts the rows of each worker. `scatter_rows` writes one block per
worker into one array. Within a block the lanes follow each other, so every block is contiguous. `scatter_packed` writes
rows as words (kpg.columns.packed_updates), and `scatter_narrow` as words of 32 bits. Rows keep their order.
The caller passes a text lane as the hashes of its values, because symbols differ between processes.
Cost: about one nanosecond for each row and lane, in each of the passes; packing takes less for two workers. Twins:
kpg.testing.kernel_twins.partition_rows_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NARROW_COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.key_hash import mix64, worker_of_hash
from kpg.kernels.sort_rows import CHUNK_WORDS

OWNERS = np.zeros(1, np.uint16)  # the type of owners: small, so that a pass touches fewer pages
TALLIES = 4  # tables that count rows in turn: an addition need not wait for the one before

mix = inlined(mix64)
worker_of = inlined(worker_of_hash)


@jit
def assign_owners(keys, lanes, workers, owners, counts):
    """Write the owner of each row, by its first lanes, and the number of rows of each worker.

    The loops over a chunk of rows do one thing each, so that the compiler can vectorise all but the counting.
    """
    tallies = np.zeros((TALLIES, workers), np.int64)
    scale = np.uint64(workers)
    hashes = np.empty(CHUNK_WORDS, np.uint64)
    for start in range(0, keys.shape[1], CHUNK_WORDS):
        part = owners[start : start + CHUNK_WORDS]
        for i in range(len(part)):
            hashes[i] = 0
        for lane in range(lanes):
            values = keys[lane, start : start + CHUNK_WORDS]
            for i in range(len(part)):
                hashes[i] = mix(hashes[i] ^ np.uint64(values[i]))
        for i in range(len(part)):
            part[i] = worker_of(hashes[i], scale)
        whole = len(part) - len(part) % TALLIES
        for i in range(0, whole, TALLIES):
            tallies[0, part[i]] += 1
            tallies[1, part[i + 1]] += 1
            tallies[2, part[i + 2]] += 1
            tallies[3, part[i + 3]] += 1
        for i in range(whole, len(part)):
            tallies[0, part[i]] += 1
    for worker in range(workers):
        counts[worker] = tallies[:, worker].sum()


@jit
def scatter_rows(block, owners, starts, counts, flat):
    """Write the rows of each worker as one block; `starts` holds the position in `flat` at which each block begins."""
    ends = np.empty(len(starts), np.int64)
    for lane in range(block.shape[0]):
        for worker in range(len(starts)):
            ends[worker] = starts[worker] + lane * counts[worker]
        for i in range(block.shape[1]):
            worker = owners[i]
            flat[ends[worker]] = block[lane, i]
            ends[worker] += 1


@inlined
def pack_chunk(data, diffs, low, shift, start, count, chunk):
    """Write the words of `count` rows from `start` on: the lanes of `data`, then those of `diffs` if `low` has more."""
    lanes = data.shape[0]
    for i in range(count):
        chunk[i] = 0
    for lane in range(len(low)):
        if lane < lanes:
            values = data[lane, start : start + CHUNK_WORDS]
        else:
            values = diffs[lane - lanes, start : start + CHUNK_WORDS]
        least, offset = low[lane], shift[lane]
        for i in range(count):
            chunk[i] |= (values[i] - least) << offset


@inlined
def take_place(first, second, owner):
    """Return the place of a row of one of two workers, and the next place of each of them.

    The places stay in registers. In an array, each row would wait for the place that the row before it has stored.
    """
    is_second = np.uint64(owner)
    return first + (second - first) * is_second, first + (np.uint64(1) - is_second), second + is_second


@jit
def scatter_packed(data, diffs, low, shift, owners, starts, words):
    """Pack each row into a word, and write the words of each worker one after the other, from `starts` on.

    The word has the lanes of `data`, then those of `diffs` if `low` and `shift` have entries for them. Words of a chunk
    stay in the first-level cache between packing and dividing. Positions are unsigned: an index that cannot be
    negative is not checked for it.
    """
    ends = starts.astype(np.uint64)
    chunk = np.empty(CHUNK_WORDS, np.int64)
    for start in range(0, data.shape[1], CHUNK_WORDS):
        part = owners[start : start + CHUNK_WORDS]
        pack_chunk(data, diffs, low, shift, start, len(part), chunk)
        if len(ends) == 2:
            first, second = ends[0], ends[1]
            for i in range(len(part)):
                place, first, second = take_place(first, second, part[i])
                words[place] = chunk[i]
            ends[0], ends[1] = first, second
            continue
        for i in range(len(part)):
            worker = part[i]
            words[ends[worker]] = chunk[i]
            ends[worker] += np.uint64(1)


@jit
def scatter_narrow(data, diffs, low, shift, owners, starts, words):
    """Do the same for words of 32 bits."""
    ends = starts.astype(np.uint64)
    chunk = np.empty(CHUNK_WORDS, np.int64)
    for start in range(0, data.shape[1], CHUNK_WORDS):
        part = owners[start : start + CHUNK_WORDS]
        pack_chunk(data, diffs, low, shift, start, len(part), chunk)
        if len(ends) == 2:
            first, second = ends[0], ends[1]
            for i in range(len(part)):
                place, first, second = take_place(first, second, part[i])
                words[place] = np.uint32(chunk[i])
            ends[0], ends[1] = first, second
            continue
        for i in range(len(part)):
            worker = part[i]
            words[ends[worker]] = np.uint32(chunk[i])
            ends[worker] += np.uint64(1)


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield assign_owners, (TABLE, NUMBER, NUMBER, OWNERS, COLUMN)
    yield scatter_rows, (TABLE, OWNERS, COLUMN, COLUMN, COLUMN)
    yield scatter_packed, (TABLE, TABLE, COLUMN, COLUMN, OWNERS, COLUMN, COLUMN)
    yield scatter_narrow, (TABLE, TABLE, COLUMN, COLUMN, OWNERS, COLUMN, NARROW_COLUMN)
