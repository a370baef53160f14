"""Lists of a few rows of one key, held sorted by insertion.

All lists lie in one array, `pool`, each with room for `space` entries of `size` numbers: a row (values, then a time),
and from `at_diff` on its diff. A list is known by its base, an entry by its place. What does not fit is FULL.

    collect   a key's history over all batches, times joined with a floor, consolidated
    chain     its times and the seeds, if all are comparable: then joins of them are among them

Cost: quadratic in the entries of a list where they come out of order, linear where they come in order.
Twin: kpg.testing.kernels_react.react, of the kernel that uses them.
"""

from kpg.kernels.array_address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, peek
from kpg.kernels.jit import inlined, jit

FULL = -1


@inlined
def insert(pool, base, n, space, size, at_diff, source, lanes):
    """Add the entry at `source` to a sorted list of n, summing equal rows; returns the new n, or FULL."""
    at = base + n * size
    while at > base:
        order = 0
        for lane in range(lanes):
            x = pool[at - size + lane]
            y = pool[source + lane]
            if x != y:
                order = -1 if x < y else 1
                break
        if order == 0:
            for lane in range(at_diff, size):
                pool[at - size + lane] += pool[source + lane]
            return n
        if order < 0:
            break
        at -= size
    if n == space:
        return FULL
    for i in range(base + n * size - 1, at - 1, -1):
        pool[i + size] = pool[i]
    for lane in range(size):
        pool[at + lane] = pool[source + lane]
    return n + 1


@jit
def drop_zeros(pool, base, n, size, at_diff):
    """Remove the entries whose diffs have cancelled; returns how many stay."""
    kept = 0
    for i in range(n):
        zero = True
        for lane in range(at_diff, size):
            if pool[base + i * size + lane] != 0:
                zero = False
        if not zero:
            if kept != i:
                for lane in range(size):
                    pool[base + kept * size + lane] = pool[base + i * size + lane]
            kept += 1
    return kept


@jit
def collect(table, ranges, k, skip, values, depth, width, pool, base, space, size, at_diff, row, floor):
    """The history of key k over all batches: `values` lanes from `skip` on, then times joined with the floor."""
    n = 0
    for lane in range(at_diff + width, size):
        pool[row + lane] = 0
    for block in range(table.shape[0]):
        start = ranges[2 * block, k]
        end = ranges[2 * block + 1, k]
        if start == end:
            continue
        rows = table[block, ROWS]
        time_rows = table[block, TIME_ROWS]
        diff_rows = table[block, DIFF_ROWS]
        for i in range(start, end):
            for lane in range(values):
                pool[row + lane] = peek(table[block, DATA], (skip + lane) * rows + i)
            at = i if time_rows > 1 else 0
            for lane in range(depth):
                time = peek(table[block, TIMES], lane * time_rows + at) if lane < table[block, DEPTH] else 0
                pool[row + values + lane] = max(time, pool[floor + lane])
            at = i if diff_rows > 1 else 0
            for lane in range(width):
                pool[row + at_diff + lane] = peek(table[block, DIFFS], lane * diff_rows + at)
            n = insert(pool, base, n, space, size, at_diff, row, values + depth)
            if n == FULL:
                return FULL
    return drop_zeros(pool, base, n, size, at_diff)


@inlined
def reaches(pool, entry_time, time, depth):
    """Whether one time is at or before another."""
    for lane in range(depth):
        if pool[entry_time + lane] > pool[time + lane]:
            return False
    return True


@inlined
def is_beyond(upper, pool, time, depth):
    """Whether a time is beyond the frontier `upper`."""
    for e in range(upper.shape[0]):
        at_or_before = True
        for lane in range(depth):
            if upper[e, lane] > pool[time + lane]:
                at_or_before = False
                break
        if at_or_before:
            return True
    return False


@inlined
def same(pool, one, other, lanes):
    """Whether two entries agree in their first lanes."""
    for lane in range(lanes):
        if pool[one + lane] != pool[other + lane]:
            return False
    return True


@jit
def add_joins(pool, closure, n, space, size, at_diff, time, others, others_n, values, depth, row):
    """Add to the closure the joins of one of its times with the times of a list."""
    for j in range(others_n):
        differs = False
        for lane in range(depth):
            pool[row + lane] = max(pool[time + lane], pool[others + j * size + values + lane])
            if pool[row + lane] != pool[time + lane]:
                differs = True
        if differs:
            n = insert(pool, closure, n, space, size, at_diff, row, depth)
            if n == FULL:
                return FULL
    return n


@inlined
def add_times(pool, base, n, space, size, at_diff, others, others_n, values, depth, row):
    """Add the times of the entries of another list; returns the new n, or FULL."""
    for j in range(others_n):
        for lane in range(depth):
            pool[row + lane] = pool[others + j * size + values + lane]
        if n != FULL:
            n = insert(pool, base, n, space, size, at_diff, row, depth)
    return n


@inlined
def is_chain(pool, base, n, size, depth):
    """Whether each time of a sorted list is at or before the next."""
    for i in range(1, n):
        if not reaches(pool, base + (i - 1) * size, base + i * size, depth):
            return False
    return True
