"""The addresses of a batch's arrays, for kernels that read by address (kpg.kernels.array_address).

NumPy returns an address through a dictionary, which takes some µs per array. This kernel returns all three in less
time. Twin: `__array_interface__` of NumPy.
"""

from collections.abc import Iterator

from kpg.kernels.example import TABLE, Example
from kpg.kernels.jit import jit


@jit
def batch_addresses(data, times, diffs):
    """Return the addresses of the first numbers of three blocks."""
    return data.ctypes.data, times.ctypes.data, diffs.ctypes.data


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield batch_addresses, (TABLE, TABLE, TABLE)
