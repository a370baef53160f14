"""Find the rows of some keys in the batches of a trace, in one call.

`keys` is int64[key_lanes, m], in any order, with repetitions; `table` describes the batches
(kpg.kernels.array_address), each sorted by its first `key_lanes` lanes. The kernel fills `ranges`, which is
int64[2 * batches, m]: row 2 b holds where the rows of each key begin in batch b, row 2 b + 1 where they end. It returns
the number of rows of all ranges.

    scan               one pass over the batch: for sorted keys, if they are many in relation to its rows
    search_intervals   one read of the batch's interval lookup table (kpg.kernels.lookup_tables) and a search of those
                       rows; then, for keys of several lanes, a search among them by the other lanes
    search_sparse      a search of the sparse lookup table, then of the rows between two entries; for keys of one lane
    search_bitmap      one read of the bitmap, for batches of one lane (kpg.kernels.bitmap_lookup); the range of a key
                       that the batch does not hold is empty, at any position
    binary_search      otherwise

All methods but the scan process `KEYS_IN_STEP` keys in step, so that their waits for memory overlap: a single search of
a large array spends most of its time waiting. A binary search starts from the whole batch even if keys are sorted,
because the middle of the batch is in the cache. Twin: kpg.testing.kernel_twins.locate_keys_twin.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import BASE, DATA, LOOKUP, LOOKUP_SIZE, ROWS, SHIFT, peek, prefetch
from kpg.kernels.bitmap_lookup import BITMAP_FLAG, search_bitmap
from kpg.kernels.example import TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.lookup_tables import SPARSE_SPACING, interval_of
from kpg.kernels.search_lane import lower_bound, run_end

SCAN, SEARCH, SEARCH_LANE, SPARSE, INTERVAL, BITMAP = range(6)  # methods to find keys
KEYS_IN_STEP = 32  # searches that advance together: enough to overlap their waits for memory
DENSE_ROWS_PER_KEY = 16  # up to this ratio a scan, or a search without a sparse lookup table, is fastest
SCAN_ROWS_PER_KEY = 4  # up to this ratio a scan is faster than any lookup table
COUNTED_INTERVAL_ROWS = 32  # up to this length, counting the rows of an interval is faster than searching them
SELECTIVE_INTERVAL_ROWS = 64  # intervals with more rows on average do not narrow a search by several lanes


@jit
def sorts_before_key(data, n, row, keys, k):
    """Return whether the key of a row sorts before key k."""
    for lane in range(keys.shape[0]):
        x = peek(data, lane * n + row)
        y = keys[lane, k]
        if x != y:
            return x < y
    return False


@jit
def sorts_after_key(data, n, row, keys, k):
    """Return whether the key of a row sorts after key k."""
    for lane in range(keys.shape[0]):
        x = peek(data, lane * n + row)
        y = keys[lane, k]
        if x != y:
            return x > y
    return False


@jit
def seek_end(data, n, start, keys, k):
    """Return the first row, from `start` on, with a key that sorts after key k; gallop, then bisect."""
    if start >= n or sorts_after_key(data, n, start, keys, k):
        return start
    step = 1
    while start + step < n and not sorts_after_key(data, n, start + step, keys, k):
        start += step
        step += step
    low = start + 1
    high = min(n, start + step)
    while low < high:
        middle = (low + high) >> 1
        if sorts_after_key(data, n, middle, keys, k):
            high = middle
        else:
            low = middle + 1
    return low


@jit
def seek_start(data, n, start, keys, k):
    """Return the first row, from `start` on, with a key that does not sort before key k; gallop, then bisect."""
    if start >= n or not sorts_before_key(data, n, start, keys, k):
        return start
    step = 1
    while start + step < n and sorts_before_key(data, n, start + step, keys, k):
        start += step
        step += step
    low = start + 1
    high = min(n, start + step)
    while low < high:
        middle = (low + high) >> 1
        if sorts_before_key(data, n, middle, keys, k):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def repeats_previous(keys, k):
    """Return whether key k equals the key before it."""
    for lane in range(keys.shape[0]):
        if keys[lane, k] != keys[lane, k - 1]:
            return False
    return True


@jit
def is_ascending(keys):
    """Return whether the keys are sorted; equal neighbours are allowed."""
    for k in range(1, keys.shape[1]):
        for lane in range(keys.shape[0]):
            if keys[lane, k] != keys[lane, k - 1]:
                if keys[lane, k] < keys[lane, k - 1]:
                    return False
                break
    return True


@jit
def scan(data, n, keys, starts, ends):
    """Fill the ranges in one pass over a batch, from key to key; keys are sorted."""
    row = 0
    total = 0
    for k in range(keys.shape[1]):
        if k > 0 and repeats_previous(keys, k):
            starts[k] = starts[k - 1]
        else:
            row = seek_start(data, n, row, keys, k)
            starts[k] = row
            row = seek_end(data, n, row, keys, k)
        ends[k] = row
        total += row - starts[k]
    return total


@jit
def binary_search(data, n, keys, starts, ends):
    """Fill the ranges by binary searches, a group of keys in step."""
    total = 0
    for first in range(0, keys.shape[1], KEYS_IN_STEP):
        last = min(keys.shape[1], first + KEYS_IN_STEP)
        for k in range(first, last):
            starts[k] = 0
        length = n
        while length > 1:
            half = length >> 1
            for k in range(first, last):
                start = starts[k]
                starts[k] = start + (half if sorts_before_key(data, n, start + half - 1, keys, k) else 0)
            length -= half
        for k in range(first, last):
            start = starts[k]
            if length > 0 and sorts_before_key(data, n, start, keys, k):
                start += 1
                starts[k] = start
            ends[k] = ends[k - 1] if k > first and repeats_previous(keys, k) else seek_end(data, n, start, keys, k)
            total += ends[k] - start
    return total


@inlined
def halve_in_step(data, first_lane, starts, first, last, length):
    """Narrow a group of searches in step, from `length` rows each to one; keys of one lane."""
    while length > 1:
        half = length >> 1
        for k in range(first, last):  # computed without a branch, so that the searches stay in step
            start = starts[k]
            starts[k] = start + (half if peek(data, start + half - 1) < first_lane[k] else 0)
        length -= half


@inlined
def fill_ranges(data, n, keys, starts, ends, first, last):
    """Fill the ranges of a group of keys, given a row at each start or just before; return the number of rows."""
    total = 0
    for k in range(first, last):
        key = keys[0, k]
        start = starts[k]
        start += 1 if start < n and peek(data, start) < key else 0
        starts[k] = start
        end = start + (1 if start < n and peek(data, start) == key else 0)
        if end > start and end < n and peek(data, end) == key:
            end = ends[k - 1] if k > first and keys[0, k - 1] == key else seek_end(data, n, end, keys, k)
        ends[k] = end
        total += end - start
    return total


@jit
def binary_search_lane(data, n, keys, starts, ends):
    """Fill the ranges by binary searches, for keys of one lane."""
    total = 0
    for first in range(0, keys.shape[1], KEYS_IN_STEP):
        last = min(keys.shape[1], first + KEYS_IN_STEP)
        for k in range(first, last):
            starts[k] = 0
        halve_in_step(data, keys[0], starts, first, last, n)
        total += fill_ranges(data, n, keys, starts, ends, first, last)
    return total


@jit
def search_sparse(data, n, sparse, entries, keys, starts, ends):
    """Search the sparse lookup table, then the rows between two entries, a group of keys in step.

    Keys have one lane, and the batch has more than SPARSE_SPACING rows.
    """
    total = 0
    first_lane = keys[0]
    for first in range(0, keys.shape[1], KEYS_IN_STEP):
        last = min(keys.shape[1], first + KEYS_IN_STEP)
        for k in range(first, last):
            starts[k] = 0
        halve_in_step(sparse, first_lane, starts, first, last, entries)
        for k in range(first, last):
            entry = starts[k]
            entry += 1 if peek(sparse, entry) < first_lane[k] else 0  # the first entry not before the key
            start = max(0, min((entry - 1) * SPARSE_SPACING, n - SPARSE_SPACING - 1))
            starts[k] = start
            for line in range(SPARSE_SPACING // 4, SPARSE_SPACING, SPARSE_SPACING // 4):
                prefetch(data, start + line)
        halve_in_step(data, first_lane, starts, first, last, SPARSE_SPACING + 1)
        total += fill_ranges(data, n, keys, starts, ends, first, last)
    return total


@inlined
def search_interval(data, start, end, key):
    """Return where the rows of a key begin and end among the rows [start, end) of its interval."""
    if end - start <= COUNTED_INTERVAL_ROWS:
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
def search_intervals(data, intervals, entries, base, shift, first_lane, starts, ends):
    """Read the interval lookup table, then search the interval's rows, a group of keys in step; by the first lane."""
    total = 0
    top = base + entries - 2
    for first in range(0, len(first_lane), KEYS_IN_STEP):
        last = min(len(first_lane), first + KEYS_IN_STEP)
        for k in range(first, last):
            starts[k] = interval_of(first_lane[k], base, shift, top)
            prefetch(intervals, starts[k])
        for k in range(first, last):
            interval = starts[k]
            starts[k], ends[k] = peek(intervals, interval), peek(intervals, interval + 1)
            prefetch(data, starts[k])
            prefetch(data, ends[k] - 1)
        for k in range(first, last):
            starts[k], ends[k] = search_interval(data, starts[k], ends[k], first_lane[k])
            total += ends[k] - starts[k]
    return total


