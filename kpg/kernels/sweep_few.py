"""Compute the changes of sums or presence of few keys, with the sums before, in one call.

    sweep_few  =  single_time_changes (kpg.kernels.single_time), where `old` is sum_diffs (kpg.kernels.sum_diffs) over
                  the first `batches` rows of a table

For one key the call takes about as long as reading its arguments.
Twin: kpg.testing.kernel_twins.sweep_totals_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.single_time import single_time_changes
from kpg.kernels.sum_diffs import sum_diffs


@jit
def sweep_few(kind, at_least, table, batches, keys, offsets, diffs, out, out_diffs):
    """Write the changes of all keys, at most two columns for each; return their number."""
    old = np.zeros((diffs.shape[0], keys.shape[1]), np.int64)
    sum_diffs(table[:batches], keys, np.empty((2, keys.shape[1]), np.int64), old)
    return single_time_changes(kind, at_least, keys, offsets, diffs, old, out, out_diffs)


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield sweep_few, (NUMBER, NUMBER, TABLE, NUMBER, TABLE, COLUMN, TABLE, TABLE, TABLE)
