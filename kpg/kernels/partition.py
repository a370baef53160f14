"""Divide rows among workers by their keys, in two passes.

    owner(row)  =  mixed hash of the key's lanes, as an unsigned number, modulo the workers

`owners` says whose each row is and counts them; `scatter` writes one block for each worker, one after the other in one
array, each with its lanes one after the other: so every block is contiguous. The order of rows is kept. Text lanes are
given as hashes of their values. Twins: kpg.testing.kernels_partition.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit


@inlined
def mix(value):
    """Scatter bits so that near keys go to far workers (the finaliser of splitmix64)."""
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@jit
def owners(keys, lanes, peers, out, counts):
    """Write the owner of each row by its first lanes, and how many rows each worker owns."""
    for peer in range(peers):
        counts[peer] = 0
    modulus = np.uint64(peers)
    for i in range(keys.shape[1]):
        mixed = np.uint64(0)
        for lane in range(lanes):
            mixed = mix(mixed ^ np.uint64(keys[lane, i]))
        owner = np.int64(mixed % modulus)
        out[i] = owner
        counts[owner] += 1


@jit
def scatter(block, owner, counts, at, flat):
    """Write the block of each worker, given how many rows each owns; `at` is scratch, one number for each worker."""
    lanes = block.shape[0]
    for lane in range(lanes):
        start = 0
        for peer in range(len(counts)):
            at[peer] = start + lane * counts[peer]
            start += lanes * counts[peer]
        for i in range(block.shape[1]):
            peer = owner[i]
            flat[at[peer]] = block[lane, i]
            at[peer] += 1


def examples() -> Iterator[Example]:
    """How these are called."""
    yield owners, (TABLE, NUMBER, NUMBER, COLUMN, COLUMN)
    yield scatter, (TABLE, COLUMN, COLUMN, COLUMN, COLUMN)
