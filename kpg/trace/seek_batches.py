"""Pair a small batch with all batches of a trace at once: what `match` does batch by batch.

    seek(rows, batches)  =  the sum over batches B of match(rows, B)

One search for each key and batch, all in one call, where alternating seeks would wait for memory at each step. If there
are more pairs than fit into a slice, it is left to a `Match` with each batch. Cost: a search for each key and batch,
then linear in pairs; memory for one slice.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from kpg.columns.consolidation import shrink_block
from kpg.columns.updates import Ints, Updates
from kpg.kernels.seek_rows import count_pairs, write_seek_pairs
from kpg.trace.batch import Batch
from kpg.trace.key_history import distinct_keys
from kpg.trace.locate_batches import locate
from kpg.trace.match_batches import Match

FEW = 4096  # rows that are looked up however large the batches
SPARSE = 32  # or a batch with so many times their rows: denser ones are better walked


class Seek:
    """A pairing of some rows of one side (0 left, 1 right) with batches of the other."""

    __slots__ = ("_batches", "_depth", "_key_lanes", "_matches", "_projection", "_rows", "_side")

    def __init__(
        self, rows: Updates, batches: list[Batch], side: int, key_lanes: int, projection: Ints, depth: int
    ) -> None:
        self._rows, self._batches, self._side = rows, batches, side
        self._key_lanes, self._projection, self._depth = key_lanes, projection, depth
        self._matches: deque[Match] | None = None

    def next(self, limit: int) -> Updates | None:
        """The next at most `limit` updates; none when all were given."""
        if self._matches is None:
            self._matches = deque()
            found = self._all(limit)
            if found is not None:
                return found
        while self._matches:
            part = self._matches[0].next(limit)
            if part is not None:
                return part
            self._matches.popleft()
        return None

    def _all(self, limit: int) -> Updates | None:
        """All pairs, unless there is none, or are too many: then they are left to matches."""
        rows, batches = self._rows, self._batches
        keys, offsets = distinct_keys(rows, self._key_lanes)
        table, ranges, found = locate(batches, keys)
        if not found:
            return None
        total, plain = count_pairs(rows.times, offsets, table, ranges)
        if total > limit:
            self._matches = deque(self._match(batch) for batch in batches)
            return None
        width = batches[0].updates.diffs.shape[0]
        data = np.empty((self._projection.shape[0], total), np.int64)
        times = self._plain() if plain else np.empty((self._depth, total), np.int64)
        diffs = np.empty((rows.diffs.shape[0] * width, total), np.int64)
        write_seek_pairs(
            rows.data, rows.times, rows.diffs, offsets, table, ranges, self._side, width, self._projection, 1 - plain,
            data, times, diffs,
        )  # fmt: skip
        return Updates(data, times if plain else shrink_block(times, total), shrink_block(diffs, total))

    def _plain(self) -> Ints:
        """The one time of the rows, coordinates that are missing being zero."""
        times = np.zeros((self._depth, 1), np.int64)
        times[: self._rows.times.shape[0]] = self._rows.times
        return times

    def _match(self, batch: Batch) -> Match:
        pair = (self._rows, batch.updates) if self._side == 0 else (batch.updates, self._rows)
        return Match(*pair, self._key_lanes, self._projection, self._depth)


def worth_seeking(rows: int, batches: list[Batch]) -> bool:
    """Whether so many rows are few against the batches."""
    return rows <= FEW or SPARSE * rows <= max([len(batch) for batch in batches])