@jit
def search_exact_intervals(intervals, entries, base, first_lane, starts, ends):
    """Read the ranges from the lookup table if each value has its own interval."""
    total = 0
    top = base + entries - 2
    for k in range(len(first_lane)):
        interval = interval_of(first_lane[k], base, 0, top)
        start, end = peek(intervals, interval), peek(intervals, interval + 1)
        starts[k] = end if first_lane[k] > top else start
        ends[k] = start if first_lane[k] < base else end
        total += ends[k] - starts[k]
    return total


@jit
def search_other_lanes(data, n, keys, starts, ends):
    """Narrow the ranges of keys of several lanes, given those of their first lane."""
    total = 0
    for first in range(0, keys.shape[1], KEYS_IN_STEP):
        last = min(keys.shape[1], first + KEYS_IN_STEP)
        for lane in range(1, keys.shape[0]):
            values = data + 8 * lane * n
            for k in range(first, last):
                prefetch(values, (starts[k] + ends[k]) >> 1)
            for k in range(first, last):
                starts[k] = lower_bound(values, starts[k], ends[k], keys[lane, k])
                ends[k] = run_end(values, starts[k], ends[k], keys[lane, k])
        for k in range(first, last):
            total += ends[k] - starts[k]
    return total


@inlined
def choose_method(lanes, m, ordered, n, lookup_size, shift):
    """Return the method to find m keys of `lanes` lanes among n rows, given the batch's lookup table."""
    close, dense = ordered and n <= SCAN_ROWS_PER_KEY * m, ordered and n <= DENSE_ROWS_PER_KEY * m
    # With several lanes, the rows of an interval must be few for its table to narrow the search.
    selective = lookup_size > 0 if lanes == 1 else SELECTIVE_INTERVAL_ROWS * lookup_size > n
    if lanes == 1 and selective and shift >= BITMAP_FLAG:
        return BITMAP
    if lanes > 0 and selective and shift >= 0 and not close:
        return INTERVAL
    if lanes == 1 and not close:
        return SPARSE if lookup_size > 0 and not dense else SEARCH_LANE
    return SCAN if dense else SEARCH


