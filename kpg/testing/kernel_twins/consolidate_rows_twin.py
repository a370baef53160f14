"""Twin of kpg.kernels.consolidate_rows. Its kernels compute the same result in several ways, so they share one twin."""

from __future__ import annotations

from collections.abc import Iterable

from kpg.algebra.order import Time
from kpg.testing.kernel_twins.row_tuples import Row, Update, plus


def consolidate(updates: Iterable[Update]) -> list[Update]:
    """Return each (data, time) once, sorted, with the sum of its diffs, unless the sum is zero."""
    total: dict[tuple[Row, Time], Row] = {}
    for data, time, diff in updates:
        total[data, time] = plus(total[data, time], diff) if (data, time) in total else diff
    return [(data, time, diff) for (data, time), diff in sorted(total.items()) if any(diff)]
