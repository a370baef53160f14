"""Searches in one sorted lane, given by its address (kpg.kernels.array_address): parts of other kernels.

lower_bound   the first position that holds at least a value
gallop        the same, quick where it is near the start
past          the first position that holds more than a value, where all before hold it
"""

from kpg.kernels.array_address import peek
from kpg.kernels.jit import inlined


@inlined
def lower_bound(data, start, end, value):
    """The first of the sorted positions [start, end) that holds at least a value."""
    while start < end:
        middle = (start + end) >> 1
        if peek(data, middle) < value:
            start = middle + 1
        else:
            end = middle
    return start


@inlined
def gallop(data, start, end, value):
    """The same, quick where it is near the start."""
    if start >= end or peek(data, start) >= value:
        return start
    step = 1
    while start + step < end and peek(data, start + step) < value:
        start += step
        step += step
    return lower_bound(data, start + 1, min(end, start + step), value)


@inlined
def past(data, start, end, value):
    """The first of the sorted positions [start, end) that holds more than a value; all before hold it."""
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
