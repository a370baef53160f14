"""Where the rows of some keys are in the batches of a trace: what all who read a trace by key begin with.

    locate(batches, keys)  =  table, ranges, rows

`keys` is int64[key_lanes, m], in any order; the table says where the batches lie (kpg.trace.batch_table), and their ranges,
int64[2 * batches, m], where the rows of each key begin and end in each. Cost: a search for each key and batch, which is
a look and a few steps in a batch that was asked often (kpg.trace.lookup_table).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels import locate_keys as kernel
from kpg.trace.batch import Batch
from kpg.trace.batch_table import table_of


def locate(batches: Sequence[Batch], keys: Ints) -> tuple[Ints, Ints, int]:
    """The batches as a table, where each has the rows of each key, and how many rows that is in all."""
    ranges = np.empty((2 * len(batches), keys.shape[1]), np.int64)
    table, rows = locate_into(ranges, batches, keys)
    return table, ranges, rows


def locate_into(ranges: Ints, batches: Sequence[Batch], keys: Ints) -> tuple[Ints, int]:
    """The same where there is room for the ranges."""
    lanes, m = keys.shape
    table = table_of([batch.row_for(m if lanes else 0) for batch in batches])
    return table, kernel.locate_keys(table, keys, ranges) if batches else 0
