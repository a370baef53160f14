"""Find the rows of some keys in all batches of a trace, in one call.

`keys` is int64[key_lanes, m], sorted and distinct; `table` describes the batches (kpg.kernels.address), each sorted by
its first `key_lanes` lanes. Fills `ranges`, int64[2 * batches, m]: in row 2 b where the rows of each key begin in batch
b, in row 2 b + 1 where they end; returns how many rows that is in all.

Where keys are many against a batch, the batch is walked once. Where they are few, `GROUP` binary searches run in step,
so that the memory they wait for is fetched at the same time: a lone search of a large array does little but wait. In a
large batch with keys of one lane, signs tell which few rows to search:

    places  where keys are spread evenly: places[b] is the first row whose key is not before LOW + (b << SHIFT), so
            that one look tells the rows of a key and a few others
    fences  otherwise: every `FENCE_SPACING`th key, to be searched first

Twin: kpg.testing.kernels_react.locate.
"""

from collections.abc import Iterator

from kpg.kernels.address import DATA, LOW, ROWS, SHIFT, SIGN_ROWS, SIGNS, fetch, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.find import lower_bound
from kpg.kernels.jit import inlined, jit

GROUP = 16
FENCE_SPACING = 64
DENSE = 16  # a batch with at most so many rows a key is walked, or searched without fences
SHORT = 32  # rows of a place that are walked
CLOSE = 4  # a batch with at most so many rows a key is walked always


@jit
def before(data, n, row, keys, k):
    """Whether the key of a row sorts before key k."""
    for lane in range(keys.shape[0]):
        x = peek(data, lane * n + row)
        y = keys[lane, k]
        if x != y:
            return x < y
    return False


@jit
def after(data, n, row, keys, k):
    """Whether the key of a row sorts after key k."""
    for lane in range(keys.shape[0]):
        x = peek(data, lane * n + row)
        y = keys[lane, k]
        if x != y:
            return x > y
    return False


@jit
def end_of(data, n, start, keys, k):
    """The first row from `start` on whose key sorts after key k: doubling steps, then halving ones."""
    if start >= n or after(data, n, start, keys, k):
        return start
    step = 1
    while start + step < n and not after(data, n, start + step, keys, k):
        start += step
        step += step
    low = start + 1
    high = min(n, start + step)
    while low < high:
        middle = (low + high) >> 1
        if after(data, n, middle, keys, k):
            high = middle
        else:
            low = middle + 1
    return low


@jit
def start_of(data, n, start, keys, k):
    """The first row from `start` on whose key does not sort before key k."""
    if start >= n or not before(data, n, start, keys, k):
        return start
    step = 1
    while start + step < n and before(data, n, start + step, keys, k):
        start += step
        step += step
    low = start + 1
    high = min(n, start + step)
    while low < high:
        middle = (low + high) >> 1
        if before(data, n, middle, keys, k):
            low = middle + 1
        else:
            high = middle
    return low


@jit
def walk(data, n, keys, ranges, block):
    """One pass over a batch, from key to key."""
    at = 0
    total = 0
    for k in range(keys.shape[1]):
        at = start_of(data, n, at, keys, k)
        ranges[2 * block, k] = at
        at = end_of(data, n, at, keys, k)
        ranges[2 * block + 1, k] = at
        total += at - ranges[2 * block, k]
    return total


@jit
def search(data, n, keys, ranges, block):
    """Binary searches, a group of keys in step."""
    m = keys.shape[1]
    total = 0
    first = 0
    at = 0
    row = 2 * block
    while first < m:
        last = min(m, first + GROUP)
        for k in range(first, last):
            ranges[row, k] = at
        length = min(n, start_of(data, n, at, keys, last - 1) + 1) - at  # the last of the group bounds the others
        while length > 1:
            half = length >> 1
            for k in range(first, last):
                start = ranges[row, k]
                ranges[row, k] = start + (half if before(data, n, start + half - 1, keys, k) else 0)
            length -= half
        for k in range(first, last):
            start = ranges[row, k]
            if length > 0 and before(data, n, start, keys, k):
                start += 1
                ranges[row, k] = start
            end = end_of(data, n, start, keys, k)
            ranges[row + 1, k] = end
            total += end - start
            at = end
        first = last
    return total


@inlined
def halve(data, wanted, starts, first, last, length):
    """Narrow a group of searches in step, from `length` rows each to one: keys of one lane."""
    while length > 1:
        half = length >> 1
        for k in range(first, last):  # a choice of numbers, not of ways: the searches stay in step
            start = starts[k]
            starts[k] = start + (half if peek(data, start + half - 1) < wanted[k] else 0)
        length -= half


@inlined
def close_ranges(data, n, keys, starts, ends, first, last):
    """Find where the rows of a group of keys begin and end, given for each a row at or just before; how many rows."""
    total = 0
    for k in range(first, last):
        key = keys[0, k]
        start = starts[k]
        start += 1 if start < n and peek(data, start) < key else 0
        starts[k] = start
        end = start + (1 if start < n and peek(data, start) == key else 0)
        if end > start and end < n and peek(data, end) == key:
            end = end_of(data, n, end, keys, k)
        ends[k] = end
        total += end - start
    return total


