"""The same algorithms with a hash map for each property of a node, which works for any node numbers.

The map uses open addressing with linear probing, is at most half full, and chooses slots by the finaliser of
splitmix64. The graph itself stays packed, as in the papers: only the state of nodes is in maps.
"""

from __future__ import annotations

import numpy as np

from kpg.kernels.jit import jit

FREE = -(1 << 62)


@jit
def slot_of(keys, mask, key):
    """Return the slot that holds a key, or the free slot for it."""
    mixed = np.uint64(key)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    slot = np.int64((mixed ^ (mixed >> np.uint64(31))) & np.uint64(mask))
    while keys[slot] != key and keys[slot] != FREE:
        slot = (slot + 1) & mask
    return slot


@jit
def distances(starts, ends, nodes, root):
    """Return the reached nodes in the order of their distance from the root, and their distances."""
    size = 16
    keys, values = np.full(size, FREE, np.int64), np.empty(size, np.int64)
    queue = np.empty(nodes, np.int64)
    slot = slot_of(keys, size - 1, root)
    keys[slot], values[slot], queue[0] = root, 0, root
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        far = values[slot_of(keys, size - 1, node)] + 1
        for at in range(starts[node], starts[node + 1]):
            other = ends[at]
            slot = slot_of(keys, size - 1, other)
            if keys[slot] == FREE:
                keys[slot], values[slot], queue[last] = other, far, other
                last += 1
                if 2 * last > size:
                    keys, values = grown(keys, values)
                    size = len(keys)
    far_in_order = np.empty(last, np.int64)
    for index in range(last):
        far_in_order[index] = values[slot_of(keys, size - 1, queue[index])]
    return queue[:last].copy(), far_in_order


@jit
def grown(keys, values):
    """Return a map of twice the size with the same entries."""
    size = 2 * len(keys)
    new_keys, new_values = np.full(size, FREE, np.int64), np.empty(size, np.int64)
    for old_slot in range(len(keys)):
        if keys[old_slot] != FREE:
            slot = slot_of(new_keys, size - 1, keys[old_slot])
            new_keys[slot], new_values[slot] = keys[old_slot], values[old_slot]
    return new_keys, new_values


@jit
def components(sources, targets):
    """Return the nodes with an edge, and the least node of their components, by union-find."""
    size, held = 16, 0
    keys, parents = np.full(size, FREE, np.int64), np.empty(size, np.int64)
    for edge in range(len(sources)):
        a, b = sources[edge], targets[edge]
        if 2 * (held + 2) > size:
            keys, parents = grown(keys, parents)
            size = len(keys)
        for node in (a, b):
            slot = slot_of(keys, size - 1, node)
            if keys[slot] == FREE:
                keys[slot], parents[slot] = node, node
                held += 1
        a, b = root(keys, parents, a), root(keys, parents, b)
        if a < b:
            parents[slot_of(keys, size - 1, b)] = a
        elif b < a:
            parents[slot_of(keys, size - 1, a)] = b
    nodes, components, index = np.empty(held, np.int64), np.empty(held, np.int64), 0
    for slot in range(size):
        if keys[slot] != FREE:
            nodes[index], components[index] = keys[slot], root(keys, parents, keys[slot])
            index += 1
    return nodes, components


@jit
def root(keys, parents, node):
    """Return the root of a node in the union-find forest, halving the path to it."""
    mask = len(keys) - 1
    slot = slot_of(keys, mask, node)
    while parents[slot] != node:
        above = parents[slot_of(keys, mask, parents[slot])]
        parents[slot] = above
        node = above
        slot = slot_of(keys, mask, node)
    return node
