"""Exchange: partition updates among workers by key.

    owner(row)  =  hash of the key's values, scaled to the number of workers

Equal keys belong to one worker. The hash is that of values, not of symbol ids, so it is the same in every process.
Updates that outnumber their possible values must contain duplicates; these are consolidated before they are sent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kpg.columns.consolidation import consolidate_dense
from kpg.columns.exact_diffs import is_exact, narrow
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates, concatenate
from kpg.dataflow.channel import Split
from kpg.kernels.partition_rows import POSITION_BITS, assign_slots, scatter_rows
from kpg.operators.payload import Payload, updates_of

MIN_CONSOLIDATED_UPDATES = 1 << 13  # fewer updates are sent as they are: consolidating them would not pay


def split_by_key(schema: Schema, key_lanes: int, symbols: Symbols) -> Split:
    """Return a function that partitions a payload among workers by its first lanes."""
    symbolic = tuple(type_.is_symbolic for type_ in schema.lane_types()[:key_lanes])

    def split(payload: Payload, peers: int) -> list[Payload | None]:
        partitions = [
            partition(consolidate_repeated(updates), symbolic, symbols, peers)
            for updates in updates_of(payload)
            if len(updates)
        ]
        if len(partitions) == 1:
            return list(partitions[0])
        return [
            concatenate(mine) if (mine := [part for parts in partitions if (part := parts[peer]) is not None]) else None
            for peer in range(peers)
        ]

    return split


def split_by_lanes(
    lanes: tuple[int, ...], constants: tuple[int, ...], types: tuple[Type, ...], symbols: Symbols
) -> Split:
    """Return a function that partitions a payload by any lanes. A lane of -1 stands for the constant in its position.

    `types` are the types of the key's lanes.
    """
    symbolic = tuple(type_.is_symbolic for type_ in types)

    def split(payload: Payload, peers: int) -> list[Payload | None]:
        parts: list[list[Updates]] = [[] for _ in range(peers)]
        for updates in updates_of(payload):
            keys = np.empty((len(lanes), len(updates)), np.int64)
            for position, lane in enumerate(lanes):
                keys[position] = constants[position] if lane < 0 else updates.data[lane]
            for mine, part in zip(parts, partition_by(updates, keys, symbolic, symbols, peers), strict=True):
                if part is not None:
                    mine.append(part)
        return [concatenate(mine) if mine else None for mine in parts]

    return split


def partition(updates: Updates, symbolic: tuple[bool, ...], symbols: Symbols, peers: int) -> list[Updates | None]:
    """Return the updates of each worker, by their first lanes. `symbolic` says which of these hold symbols."""
    return partition_by(updates, updates.data, symbolic, symbols, peers)


def partition_by(
    updates: Updates, keys: Ints, symbolic: tuple[bool, ...], symbols: Symbols, peers: int
) -> list[Updates | None]:
    """Return the updates of each worker; `keys` has the key of each update."""
    n = len(updates)
    if not n:
        return [None] * peers
    owners = owners_of(keys, symbolic, symbols, peers)
    sizes = owners.counts.tolist()
    if max(sizes) == n:  # all belong to one worker
        return [updates if size == n else None for size in sizes]
    data, times, diffs = (partition_block(block, owners, n) for block in (updates.data, updates.times, updates.diffs))
    return [
        Updates(data[peer], times[peer], diffs[peer], updates.consolidated) if sizes[peer] else None
        for peer in range(peers)
    ]


def consolidate_repeated(updates: Updates) -> Updates:
    """Consolidate updates that outnumber their possible values. Others stay unchanged: the receiver sorts them."""
    sums = None if updates.consolidated or len(updates) < MIN_CONSOLIDATED_UPDATES else consolidate_dense(updates)
    return updates if sums is None else Updates(sums.data, sums.times, sums.diffs, consolidated=True)


def partition_block(block: Ints, owners: Owners, n: int) -> list[Ints]:
    """Return a contiguous block for each worker. A constant is shared by all of them."""
    if block.shape[1] != n:
        return [block] * len(owners.counts)
    if is_exact(block):
        return [narrow(np.ascontiguousarray(block[:, owners.owner == peer])) for peer in range(len(owners.counts))]
    lanes = block.shape[0]
    ends = lanes * np.cumsum(owners.counts)
    starts = ends - lanes * owners.counts
    flat = np.empty(block.size, np.int64)
    scatter_rows(block, owners.slots, starts, owners.counts, flat)
    return [
        flat[start:end].reshape(lanes, count)
        for start, end, count in zip(starts.tolist(), ends.tolist(), owners.counts.tolist(), strict=True)
    ]


class Owners(NamedTuple):
    """The worker of each row with its position among the rows of that worker, and the row count of each worker."""

    slots: Ints
    counts: Ints

    @property
    def owner(self) -> Ints:
        """The worker of each row."""
        return self.slots >> POSITION_BITS


def owners_of(data: Ints, symbolic: tuple[bool, ...], symbols: Symbols, peers: int) -> Owners:
    """Return the owner of each row, by its first lanes."""
    keys = data
    if any(symbolic):
        keys = np.ascontiguousarray(data[: len(symbolic)]).copy()
        for lane, is_symbol in enumerate(symbolic):
            if is_symbol:
                keys[lane] = symbols.hash_of(keys[lane])
    owners = Owners(np.empty(data.shape[1], np.int64), np.empty(peers, np.int64))
    assign_slots(keys, len(symbolic), peers, *owners)
    return owners
