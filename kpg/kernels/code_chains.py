"""Chains of row codes by key: an index that only grows, and the kernels that join with it.

`heads` has the first link of the chain of each key, or -1, and `lengths` the number of its links. Link j is the code
`codes[j]`, whose bits above `value_bits` are the key; `following[j]` is the next link, or -1. The last code that was
linked is the first of its chain.

    link_codes          link codes into the chains of their keys
    count_links         return the number of links of all keys
    insert_chain_sums   insert left[i] + columns of the links of keys[i] into a set, and write the new sums
    expand_chains       write all pairs (i, j) of a row and a link of its key

The last two join with the links below `limit`; links of a chain descend. They return where they stopped, if the output
is full: a row, and a link of its chain or -1 for the first. Twins: kpg.testing.kernel_twins.code_chains_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import address_of_column, prefetch
from kpg.kernels.code_sets import AHEAD, FAR_SLOTS, insert_code, insert_held, slot_of
from kpg.kernels.example import COLUMN, NUMBER, Example
from kpg.kernels.jit import jit

LINKS = np.zeros(1, np.int32)  # the type of numbers of links


@jit
def link_codes(new, value_bits, used, codes, following, heads, lengths):
    """Link codes into the chains of their keys, from link `used` on."""
    for i in range(new.shape[0]):
        key = new[i] >> value_bits
        codes[used + i] = new[i]
        following[used + i] = heads[key]
        heads[key] = used + i
        lengths[key] += 1


@jit
def count_links(keys, lengths):
    """Return the number of links of the chains of all keys."""
    total = np.int64(0)
    for i in range(keys.shape[0]):
        total += lengths[keys[i]]
    return total


@jit
def insert_chain_sums(left, keys, codes, following, heads, sources, targets, masks, table, mask, out, limit, row, link):
    """Insert the sums from a row and a link on, while they fit; return where it stopped, and the number written.

    The columns of a link are the bits at `sources`, as many as `masks` has, and move to `targets`.
    """
    n, count = 0, 0
    capacity = out.shape[0]
    is_far = mask >= FAR_SLOTS - 1  # request slots before they are read: see kpg.kernels.code_sets
    held = np.empty(AHEAD, np.int64)
    slots, links = address_of_column(table), address_of_column(codes)
    for i in range(row, left.shape[0]):
        if is_far and i + AHEAD < left.shape[0]:
            prefetch(links, np.int64(heads[keys[i + AHEAD]]))
        j = np.int64(heads[keys[i]])
        if i == row and link >= 0:
            j = np.int64(link)
        while j >= limit:
            j = np.int64(following[j])
        base = left[i]
        while j >= 0:
            if n + count == capacity:
                n = insert_held(held, count, table, mask, out, n)
                count = 0
                if n == capacity:
                    return i, j, n
            code = base
            for column in range(sources.shape[0]):
                code += ((codes[j] >> sources[column]) & masks[column]) << targets[column]
            if is_far:
                prefetch(slots, slot_of(code, mask))
                held[count] = code
                count += 1
                if count == AHEAD:
                    n = insert_held(held, count, table, mask, out, n)
                    count = 0
            elif insert_code(code, table, mask):
                out[n] = code
                n += 1
            j = np.int64(following[j])
    n = insert_held(held, count, table, mask, out, n)
    return left.shape[0], np.int64(-1), n


@jit
def expand_chains(keys, following, heads, lefts, rights, limit, row, link):
    """Write the pairs from a row and a link on, while they fit; return where it stopped, and the number written."""
    n = 0
    capacity = lefts.shape[0]
    for i in range(row, keys.shape[0]):
        j = np.int64(heads[keys[i]])
        if i == row and link >= 0:
            j = np.int64(link)
        while j >= limit:
            j = np.int64(following[j])
        while j >= 0:
            if n == capacity:
                return i, j, n
            lefts[n] = i
            rights[n] = j
            n += 1
            j = np.int64(following[j])
    return keys.shape[0], np.int64(-1), n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield link_codes, (COLUMN, NUMBER, NUMBER, COLUMN, LINKS, LINKS, LINKS)
    yield count_links, (COLUMN, LINKS)
    moves, place = (COLUMN, COLUMN, COLUMN), (NUMBER, NUMBER, NUMBER)
    chains = (COLUMN, COLUMN, COLUMN, LINKS, LINKS)
    yield insert_chain_sums, (*chains, *moves, COLUMN, NUMBER, COLUMN, *place)
    yield expand_chains, (COLUMN, LINKS, LINKS, COLUMN, COLUMN, NUMBER, NUMBER, NUMBER)
