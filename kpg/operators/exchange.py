"""Exchange: partition updates among workers by key.

    owner(row)  =  hash of the key's values, scaled to the number of workers

Equal keys belong to one worker. The hash is that of values, not of symbol ids, so it is the same in every process.
Updates that far outnumber their possible values must contain duplicates, and updates with hot rows do; these are
consolidated before they are sent. So a count of a hot key sends one row for each worker.
Many rows of one time travel packed, 8 bytes each, and the receiver sorts the words as they are
(kpg.columns.packed_updates). Symbols do not, because the receiver translates them lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kpg.columns.consolidation import consolidate, consolidate_dense
from kpg.columns.exact_diffs import is_exact, narrow
from kpg.columns.packed_updates import Layout, PackedUpdates, pack_updates, packed_layout
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates, concatenate
from kpg.dataflow.channel import Split
from kpg.kernels.key_hash import mix64, owner_of_row
from kpg.kernels.partition_rows import OWNERS, assign_owners, scatter_narrow, scatter_packed, scatter_rows
from kpg.operators.payload import Payload, updates_of

MIN_PACKED_UPDATES = 1 << 10  # fewer updates are sent as they are: a message costs more than their bytes
SAMPLED_UPDATES = 1 << 10  # to find hot rows: the cost of a few hundred rows
MAX_DISTINCT_SHARE = 0.75  # of a sample with hot rows; then sending fewer rows saves more than sorting them costs
MIN_CONSOLIDATED_UPDATES = 1 << 13  # fewer updates are sent as they are: consolidating them would not pay
MIN_UPDATES_PER_VALUE = 4  # where they are dense: the fewer rows must save more than the table costs


def split_by_key(schema: Schema, key_lanes: int, symbols: Symbols) -> Split:
    """Return a function that partitions a payload among workers by its first lanes."""
    symbolic = tuple(type_.is_symbolic for type_ in schema.lane_types()[:key_lanes])
    can_pack = not schema.symbolic_lanes()

    def split(payload: Payload, peers: int) -> list[Payload | None]:
        parts = [updates for updates in updates_of(payload) if len(updates)]
        if not parts:
            return [None] * peers
        updates = consolidate_repeated(concatenate(parts))
        return list(partition_by(updates, updates.data, symbolic, symbols, peers, can_pack))

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
            divided = partition_by(updates, keys, symbolic, symbols, peers, can_pack=False)
            for mine, part in zip(parts, divided, strict=True):
                if part is not None:
                    mine.append(part)
        return [concatenate(mine) if mine else None for mine in parts]

    return split


def whole_updates(payload: Payload) -> Updates:
    """Return all updates of a payload, to be sent to every worker."""
    return concatenate(updates_of(payload))


def send_to(schema: Schema, worker: int | None, own: int) -> Split:
    """Return a function by which worker `own` sends a payload to one worker; to each of them if `worker` is None."""
    can_pack = not schema.symbolic_lanes() and worker != own

    def split(payload: Payload, peers: int) -> list[Payload | None]:
        parts = [updates for updates in updates_of(payload) if len(updates)]
        if not parts:
            return [None] * peers
        updates = parts[0] if len(parts) == 1 else consolidate(concatenate(parts))
        packed = pack_updates(updates) if can_pack and len(updates) >= MIN_PACKED_UPDATES else None
        whole = [updates if packed is None or peer == own else packed for peer in range(peers)]
        return [part if worker in (peer, None) else None for peer, part in enumerate(whole)]

    return split


def sender_of(lanes: tuple[int, ...], schema: Schema, symbols: Symbols, peers: int) -> Callable[[Updates], int]:
    """Return a function that tells whose rows some updates are, if rows are placed by some lanes."""
    symbolic = tuple(schema.lane_types()[lane].is_symbolic for lane in lanes)

    def sender(updates: Updates) -> int:
        key = np.ascontiguousarray(first_row(updates)[list(lanes)])
        return int(owners_of(key, symbolic, symbols, peers).owner[0])

    return sender


def first_row(updates: Updates) -> Ints:
    """Return the lanes of the first row, int64[lanes, 1], without unpacking others."""
    if isinstance(updates, PackedUpdates):
        row = np.empty((updates.lanes, 1), np.int64)
        updates.unpack_into(row)
        return row
    return updates.data[:, :1]


def partition_by(
    updates: Updates, keys: Ints, symbolic: tuple[bool, ...], symbols: Symbols, peers: int, can_pack: bool
) -> list[Updates | None]:
    """Return the updates of each worker; `keys` has the key of each update, and `symbolic` says which lanes of it hold
    symbols. If no lane of the updates does, they can be packed."""
    n = len(updates)
    if not n:
        return [None] * peers
    if n == 1 and not any(symbolic):
        owner = owner_of_row(keys[: len(symbolic), 0].tolist(), peers)
        return [updates if peer == owner else None for peer in range(peers)]
    owners = owners_of(keys, symbolic, symbols, peers)
    sizes = owners.counts.tolist()
    can_pack = can_pack and n >= MIN_PACKED_UPDATES
    if max(sizes) == n:  # all belong to one worker
        whole = (pack_updates(updates) if can_pack else None) or updates
        return [whole if size == n else None for size in sizes]
    layout = packed_layout(updates) if can_pack else None
    if layout is not None:
        return list(partition_packed(updates, layout, owners))
    data, times, diffs = (partition_block(block, owners, n) for block in (updates.data, updates.times, updates.diffs))
    return [
        Updates(data[peer], times[peer], diffs[peer], updates.consolidated) if sizes[peer] else None
        for peer in range(peers)
    ]


def partition_packed(updates: Updates, layout: Layout, owners: Owners) -> Iterator[PackedUpdates | None]:
    """Yield the updates of each worker, packed."""
    fields, counts = layout.fields, owners.counts
    words, ends = np.empty(len(updates), layout.dtype), np.cumsum(counts)
    scatter: Callable[..., None] = scatter_packed if words.dtype == np.int64 else scatter_narrow
    scatter(updates.data, updates.diffs, fields[0], fields[3], owners.owner, ends - counts, words)
    diffs = updates.diffs if len(layout.widths) == layout.lanes else None
    for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
        part = words[end - count : end]
        yield PackedUpdates(part, layout, updates.times, diffs, updates.consolidated) if count else None


def consolidate_repeated(updates: Updates) -> Updates:
    """Consolidate updates that far outnumber their possible values, or that contain hot rows. Others stay unchanged:
    the receiver sorts them."""
    if updates.consolidated or len(updates) < MIN_CONSOLIDATED_UPDATES:
        return updates
    sample = np.ascontiguousarray(updates.data[:, :: -(-len(updates) // SAMPLED_UPDATES)])
    sums = consolidate_dense(updates, MIN_UPDATES_PER_VALUE) if may_be_dense(sample, len(updates)) else None
    if sums is None and has_hot_rows(sample):
        sums = consolidate(updates)
    return updates if sums is None else Updates(sums.data, sums.times, sums.diffs, consolidated=True)


def may_be_dense(sample: Ints, updates: int) -> bool:
    """Return whether the values of a sample are near enough to each other; if not, neither are those of all updates."""
    if not sample.size:
        return True
    ends = zip(sample.min(axis=1).tolist(), sample.max(axis=1).tolist(), strict=True)
    possible = 1 << sum([(high - low).bit_length() for low, high in ends])
    return bool(MIN_UPDATES_PER_VALUE * possible <= updates)


def has_hot_rows(sample: Ints) -> bool:
    """Return whether a few rows make up a large share of the updates: whether a sample repeats rows often.

    Otherwise the owner of a hot row would receive, and sort, most of the updates of all workers.
    """
    hashes = np.zeros(sample.shape[1], np.uint64)
    for lane in sample.view(np.uint64):
        hashes = mix64(hashes ^ lane)
    hashes.sort()
    distinct = 1 + np.count_nonzero(hashes[1:] != hashes[:-1])
    return bool(distinct <= MAX_DISTINCT_SHARE * len(hashes))


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
    scatter_rows(block, owners.owner, starts, owners.counts, flat)
    return [
        flat[start:end].reshape(lanes, count)
        for start, end, count in zip(starts.tolist(), ends.tolist(), owners.counts.tolist(), strict=True)
    ]


class Owners(NamedTuple):
    """The worker of each row, and the row count of each worker."""

    owner: npt.NDArray[np.uint16]
    counts: Ints


def owners_of(data: Ints, symbolic: tuple[bool, ...], symbols: Symbols, peers: int) -> Owners:
    """Return the owner of each row, by its first lanes."""
    keys = data
    if any(symbolic):
        keys = np.ascontiguousarray(data[: len(symbolic)]).copy()
        for lane, is_symbol in enumerate(symbolic):
            if is_symbol:
                keys[lane] = symbols.hash_of(keys[lane])
    owners = Owners(np.empty(data.shape[1], OWNERS.dtype), np.empty(peers, np.int64))
    assign_owners(keys, len(symbolic), peers, *owners)
    return owners
