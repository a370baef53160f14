"""Twin of kpg.kernels.match_rows and kpg.kernels.seek_rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpg.algebra.order import Time, join
from kpg.testing.kernel_twins.row_tuples import Update


def match_rows(
    left: Iterable[Update], right: Iterable[Update], key_lanes: int, projection: Sequence[tuple[int, int]], depth: int
) -> list[Update]:
    """Return all pairs of equal key, sorted: projected data, joined times, multiplied diffs."""

    def extend(time: Time) -> Time:
        return time + (0,) * (depth - len(time))

    return sorted(
        (
            tuple((a, b)[side][lane] for side, lane in projection),
            join(extend(s), extend(t)),
            tuple(x * y for x in p for y in q),
        )
        for a, s, p in left
        for b, t, q in right
        if a[:key_lanes] == b[:key_lanes]
    )
