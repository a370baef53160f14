"""Durations, counted in buckets: their number, sum and approximate quantiles. Cost of one: a binary search."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from kpg.observe.metrics import Labels

BUCKET_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class DurationHistogram:
    """Durations, counted in buckets."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKET_SECONDS) + 1)  # the last bucket has no bound
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect_left(BUCKET_SECONDS, seconds)] += 1
        self._sum += seconds

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self._counts)

    def quantile(self, share: float) -> float | None:
        """Return the duration that a share of all do not exceed, interpolated in its bucket; None if there are none."""
        counts = tuple(self._counts)
        wanted, below, lower = share * sum(counts), 0, 0.0
        if not wanted:
            return None
        for count, upper in zip(counts, (*BUCKET_SECONDS, BUCKET_SECONDS[-1]), strict=True):
            if count and below + count >= wanted:
                return lower + (upper - lower) * (wanted - below) / count
            below, lower = below + count, upper
        return lower

    def samples(self, name: str, labels: Labels) -> Iterator[tuple[str, Labels, float]]:
        """Yield the samples that Prometheus expects: the count up to each bound, the sum, and the count of all."""
        bounds = [*map(str, BUCKET_SECONDS), "+Inf"]
        for bound, count in zip(bounds, accumulate(self._counts), strict=True):
            yield f"{name}_bucket", (*labels, ("le", bound)), count
        yield f"{name}_count", labels, sum(self._counts)
        yield f"{name}_sum", labels, self._sum
