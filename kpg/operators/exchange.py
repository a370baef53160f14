"""Exchange: which worker an update belongs to.

    owner(row)  =  hash of the key's values, scaled to the number of workers

Equal keys meet on one worker. The hash is of values, not of symbol ids, so that it is the same in every process.
Updates that must repeat themselves, since they are more than there are values, are summed before they leave.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpg.columns.consolidation import consolidate_crowded
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates, concatenate
from kpg.dataflow.channel import Split
from kpg.kernels.partition_rows import POSITION_BITS, assign_slots, scatter_rows
from kpg.operators.payload import Payload, updates_of

MANY = 1 << 13  # updates that are put in order before they are divided


def split_by_key(schema: Schema, key_lanes: int, symbols: Symbols) -> Split:
    """A function that cuts a payload into one part per worker, by its first lanes."""
    symbolic = tuple(schema.types[lane].is_symbolic for lane in range(key_lanes))

    def split(payload: Payload, peers: int) -> list[Payload | None]:
        found = [divide(in_order(updates), symbolic, symbols, peers) for updates in updates_of(payload) if len(updates)]
        if len(found) == 1:
            return list(found[0])
        return [
            concatenate(mine) if (mine := [part for parts in found if (part := parts[peer]) is not None]) else None
            for peer in range(peers)
        ]

    return split


def split_by_lanes(
    lanes: tuple[int, ...], constants: tuple[int, ...], types: tuple[Type, ...], symbols: Symbols
) -> Split:
    """The same by any lanes; where a lane is -1 the key has a constant. `types` are those of the key's lanes."""
    symbolic = tuple(type_.is_symbolic for type_ in types)

    def split(payload: Payload, peers: int) -> list[Payload | None]:
        parts: list[list[Updates]] = [[] for _ in range(peers)]
        for updates in updates_of(payload):
            keys = np.empty((len(lanes), len(updates)), np.int64)
            for place, lane in enumerate(lanes):
                keys[place] = constants[place] if lane < 0 else updates.data[lane]
            for mine, part in zip(parts, divide_by(updates, keys, symbolic, symbols, peers), strict=True):
                if part is not None:
                    mine.append(part)
        return [concatenate(mine) if mine else None for mine in parts]

    return split


def divide(updates: Updates, symbolic: tuple[bool, ...], symbols: Symbols, peers: int) -> list[Updates | None]:
    """The updates of each worker, by their first lanes; `symbolic` says which of those are text."""
    return divide_by(updates, updates.data, symbolic, symbols, peers)


def divide_by(
    updates: Updates, keys: Ints, symbolic: tuple[bool, ...], symbols: Symbols, peers: int
) -> list[Updates | None]:
    """The updates of each worker, by keys that are given for each."""
    n = len(updates)
    if not n:
        return [None] * peers
    found = owners_of(keys, symbolic, symbols, peers)
    sizes = found.counts.tolist()
    if max(sizes) == n:  # all are one worker's
        return [updates if size == n else None for size in sizes]
    data, times, diffs = (cut(block, found, n) for block in (updates.data, updates.times, updates.diffs))
    return [
        Updates(data[peer], times[peer], diffs[peer], updates.tidy) if sizes[peer] else None for peer in range(peers)
    ]


def in_order(updates: Updates) -> Updates:
    """Many updates of few values sorted and summed; others as they are, since to sort once is cheaper than to merge."""
    found = None if updates.tidy or len(updates) < MANY else consolidate_crowded(updates)
    return updates if found is None else Updates(found.data, found.times, found.diffs, tidy=True)


def cut(block: Ints, found: Owners, n: int) -> list[Ints]:
    """One contiguous block for each worker; a constant is everybody's."""
    if block.shape[1] != n:
        return [block] * len(found.counts)
    lanes = block.shape[0]
    ends = lanes * np.cumsum(found.counts)
    starts = ends - lanes * found.counts
    flat = np.empty(block.size, np.int64)
    scatter_rows(block, found.slots, starts, found.counts, flat)
    return [
        flat[start:end].reshape(lanes, count)
        for start, end, count in zip(starts.tolist(), ends.tolist(), found.counts.tolist(), strict=True)
    ]


class Owners(NamedTuple):
    """The worker of each row with its place among the rows of that worker, and how many rows each worker has."""

    slots: Ints
    counts: Ints

    @property
    def owner(self) -> Ints:
        """The worker of each row."""
        return self.slots >> POSITION_BITS


def owners_of(data: Ints, symbolic: tuple[bool, ...], symbols: Symbols, peers: int) -> Owners:
    """Whose each row is, by its first lanes."""
    keys = data
    if any(symbolic):
        keys = np.ascontiguousarray(data[: len(symbolic)]).copy()
        for lane, is_symbol in enumerate(symbolic):
            if is_symbol:
                keys[lane] = symbols.hash_of(keys[lane])
    found = Owners(np.empty(data.shape[1], np.int64), np.empty(peers, np.int64))
    assign_slots(keys, len(symbolic), peers, *found)
    return found
