"""Find the rows of some keys in the batches of a trace, in one call.

`keys` is int64[key_lanes, m], in any order, any of them repeated; `table` describes the batches (kpg.kernels.array_address),
each sorted by its first `key_lanes` lanes. Fills `ranges`, int64[2 * batches, m]: in row 2 b where the rows of each key
begin in batch b, in row 2 b + 1 where they end; returns how many rows that is in all.

    walk        one pass over the batch: for keys in order, and many against its rows
    by_places   a look at the signposts of the batch (kpg.kernels.lookup_tables), if it has any, and at those rows;
                then, for keys of several lanes, a search among these (narrow)
    by_fences   the same where these are fences; for keys of one lane
    by_marks    one look at the marks of a batch whose rows are keys (kpg.kernels.bitmap_lookup); a key that is not there begins
                and ends somewhere then
    search      binary searches otherwise

All but a walk take `GROUP` keys in step, so that the memory they wait for is fetched at the same time: a lone search of
a large array does little but wait. What is first in order is no better place to begin a search than the whole batch,
whose middle is in the cache. Twin: kpg.testing.kernels_locate.locate.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import BASE, DATA, ROWS, SHIFT, SIGN_ROWS, SIGNS, fetch, peek
from kpg.kernels.bitmap_lookup import MARKED, by_marks
from kpg.kernels.example import TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.lookup_tables import FENCE_SPACING, place_of
from kpg.kernels.search_lane import lower_bound, past

WALK, SEARCH, SEARCH_LANE, FENCES, PLACES, MARKS = range(6)  # ways to find keys
GROUP = 32
DENSE = 16  # a batch with at most so many rows a key is walked, or searched without fences
CLOSE = 4  # a batch with at most so many rows a key is walked always
SHORT = 32  # rows of a place that are counted
LONG = 64  # rows of a place, on an average, that tell little about keys of several lanes


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


@inlined
def repeated(keys, k):
    """Whether key k is the one before it."""
    for lane in range(keys.shape[0]):
        if keys[lane, k] != keys[lane, k - 1]:
            return False
    return True


@jit
def ascending(keys):
    """Whether no key sorts before the one before it."""
    for k in range(1, keys.shape[1]):
        for lane in range(keys.shape[0]):
            if keys[lane, k] != keys[lane, k - 1]:
                if keys[lane, k] < keys[lane, k - 1]:
                    return False
                break
    return True


@jit
def walk(data, n, keys, starts, ends):
    """One pass over a batch, from key to key; keys in order."""
    at = 0
    total = 0
    for k in range(keys.shape[1]):
        if k > 0 and repeated(keys, k):
            starts[k] = starts[k - 1]
        else:
            at = start_of(data, n, at, keys, k)
            starts[k] = at
            at = end_of(data, n, at, keys, k)
        ends[k] = at
        total += at - starts[k]
    return total


@jit
def search(data, n, keys, starts, ends):
    """Binary searches, a group of keys in step."""
    total = 0
    for first in range(0, keys.shape[1], GROUP):
        last = min(keys.shape[1], first + GROUP)
        for k in range(first, last):
            starts[k] = 0
        length = n
        while length > 1:
            half = length >> 1
            for k in range(first, last):
                start = starts[k]
                starts[k] = start + (half if before(data, n, start + half - 1, keys, k) else 0)
            length -= half
        for k in range(first, last):
            start = starts[k]
            if length > 0 and before(data, n, start, keys, k):
                start += 1
                starts[k] = start
            ends[k] = ends[k - 1] if k > first and repeated(keys, k) else end_of(data, n, start, keys, k)
            total += ends[k] - start
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
            end = ends[k - 1] if k > first and keys[0, k - 1] == key else end_of(data, n, end, keys, k)
        ends[k] = end
        total += end - start
    return total


@jit
def search_lane(data, n, keys, starts, ends):
    """The same for keys of one lane."""
    total = 0
    for first in range(0, keys.shape[1], GROUP):
        last = min(keys.shape[1], first + GROUP)
        for k in range(first, last):
            starts[k] = 0
        halve(data, keys[0], starts, first, last, n)
        total += close_ranges(data, n, keys, starts, ends, first, last)
    return total


@jit
def by_fences(data, n, fences, fence_rows, keys, starts, ends):
    """Binary searches among fences, then between two, a group of keys in step; keys of one lane, enough rows."""
    total = 0
    wanted = keys[0]
    for first in range(0, keys.shape[1], GROUP):
        last = min(keys.shape[1], first + GROUP)
        for k in range(first, last):
            starts[k] = 0
        halve(fences, wanted, starts, first, last, fence_rows)
        for k in range(first, last):
            at = starts[k]
            at += 1 if peek(fences, at) < wanted[k] else 0  # the first fence not before the key
            start = max(0, min((at - 1) * FENCE_SPACING, n - FENCE_SPACING - 1))
            starts[k] = start
            for line in range(FENCE_SPACING // 4, FENCE_SPACING, FENCE_SPACING // 4):
                fetch(data, start + line)
        halve(data, wanted, starts, first, last, FENCE_SPACING + 1)
        total += close_ranges(data, n, keys, starts, ends, first, last)
    return total


@inlined
def count_place(data, start, end, key):
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
def by_places(data, places, place_rows, base, shift, wanted, starts, ends):
    """One look at the places, then at the rows, a group of keys in step; the first lane of keys."""
    total = 0
    top = base + place_rows - 2
    for first in range(0, len(wanted), GROUP):
        last = min(len(wanted), first + GROUP)
        for k in range(first, last):
            starts[k] = place_of(wanted[k], base, shift, top)
            fetch(places, starts[k])
        for k in range(first, last):
            at = starts[k]
            starts[k], ends[k] = peek(places, at), peek(places, at + 1)
            fetch(data, starts[k])
            fetch(data, ends[k] - 1)
        for k in range(first, last):
            starts[k], ends[k] = count_place(data, starts[k], ends[k], wanted[k])
            total += ends[k] - starts[k]
    return total


@jit
def by_exact_places(places, place_rows, base, wanted, starts, ends):
    """The same where each value has a place of its own, which tells its rows."""
    total = 0
    top = base + place_rows - 2
    for k in range(len(wanted)):
        at = place_of(wanted[k], base, 0, top)
        start, end = peek(places, at), peek(places, at + 1)
        starts[k] = end if wanted[k] > top else start
        ends[k] = start if wanted[k] < base else end
        total += ends[k] - starts[k]
    return total


@jit
def narrow(data, n, keys, starts, ends):
    """Find the rows of keys of several lanes among those that have the first of them."""
    total = 0
    for first in range(0, keys.shape[1], GROUP):
        last = min(keys.shape[1], first + GROUP)
        for lane in range(1, keys.shape[0]):
            here = data + 8 * lane * n
            for k in range(first, last):
                fetch(here, (starts[k] + ends[k]) >> 1)
            for k in range(first, last):
                starts[k] = lower_bound(here, starts[k], ends[k], keys[lane, k])
                ends[k] = past(here, starts[k], ends[k], keys[lane, k])
        for k in range(first, last):
            total += ends[k] - starts[k]
    return total


@inlined
def way(lanes, m, ordered, n, count, shift):
    """How to find m keys of some lanes among n rows with so many signposts."""
    close, dense = ordered and n <= CLOSE * m, ordered and n <= DENSE * m
    telling = count > 0 if lanes == 1 else LONG * count > n  # rows of the first lane alone must be few
    if lanes == 1 and telling and shift >= MARKED:
        return MARKS
    if lanes > 0 and telling and shift >= 0 and not close:
        return PLACES
    if lanes == 1 and not close:
        return FENCES if count > 0 and not dense else SEARCH_LANE
    return WALK if dense else SEARCH


@jit
def locate_in(table, block, keys, ordered, starts, ends):
    """Fill where the rows of each key begin and end in one batch; returns how many these are."""
    lanes, m = keys.shape
    data, n = table[block, DATA], table[block, ROWS]
    signs, count = table[block, SIGNS], table[block, SIGN_ROWS]
    base, shift = table[block, BASE], table[block, SHIFT]
    how = way(lanes, m, ordered, n, count, shift)
    if how == WALK:
        return walk(data, n, keys, starts, ends)
    if how == MARKS:
        return by_marks(data, n, signs, base, shift, keys[0], starts, ends)
    if how == PLACES:
        if shift == 0:
            found = by_exact_places(signs, count, base, keys[0], starts, ends)
        else:
            found = by_places(data, signs, count, base, shift, keys[0], starts, ends)
        return found if lanes == 1 else narrow(data, n, keys, starts, ends)
    if how == FENCES:
        return by_fences(data, n, signs, count, keys, starts, ends)
    if how == SEARCH_LANE:
        return search_lane(data, n, keys, starts, ends)
    return search(data, n, keys, starts, ends)


@jit
def locate(table, keys, ranges):
    """Fill the ranges of all batches; returns how many rows they hold."""
    total = 0
    ordered = ascending(keys)
    for block in range(table.shape[0]):
        total += locate_in(table, block, keys, ordered, ranges[2 * block], ranges[2 * block + 1])
    return total


def examples() -> Iterator[Example]:
    """The one signature of each kernel that Python calls."""
    yield locate, (TABLE, TABLE, TABLE)