@jit
def search_lane(data, n, keys, ranges, block):
    """Binary searches, a group of keys in step, among the rows before the end of its last; keys of one lane."""
    m = keys.shape[1]
    total = 0
    first = 0
    at = 0
    wanted, starts, ends = keys[0], ranges[2 * block], ranges[2 * block + 1]
    while first < m:
        last = min(m, first + GROUP)
        for k in range(first, last):
            starts[k] = at
        halve(data, wanted, starts, first, last, min(n, start_of(data, n, at, keys, last - 1) + 1) - at)
        total += close_ranges(data, n, keys, starts, ends, first, last)
        at = ends[last - 1]
        first = last
    return total


@jit
def search_fenced(data, n, fences, fence_rows, keys, ranges, block):
    """Binary searches among fences, then between two, a group of keys in step; keys of one lane, enough rows."""
    m = keys.shape[1]
    total = 0
    first = 0
    fence = 0  # no key to come is after the fence before this one
    wanted, starts, ends = keys[0], ranges[2 * block], ranges[2 * block + 1]
    while first < m:
        last = min(m, first + GROUP)
        for k in range(first, last):
            starts[k] = fence
        after_last = start_of(fences, fence_rows, fence, keys, last - 1)
        halve(fences, wanted, starts, first, last, min(fence_rows, after_last + 1) - fence)
        for k in range(first, last):
            at = starts[k]
            at += 1 if at < fence_rows and peek(fences, at) < wanted[k] else 0  # the first fence not before the key
            start = max(0, min((at - 1) * FENCE_SPACING, n - FENCE_SPACING - 1))
            starts[k] = start
            for line in range(FENCE_SPACING // 4, FENCE_SPACING, FENCE_SPACING // 4):
                fetch(data, start + line)
        fence = after_last
        halve(data, wanted, starts, first, last, FENCE_SPACING + 1)
        total += close_ranges(data, n, keys, starts, ends, first, last)
        first = last
    return total


@jit
def place(keys, low, shift, places):
    """Fill the places of sorted keys; returns how many keys differ, and the sum over places of the square of that."""
    place = 0
    places[0] = 0
    differing = 0
    here = 0
    squares = 0
    for i in range(len(keys)):
        new = i == 0 or keys[i] != keys[i - 1]
        at = (keys[i] - low) >> shift
        if at != place:
            squares += here * here
            here = 0
            for passed in range(place + 1, at + 1):
                places[passed] = i
            place = at
        here += new
        differing += new
    for passed in range(place + 1, len(places)):
        places[passed] = len(keys)
    return differing, squares + here * here


@inlined
def find_placed(data, start, end, key):
    """Where in the rows [start, end), of which a few are before the key or after it, its own begin and end."""
    if end - start <= SHORT:
        before = 0
        same = 0
        for row in range(start, end):
            value = peek(data, row)
            before += value < key
            same += value == key
        return start + before, start + before + same
    last = end
    start = lower_bound(data, start, end, key)
    end = start
    while end < last:
        middle = (end + last) >> 1
        if peek(data, middle) <= key:
            end = middle + 1
        else:
            last = middle
    return start, end


@jit
def search_placed(data, n, places, low, shift, keys, ranges, block):
    """One look at the places, then at the rows, a group of keys in step; keys of one lane."""
    m = keys.shape[1]
    total = 0
    high = peek(data, n - 1)
    wanted, starts, ends = keys[0], ranges[2 * block], ranges[2 * block + 1]
    for first in range(0, m, GROUP):
        last = min(m, first + GROUP)
        for k in range(first, last):
            inside = min(max(wanted[k], low), high)  # else the difference may not fit
            starts[k] = (inside - low) >> shift
            fetch(places, starts[k])
        for k in range(first, last):
            at = starts[k]
            starts[k], ends[k] = peek(places, at), peek(places, at + 1)
            fetch(data, starts[k])
            fetch(data, ends[k] - 1)
        for k in range(first, last):
            starts[k], ends[k] = find_placed(data, starts[k], ends[k], wanted[k])
            total += ends[k] - starts[k]
    return total


@jit
def locate(table, keys, ranges):
    """Fill the ranges of all batches; returns how many rows they hold."""
    total = 0
    for block in range(table.shape[0]):
        n = table[block, ROWS]
        data, signs = table[block, DATA], table[block, SIGNS]
        count, shift = table[block, SIGN_ROWS], table[block, SHIFT]
        dense = n <= DENSE * keys.shape[1]
        sparse = keys.shape[0] == 1 and n > CLOSE * keys.shape[1]
        if sparse and count > 0 and shift >= 0:
            total += search_placed(data, n, signs, table[block, LOW], shift, keys, ranges, block)
        elif sparse and count > 0 and not dense:
            total += search_fenced(data, n, signs, count, keys, ranges, block)
        elif sparse:
            total += search_lane(data, n, keys, ranges, block)
        elif dense:
            total += walk(data, n, keys, ranges, block)
        else:
            total += search(data, n, keys, ranges, block)
    return total


def examples() -> Iterator[Example]:
    """The one signature of each kernel that Python calls."""
    yield locate, (TABLE, TABLE, TABLE)
    yield place, (COLUMN, NUMBER, NUMBER, COLUMN)
