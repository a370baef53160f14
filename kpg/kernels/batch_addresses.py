"""Where the arrays of a batch begin, for kernels that read them by address (kpg.kernels.array_address).

NumPy tells an address by way of a dictionary, for each array in some µs: more than a kernel takes to tell all three.
Twin: `__array_interface__` of NumPy.
"""

from collections.abc import Iterator

from kpg.kernels.example import TABLE, Example
from kpg.kernels.jit import jit


@jit
def begin(data, times, diffs):
    """The addresses of the first numbers of three blocks."""
    return data.ctypes.data, times.ctypes.data, diffs.ctypes.data


def examples() -> Iterator[Example]:
    """The one signature of each kernel that Python calls."""
    yield begin, (TABLE, TABLE, TABLE)