@jit
def locate_in_batch(table, block, keys, ordered, starts, ends):
    """Fill where the rows of each key begin and end in one batch; return the number of these rows."""
    lanes, m = keys.shape
    data, n = table[block, DATA], table[block, ROWS]
    lookup, lookup_size = table[block, LOOKUP], table[block, LOOKUP_SIZE]
    base, shift = table[block, BASE], table[block, SHIFT]
    method = choose_method(lanes, m, ordered, n, lookup_size, shift)
    if method == SCAN:
        return scan(data, n, keys, starts, ends)
    if method == BITMAP:
        return search_bitmap(data, n, lookup, base, shift, keys[0], starts, ends)
    if method == INTERVAL:
        if shift == 0:
            total = search_exact_intervals(lookup, lookup_size, base, keys[0], starts, ends)
        else:
            total = search_intervals(data, lookup, lookup_size, base, shift, keys[0], starts, ends)
        return total if lanes == 1 else search_other_lanes(data, n, keys, starts, ends)
    if method == SPARSE:
        return search_sparse(data, n, lookup, lookup_size, keys, starts, ends)
    if method == SEARCH_LANE:
        return binary_search_lane(data, n, keys, starts, ends)
    return binary_search(data, n, keys, starts, ends)


@jit
def locate_keys(table, keys, ranges):
    """Fill the ranges of all batches; return the number of rows that they hold."""
    total = 0
    ordered = is_ascending(keys)
    for block in range(table.shape[0]):
        total += locate_in_batch(table, block, keys, ordered, ranges[2 * block], ranges[2 * block + 1])
    return total


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield locate_keys, (TABLE, TABLE, TABLE)
