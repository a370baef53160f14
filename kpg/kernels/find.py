"""Find the rows of each of some keys, in no order, in some batches of a trace.

`keys` is int64[key_lanes, n]; a batch is described by a row of `table` (kpg.kernels.address) and sorted by its first
`key_lanes` lanes. The rows of key k in batch b are [ranges[2 b, k], ranges[2 b + 1, k]).

    offsets_of   a directory: where the rows of each 2^shift values of the first lane begin
    find         a look-up there, or none, and a search among what was found

A directory is described by a row of `directories`: the address of its offsets (0: there is none), the least and the
greatest value, and the shift.

A key that equals the one before costs nothing, one that follows it a few steps. Twin: kpg.testing.kernels_extend.find.
"""

from collections.abc import Iterator

from kpg.kernels.address import DATA, ROWS, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit

OFFSETS, LOW, HIGH, SHIFT = range(4)


@jit
def offsets_of(table, block, low, shift, offsets):
    """Fill offsets[p] with the first row whose first lane is at least low + p * 2^shift; the last is the end."""
    data = table[block, DATA]
    n = table[block, ROWS]
    at = 0
    for row in range(n):
        place = (peek(data, row) - low) >> shift
        while at <= place:
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
def find(table, directories, first, last, keys, ranges):
    """Fill ranges[2 b] and ranges[2 b + 1], where the rows of each key begin and end, for batches first to last."""
    for block in range(first, last):
        find_in(table, block, directories, keys, ranges)


@jit
def find_in(table, block, directories, keys, ranges):
    """Fill the ranges of one batch."""
    data = table[block, DATA]
    n = table[block, ROWS]
    offsets = directories[block, OFFSETS]
    low = directories[block, LOW]
    shift = directories[block, SHIFT]
    high = directories[block, HIGH]
    lanes = keys.shape[0]
    starts = 2 * block
    ends = starts + 1
    for k in range(keys.shape[1]):
        start = 0
        end = n
        same = k > 0
        for lane in range(lanes):
            if same and keys[lane, k] != keys[lane, k - 1]:
                same = False
        if same:
            ranges[starts, k] = ranges[starts, k - 1]
            ranges[ends, k] = ranges[ends, k - 1]
            continue
        for lane in range(lanes):
            value = keys[lane, k]
            base = data + 8 * lane * n
            if lane == 0 and offsets > 0:
                if value < low or value > high:  # and maybe too far away to be subtracted
                    end = start
                    continue
                place = (value - low) >> shift
                start = peek(offsets, place)
                end = peek(offsets, place + 1)
                if shift == 0:
                    continue
                start = lower_bound(base, start, end, value)
            elif lane == 0 and k > 0 and value >= keys[0, k - 1]:
                if value > keys[0, k - 1]:
                    start = ranges[ends, k - 1]
                elif lanes > 1:
                    start = lower_bound(base, 0, ranges[starts, k - 1], value)
                start = gallop(base, start, end, value)
            else:
                start = lower_bound(base, start, end, value)
            end = past(base, start, end, value)
        ranges[starts, k] = start
        ranges[ends, k] = end


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield offsets_of, (TABLE, NUMBER, NUMBER, NUMBER, COLUMN)
    yield find, (TABLE, TABLE, NUMBER, NUMBER, TABLE, TABLE)
