"""Extend tuples by rows of traces with their keys: the primitive of delta queries and worst-case optimal joins.

    extend(T, E)  =  { (projection of tuple and row; join of times; product of diffs)
                       |  tuple in T, row of the cheapest extender, rows of the others that agree,
                          each lexicographically before the tuple's initial time (or at it, if not strict) }

The result is delivered in slices of about `limit` updates, not consolidated and in no particular order. See
kpg.kernels.extend_tuples for how extenders count, propose and validate.
Cost: for each tuple a search in each batch (kpg.trace.locate_batches), then the rows of its cheapest extender.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kpg.algebra.order import Time
from kpg.columns.exact_diffs import largest, mass, total_mass
from kpg.columns.lane_values import MAX
from kpg.columns.output_buffer import allocate_block, release_unused
from kpg.columns.selection import slice_updates
from kpg.columns.updates import Ints, Updates, trim
from kpg.kernels.extend_tuples import extend_tuples, tuples_within_limit
from kpg.kernels.intersect_extenders import intersect_extenders
from kpg.trace.batch import Batch
from kpg.trace.batch_table import table_of
from kpg.trace.exact_extension import LocatedExtender, extend_exactly
from kpg.trace.locate_batches import locate_into

CHUNK_TUPLES = 1 << 16  # searched together, so that their ranges stay in the cache
EXACT_TUPLES = 64  # extended in one call where products may leave 64 bits
INITIAL_SCRATCH_TIMES = 16  # times of one pair of tuple and row that the scratch space holds at first


@dataclass(frozen=True, slots=True)
class Extender:
    """An index that extends tuples: the key to search (lanes of the tuple, or constants), and how its rows count."""

    lanes: tuple[int, ...]  # of the tuple; -1 for a constant
    constants: tuple[int, ...]  # one for each lane of the key
    strict: bool  # only rows before the tuple's initial time count, not those at it
    negative: bool = False  # the tuple is kept if no row has the key


@dataclass(frozen=True, slots=True)
class ExtensionShape:
    """The form of extended tuples: the number of new lanes, their bounds, and the output lanes."""

    new: int
    projection: Ints  # (0, lane of the tuple) or (1, lane after the key)
    low: int = -1  # the lane of an inclusive lower bound of the new lane, if any
    high: int = -1  # the lane of an exclusive upper bound of the new lane, if any


class Extension:
    """An extension of some tuples in progress."""

    def __init__(
        self,
        tuples: Updates,
        extenders: Sequence[Extender],
        batches: Sequence[Sequence[Batch]],
        shape: ExtensionShape,
        floor: Time,
    ) -> None:
        self._tuples, self._extenders, self._shape = tuples, extenders, shape
        self._batches = batches  # the table has addresses of their arrays, so they must stay alive
        self._bounds = np.cumsum([0, *map(len, batches)], dtype=np.int64)
        self._flags = np.array(
            [(len(extender.lanes), extender.strict, extender.negative) for extender in extenders], np.int64
        ).reshape(-1, 3)
        self._floor = np.array(floor, np.int64)
        pair = shape.new == 1 and len(extenders) == 2 and len(floor) == 1
        self.in_pairs = pair and not any(extender.negative for extender in extenders)
        self._meter = np.zeros(2, np.int64)
        self._chunk = tuples
        self._next = 0  # the first tuple after the present chunk
        self._table: Ints | None = None
        self._ranges: Ints | None = None
        self._products_fit = True  # in the present chunk

    @property
    def proposed(self) -> int:
        """The number of rows read so far to extend tuples: the measure of worst-case optimality."""
        return int(self._meter[1])

    def next(self, limit: int) -> Updates | None:
        """Return more updates, at most `limit` unless one tuple has more; None at the end."""
        while True:
            if self._ranges is None:
                if self._next >= len(self._tuples):
                    return None
                self._search_chunk()
            updates = self._extend_some(limit)
            if updates is not None:
                return updates

    def _extend_some(self, limit: int) -> Updates | None:
        """Return the extensions of some tuples of the chunk, or None if these have none."""
        assert self._ranges is not None
        if not self._products_fit:
            return self._extend_exactly()
        chunk, start = self._chunk, int(self._meter[0])
        lanes, depth = self._shape.projection.shape[0], len(self._floor)
        stop, max_times, n = len(chunk), INITIAL_SCRATCH_TIMES, 0
        if self.in_pairs:
            capacity = min(limit, 64 + 2 * (stop - start))
        else:
            stop, capacity = tuples_within_limit(self._ranges, self._bounds, self._flags, self._shape.new, start, limit)
        while capacity:
            data, times, diffs = (
                allocate_block(lanes, capacity),
                allocate_block(depth, capacity),
                allocate_block(1, capacity),
            )
            located = (chunk.data, chunk.times, chunk.diffs, start, stop, self._table, self._bounds, self._flags,
                       self._ranges, self._floor)  # fmt: skip
            shape = (self._shape.low, self._shape.high, self._shape.projection, self._meter)
            if self.in_pairs:
                n, times_alike, diffs_alike = intersect_extenders(*located, *shape, limit, data, times, diffs)
            else:
                n, times_alike, diffs_alike = extend_tuples(
                    *located, self._shape.new, *shape, max_times, data, times, diffs
                )
            if n or self._meter[0] > start:
                break
            capacity, max_times = 2 * capacity, 2 * max_times  # one tuple has more extensions than the buffers hold
        else:
            self._meter[0] = stop
        if self._meter[0] == len(chunk):
            self._ranges = None
        if not n:
            return None
        times = trim(times, 1) if times_alike else release_unused(times, n)
        return Updates(release_unused(data, n), times, trim(diffs, 1) if diffs_alike else release_unused(diffs, n))

    def _search_chunk(self) -> None:
        """Find the rows with the keys of the next chunk of tuples."""
        start, stop = self._next, min(self._next + CHUNK_TUPLES, len(self._tuples))
        self._next, self._chunk = stop, slice_updates(self._tuples, start, stop)
        ranges = np.empty((2 * self._bounds[-1], stop - start), np.int64)
        tables = [table_of([])]
        for number, extender in enumerate(self._extenders):
            first, last = 2 * self._bounds[number : number + 2]
            keys = keys_of(self._chunk.data, extender)
            tables.append(locate_into(ranges[first:last], self._batches[number], keys)[0])
        self._table = np.concatenate(tables)
        self._ranges = ranges
        self._meter[0] = 0
        self._products_fit = self._bound_of_products(ranges) <= MAX

    def _bound_of_products(self, ranges: Ints) -> int:
        """Return a bound of the diffs of the chunk's extensions: each is a product of sums of diffs."""
        bound = mass(self._tuples)
        for batches in self._batches:
            bound *= 1 + total_mass([batch.updates for batch in batches])
        if bound <= MAX:
            return bound
        bound = largest(self._chunk.diffs)
        for number, batches in enumerate(self._batches):
            first, last = 2 * self._bounds[number : number + 2]
            rows = (ranges[first + 1 : last : 2] - ranges[first:last:2]).sum(axis=0).max(initial=0)
            bound *= 1 + int(rows) * max([largest(batch.updates.diffs) for batch in batches], default=0)
        return bound

    def _extend_exactly(self) -> Updates | None:
        """Return the extensions of some tuples of the chunk where products may leave 64 bits, or None."""
        assert self._ranges is not None
        start = int(self._meter[0])
        stop = min(start + EXACT_TUPLES, len(self._chunk))
        extenders = [
            LocatedExtender(
                len(extender.lanes),
                extender.strict,
                extender.negative,
                self._batches[number],
                self._ranges[slice(*2 * self._bounds[number : number + 2])],
            )  # fmt: skip
            for number, extender in enumerate(self._extenders)
        ]
        shape, floor = self._shape, tuple(self._floor.tolist())
        updates = extend_exactly(
            self._chunk, range(start, stop), extenders, shape.new, (shape.low, shape.high), shape.projection, floor
        )
        self._meter += (stop - start, 0 if updates is None else len(updates))
        if stop == len(self._chunk):
            self._ranges = None
        return updates


def keys_of(data: Ints, extender: Extender) -> Ints:
    """Return the key of each tuple: int64[lanes, n]."""
    keys = np.empty((len(extender.lanes), data.shape[1]), np.int64)
    for position, (lane, constant) in enumerate(zip(extender.lanes, extender.constants, strict=True)):
        keys[position] = constant if lane < 0 else data[lane]
    return keys
