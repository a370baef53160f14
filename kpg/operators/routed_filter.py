"""RoutedFilter: an import that a filter receives only in part, because it compares columns with constants.

    rows with k = 5 of an arrangement:   the publisher feeds only small batches that have such a row,
                                         and of a larger batch that is sorted by k first, a search finds them

Rows without the constants neither pass the filter nor fail in it, so the filter need not see them.
Cost: nothing for small batches without the constants; for a large batch sorted by them, a binary search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np

from kpg.columns.updates import Updates
from kpg.dataflow.graph import Stream
from kpg.operators.arrange import Publisher
from kpg.operators.import_arrangement import import_of
from kpg.operators.payload import Payload
from kpg.operators.source import Source
from kpg.trace.batch import Batch
from kpg.trace.unsorted_batch import is_unsorted

MIN_SEARCHED_ROWS = 1024  # of a batch; a smaller one is compared as fast
SIDES: Final[tuple[Literal["left", "right"], ...]] = ("left", "right")  # the first equal row, and the first after them


class RoutedFilter:
    """The input of one filter, and the constants of its lanes."""

    def __init__(self, source: Source, publisher: Publisher, constants: Mapping[int, int]) -> None:
        self._source, self._publisher = source, publisher
        self._lanes = tuple(sorted(constants))
        self._key = tuple(constants[lane] for lane in self._lanes)
        self._leading = next(
            (i for i, lane in enumerate(self._lanes) if i != lane), len(self._lanes)
        )  # lanes 0, 1, ...

    def begin(self) -> None:
        """Receive only batches with the constants, if no other operator reads this import."""
        if len(self._source.channels[0]) == 1:
            self._publisher.route(self._source, self._lanes, {self._key})

    def candidates(self, payload: Payload) -> list[Updates]:
        """Return the updates of a message, without most of those that lack the constants."""
        if isinstance(payload, Updates):
            return [payload]
        return [self._rows_of(batch) for batch in payload]

    def _rows_of(self, batch: Batch) -> Updates:
        if len(batch) < MIN_SEARCHED_ROWS or not self._leading or is_unsorted(batch):
            return batch.updates
        updates = batch.updates
        start, end = 0, len(updates)
        for lane, constant in zip(range(self._leading), self._key, strict=False):
            within = updates.data[lane, start:end]
            start, end = [start + int(np.searchsorted(within, constant, side)) for side in SIDES]
        return part_of(updates, start, end)


def part_of(updates: Updates, start: int, end: int) -> Updates:
    """Return some consecutive updates as a copy."""
    return Updates(
        updates.data[:, start:end].copy(),
        updates.times if updates.times.shape[1] == 1 else updates.times[:, start:end].copy(),
        updates.diffs if updates.diffs.shape[1] == 1 else updates.diffs[:, start:end].copy(),
    )


def routed_filter(stream: Stream, constants: Mapping[int, int]) -> RoutedFilter | None:
    """Return the routing of a filter that reads a stream, if that is an import and the filter needs some keys only."""
    origin = import_of(stream) if constants else None
    return None if origin is None else RoutedFilter(*origin, constants)
