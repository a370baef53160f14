"""Twin of kpg.kernels.merge_runs and kpg.kernels.resort_times."""

from __future__ import annotations

from collections.abc import Sequence

from kpg.algebra.frontier import Frontier
from kpg.testing.kernel_twins.advance_times_twin import advance_times
from kpg.testing.kernel_twins.consolidate_rows_twin import consolidate
from kpg.testing.kernel_twins.row_tuples import Update


def merge_runs(a: Sequence[Update], b: Sequence[Update], frontier: Frontier) -> list[Update]:
    """Return the updates of both runs at the representatives of their times, consolidated."""
    both = [*a, *b]
    times = advance_times([time for _, time, _ in both], frontier)
    return consolidate((data, time, diff) for (data, _, diff), time in zip(both, times, strict=True))
