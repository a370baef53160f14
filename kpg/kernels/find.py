"""Find the rows of each of some keys, in no order, in one batch of a trace.

`keys` is int64[key_lanes, n]; the batch is described by row `block` of `table` (kpg.kernels.address) and sorted by its
first `key_lanes` lanes. Fills starts[k], ends[k]: the rows of key k are [starts[k], ends[k]).

    offsets_of   where the rows of each value of the first lane begin, if the values lie close together
    find         a look-up there, or a search, and a search among what was found for the lanes that follow

A key that equals the one before costs nothing, one that follows it a few steps. Twin: kpg.testing.kernels_extend.find.
"""

from collections.abc import Iterator

from kpg.kernels.address import DATA, ROWS, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit


@jit
def offsets_of(table, block, low, offsets):
    """Fill offsets[v - low] with the first row whose first lane is at least v, for each v; the last is the end."""
    data = table[block, DATA]
    n = table[block, ROWS]
    at = 0
    for row in range(n):
        value = peek(data, row) - low
        while at <= value:
            offsets[at] = row
            at += 1
    while at < len(offsets):
        offsets[at] = n
        at += 1


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


@jit
def find(table, block, keys, low, offsets, starts, ends):
    """Fill starts and ends; `offsets` is empty where rows are to be searched."""
    data = table[block, DATA]
    n = table[block, ROWS]
    lanes = keys.shape[0]
    values = len(offsets) - 1
    for k in range(keys.shape[1]):
        start = 0
        end = n
        same = k > 0
        for lane in range(lanes):
            if same and keys[lane, k] != keys[lane, k - 1]:
                same = False
        if same:
            starts[k] = starts[k - 1]
            ends[k] = ends[k - 1]
            continue
        for lane in range(lanes):
            value = keys[lane, k]
            base = data + 8 * lane * n
            if lane == 0 and values > 0:
                place = value - low
                if 0 <= place < values:
                    start = offsets[place]
                    end = offsets[place + 1]
                else:
                    end = start
                continue
            if lane == 0 and k > 0 and value >= keys[0, k - 1]:
                if value > keys[0, k - 1]:
                    start = ends[k - 1]
                elif lanes > 1:
                    start = lower_bound(base, 0, starts[k - 1], value)
                start = gallop(base, start, end, value)
            else:
                start = lower_bound(base, start, end, value)
            end = past(base, start, end, value)
        starts[k] = start
        ends[k] = end


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield offsets_of, (TABLE, NUMBER, NUMBER, COLUMN)
    yield find, (TABLE, NUMBER, TABLE, NUMBER, COLUMN, COLUMN, COLUMN)
