"""Which batches of which writers were applied: what makes a writer that repeats itself exact.

Kept as ranges of whole numbers for each source, so a writer that counts up takes two numbers however long it runs. Of
writers, the last `WRITERS` that wrote are remembered: one that was silent while so many others wrote is a new one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from kpg.storage.record import Origin

WRITERS = 100_000


class AppliedBatches:
    """A set of origins."""

    def __init__(self, ranges: Mapping[str, Sequence[Sequence[int]]] | None = None, writers: int = WRITERS) -> None:
        self._writers = writers
        self._ranges: dict[str, list[list[int]]] = {}  # who wrote last comes last
        for source, pairs in (ranges or {}).items():
            self._ranges[source] = [[int(low), int(high)] for low, high in pairs]

    def __contains__(self, origin: Origin) -> bool:
        ranges = self._ranges.get(origin.source, [])
        place = bisect_right(ranges, origin.batch, key=lambda pair: pair[0]) - 1
        return place >= 0 and origin.batch <= ranges[place][1]

    def add(self, origin: Origin) -> None:
        """Remember one more."""
        if origin in self:
            return
        ranges = self._ranges[origin.source] = self._ranges.pop(origin.source, [])
        if len(self._ranges) > self._writers:
            del self._ranges[next(iter(self._ranges))]
        place = bisect_right(ranges, origin.batch, key=lambda pair: pair[0])
        ranges.insert(place, [origin.batch, origin.batch])
        if place + 1 < len(ranges) and ranges[place + 1][0] == origin.batch + 1:
            ranges[place][1] = ranges.pop(place + 1)[1]
        if place and ranges[place - 1][1] == origin.batch - 1:
            ranges[place - 1][1] = ranges.pop(place)[1]

    def discard(self, origin: Origin) -> None:
        """Forget one, if it is there."""
        if origin in self:
            ranges = self._ranges[origin.source]
            place = bisect_right(ranges, origin.batch, key=lambda pair: pair[0]) - 1
            low, high = ranges[place]
            ranges[place : place + 1] = [
                pair for pair in ([low, origin.batch - 1], [origin.batch + 1, high]) if pair[0] <= pair[1]
            ]

    def latest(self, source: str) -> int | None:
        """The greatest batch of a source that was applied."""
        ranges = self._ranges.get(source)
        return ranges[-1][1] if ranges else None

    def to_json(self) -> dict[str, list[list[int]]]:
        """As it is kept in a manifest."""
        return {source: [list(pair) for pair in ranges] for source, ranges in self._ranges.items()}
