"""Divide rows among workers by their keys, in two passes.

    owner(row)  =  the upper half of the mixed hash of the key's lanes, scaled to the number of workers

    slot(row)   =  owner, and the row's place among those of its owner in the lower 48 bits

`owners` gives each row its slot and counts them; `scatter` writes one block for each worker, one after the other in one
array, each with its lanes one after the other: so every block is contiguous. The order of rows is kept. Text lanes are
given as hashes of their values. Twins: kpg.testing.kernels_partition.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

BITS = 48  # of a place: fewer pages are touched if it shares a word with the owner
PLACES = (1 << BITS) - 1


@inlined
def mix(value):
    """Scatter bits so that near keys go to far workers (the finaliser of splitmix64)."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@jit
def owners(keys, lanes, peers, slot, counts):
    """Write the slot of each row by its first lanes, and how many each worker owns."""
    for peer in range(peers):
        counts[peer] = 0
    scale = np.uint64(peers)
    half = np.uint64(32)
    for i in range(keys.shape[1]):
        mixed = np.uint64(0)
        for lane in range(lanes):
            mixed = mix(mixed ^ np.uint64(keys[lane, i]))
        peer = np.int64(((mixed >> half) * scale) >> half)
        slot[i] = (peer << BITS) | counts[peer]
        counts[peer] += 1


@jit
def scatter(block, slot, starts, counts, flat):
    """Write the block of each worker; `starts` says where each begins in `flat`."""
    for lane in range(block.shape[0]):
        for i in range(block.shape[1]):
            peer = slot[i] >> BITS
            flat[starts[peer] + lane * counts[peer] + (slot[i] & PLACES)] = block[lane, i]


def examples() -> Iterator[Example]:
    """How these are called."""
    yield owners, (TABLE, NUMBER, NUMBER, COLUMN, COLUMN)
    yield scatter, (TABLE, COLUMN, COLUMN, COLUMN, COLUMN)
