"""The set of batches that were applied, by writer, so that a batch sent twice is applied once.

The set keeps the batch numbers of each source as ranges, so a writer that numbers its batches consecutively takes two
integers. It keeps the `MAX_WRITERS` sources that wrote last. If that many others write after a source's last batch, the
set forgets the source, and a repeated batch of it would be applied again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from kpg.storage.record import Origin

MAX_WRITERS = 100_000  # bounds the manifest, which lists every range: a few megabytes


class AppliedBatches:
    """A set of origins."""

    def __init__(
        self, ranges: Mapping[str, Sequence[Sequence[int]]] | None = None, max_writers: int = MAX_WRITERS
    ) -> None:
        self._max_writers = max_writers
        self._ranges: dict[str, list[list[int]]] = {}  # the source that wrote last comes last
        for source, pairs in (ranges or {}).items():
            self._ranges[source] = [[int(low), int(high)] for low, high in pairs]

    def __contains__(self, origin: Origin) -> bool:
        ranges = self._ranges.get(origin.source, [])
        index = bisect_right(ranges, origin.batch, key=lambda pair: pair[0]) - 1
        return index >= 0 and origin.batch <= ranges[index][1]

    def add(self, origin: Origin) -> None:
        """Add one origin."""
        if origin in self:
            return
        ranges = self._ranges[origin.source] = self._ranges.pop(origin.source, [])
        if len(self._ranges) > self._max_writers:
            del self._ranges[next(iter(self._ranges))]
        index = bisect_right(ranges, origin.batch, key=lambda pair: pair[0])
        ranges.insert(index, [origin.batch, origin.batch])
        if index + 1 < len(ranges) and ranges[index + 1][0] == origin.batch + 1:
            ranges[index][1] = ranges.pop(index + 1)[1]
        if index and ranges[index - 1][1] == origin.batch - 1:
            ranges[index - 1][1] = ranges.pop(index)[1]

    def discard(self, origin: Origin) -> None:
        """Remove one origin, if the set has it."""
        if origin in self:
            ranges = self._ranges[origin.source]
            index = bisect_right(ranges, origin.batch, key=lambda pair: pair[0]) - 1
            low, high = ranges[index]
            ranges[index : index + 1] = [
                pair for pair in ([low, origin.batch - 1], [origin.batch + 1, high]) if pair[0] <= pair[1]
            ]

    def latest(self, source: str) -> int | None:
        """Return the greatest applied batch of a source."""
        ranges = self._ranges.get(source)
        return ranges[-1][1] if ranges else None

    def to_json(self) -> dict[str, list[list[int]]]:
        """Return the ranges by source, as a manifest keeps them."""
        return {source: [list(pair) for pair in ranges] for source, ranges in self._ranges.items()}
