"""Searches in one sorted lane given by its address (kpg.kernels.array_address); other kernels inline them.

lower_bound   the first position that holds at least a value
gallop        the same position; fast if it is near the start
run_end       the first position after a run of equal values
"""

from kpg.kernels.array_address import peek
from kpg.kernels.jit import inlined


@inlined
def lower_bound(data, start, end, value):
    """Return the first of the sorted positions [start, end) that holds at least a value."""
    while start < end:
        middle = (start + end) >> 1
        if peek(data, middle) < value:
            start = middle + 1
        else:
            end = middle
    return start


@inlined
def gallop(data, start, end, value):
    """Return the same position as `lower_bound`; fast if it is near the start."""
    if start >= end or peek(data, start) >= value:
        return start
    step = 1
    while start + step < end and peek(data, start + step) < value:
        start += step
        step += step
    return lower_bound(data, start + 1, min(end, start + step), value)


@inlined
def run_end(data, start, end, value):
    """Return the end of the run of `value` that begins at `start`, within the sorted positions [start, end)."""
    if start >= end or peek(data, start) != value:
        return start
    step = 1
    while start + step < end and peek(data, start + step) == value:
        start += step
        step += step
    low = start + 1
    high = min(end, start + step)
    while low < high:
        middle = (low + high) >> 1
        if peek(data, middle) == value:
            low = middle + 1
        else:
            high = middle
    return low
