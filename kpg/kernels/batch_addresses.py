"""The addresses of a batch's arrays, for kernels that read by address (kpg.kernels.array_address).

NumPy returns an address through a dictionary, which takes some µs per array. These kernels take less for all three.
Twin: kpg.trace.batch_table.describe_batch, with `__array_interface__` of NumPy.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import (
    BASE,
    DATA,
    DEPTH,
    DIFF_ROWS,
    DIFFS,
    LOOKUP,
    LOOKUP_SIZE,
    ROWS,
    SHIFT,
    TIME_ROWS,
    TIMES,
)
from kpg.kernels.example import NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.lookup_tables import SPARSE_SHIFT


@jit
def batch_addresses(data, times, diffs):
    """Return the addresses of the first numbers of three blocks."""
    return data.ctypes.data, times.ctypes.data, diffs.ctypes.data


@jit
def write_addresses(table, row, data, times, diffs):
    """Describe a batch without a lookup table in a row of a table."""
    table[row, LOOKUP] = table[row, LOOKUP_SIZE] = table[row, BASE] = 0
    table[row, SHIFT] = SPARSE_SHIFT
    table[row, DATA] = data.ctypes.data
    table[row, ROWS] = data.shape[1]
    table[row, TIMES] = times.ctypes.data
    table[row, TIME_ROWS] = times.shape[1]
    table[row, DIFFS] = diffs.ctypes.data
    table[row, DIFF_ROWS] = diffs.shape[1]
    table[row, DEPTH] = times.shape[0]


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield batch_addresses, (TABLE, TABLE, TABLE)
    yield write_addresses, (TABLE, NUMBER, TABLE, TABLE, TABLE)
