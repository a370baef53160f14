"""Seek: pair a small batch with all batches of a trace in one call.

    seek(rows, batches)  =  the sum over batches B of match(rows, B)

All keys are searched in all batches in one kernel call; the alternating seeks of a `Match` would wait for memory at
each step. If the pairs do not fit into one slice, or a product may leave 64 bits, a `Match` with each batch produces
them.
Cost: a search for each key and batch, then linear in pairs; memory for one slice.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from kpg.columns.consolidation import shrink_block
from kpg.columns.exact_diffs import largest, mass, set_mass, total_mass
from kpg.columns.lane_values import MAX
from kpg.columns.updates import Ints, Updates
from kpg.kernels.seek_rows import count_pairs, write_seek_pairs
from kpg.trace.batch import Batch
from kpg.trace.key_history import distinct_keys
from kpg.trace.locate_batches import locate
from kpg.trace.match_batches import Match

MAX_ROWS_ALWAYS_SOUGHT = 4096  # up to this number of rows, seeking is faster in batches of any size
MIN_ROWS_RATIO = 32  # more rows are sought if the largest batch has at least 32 times as many; else a match is faster


class Seek:
    """A seek in progress: some rows of one side (0 left, 1 right), and the batches of the other."""

    __slots__ = ("_batches", "_depth", "_key_lanes", "_matches", "_projection", "_rows", "_side")

    def __init__(
        self, rows: Updates, batches: list[Batch], side: int, key_lanes: int, projection: Ints, depth: int
    ) -> None:
        self._rows, self._batches, self._side = rows, batches, side
        self._key_lanes, self._projection, self._depth = key_lanes, projection, depth
        self._matches: deque[Match] | None = None

    def next(self, limit: int) -> Updates | None:
        """Return the next updates, at most `limit`; None at the end."""
        if self._matches is None:
            self._matches = deque()
            pairs = self._all_pairs(limit)
            if pairs is not None:
                return pairs
        while self._matches:
            part = self._matches[0].next(limit)
            if part is not None:
                return part
            self._matches.popleft()
        return None

    @property
    def match(self) -> Match | None:
        """The match in progress, if matches produce the pairs."""
        return self._matches[0] if self._matches else None

    def _all_pairs(self, limit: int) -> Updates | None:
        """Return all pairs, or None if there are none, or if matches must produce them."""
        rows, batches = self._rows, self._batches
        keys, offsets = distinct_keys(rows, self._key_lanes)
        table, ranges, row_count = locate(batches, keys)
        if not row_count:
            return None
        total, plain = count_pairs(rows.times, offsets, table, ranges)
        bound = mass(rows) * total_mass([batch.updates for batch in batches])
        if total > limit or not (bound <= MAX or self._products_fit()):
            self._matches = deque(self._match(batch) for batch in batches)
            return None
        width = batches[0].updates.diffs.shape[0]
        data = np.empty((self._projection.shape[0], total), np.int64)
        times = self._single_time() if plain else np.empty((self._depth, total), np.int64)
        diffs = np.empty((rows.diffs.shape[0] * width, total), np.int64)
        write_seek_pairs(
            rows.data, rows.times, rows.diffs, offsets, table, ranges, self._side, width, self._projection, 1 - plain,
            data, times, diffs,
        )  # fmt: skip
        pairs = Updates(data, times if plain else shrink_block(times, total), shrink_block(diffs, total))
        set_mass(pairs, bound)  # the sum of products is at most the product of the sums
        return pairs

    def _products_fit(self) -> bool:
        """Return whether all products of a diff of the rows and one of the batches fit 64 bits."""
        return largest(self._rows.diffs) * max(largest(batch.updates.diffs) for batch in self._batches) <= MAX

    def _single_time(self) -> Ints:
        """Return the only time of the rows, with zeros for missing coordinates."""
        times = np.zeros((self._depth, 1), np.int64)
        times[: self._rows.times.shape[0]] = self._rows.times
        return times

    def _match(self, batch: Batch) -> Match:
        pair = (self._rows, batch.updates) if self._side == 0 else (batch.updates, self._rows)
        return Match(*pair, self._key_lanes, self._projection, self._depth)


def is_worth_seeking(rows: int, batches: list[Batch]) -> bool:
    """Return whether a seek of `rows` rows in the batches is faster than a match with each of them."""
    return rows <= MAX_ROWS_ALWAYS_SOUGHT or MIN_ROWS_RATIO * rows <= max([len(batch) for batch in batches])
