"""Partition rows among workers by key, in two passes.

    owner(row)  =  the worker of the hash of its key (kpg.kernels.key_hash)
    slot(row)   =  the owner, and in the lower 48 bits the position of the row among the rows of its owner

`assign_slots` computes the slot of each row and counts the rows of each worker. `scatter_rows` writes one block per
worker into one array. Within a block the lanes follow each other, so every block is contiguous. Rows keep their order.
The caller passes a text lane as the hashes of its values, because symbols differ between processes.
Cost: one pass each. Twins: kpg.testing.kernel_twins.partition_rows_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.key_hash import mix64, worker_of_hash

POSITION_BITS = 48  # a position and its owner share one word, so that a pass touches fewer pages
POSITION_MASK = (1 << POSITION_BITS) - 1

mix = inlined(mix64)
worker_of = inlined(worker_of_hash)


@jit
def assign_slots(keys, lanes, workers, slots, counts):
    """Write the slot of each row, by its first lanes, and the number of rows of each worker."""
    for worker in range(workers):
        counts[worker] = 0
    scale = np.uint64(workers)
    for i in range(keys.shape[1]):
        hashed = np.uint64(0)
        for lane in range(lanes):
            hashed = mix(hashed ^ np.uint64(keys[lane, i]))
        worker = np.int64(worker_of(hashed, scale))
        slots[i] = (worker << POSITION_BITS) | counts[worker]
        counts[worker] += 1


@jit
def scatter_rows(block, slots, starts, counts, flat):
    """Write the rows of each worker as one block; `starts` holds the position in `flat` at which each block begins."""
    for lane in range(block.shape[0]):
        for i in range(block.shape[1]):
            worker = slots[i] >> POSITION_BITS
            flat[starts[worker] + lane * counts[worker] + (slots[i] & POSITION_MASK)] = block[lane, i]


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield assign_slots, (TABLE, NUMBER, NUMBER, COLUMN, COLUMN)
    yield scatter_rows, (TABLE, COLUMN, COLUMN, COLUMN, COLUMN)
