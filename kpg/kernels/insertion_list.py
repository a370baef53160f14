"""Short lists of rows of one key, kept sorted by insertion.

All lists share one array, `pool`. Each has space for `space` entries of `size` numbers: a row (values, then a time),
and from `at_diff` on the row's diff. A list (`base`) or an entry is identified by the position of its first number in
the pool. An operation returns FULL if the result does not fit.

    collect_history   collect a key's history over all batches, times joined with a floor, consolidated
    add_times         add the times of one list to another list of times
    add_joins         add the joins of one time with the times of a list to a list of times

Cost: quadratic in the entries of a list if they arrive out of order, linear if they arrive in order. Twin: that of the
calling kernel, kpg.testing.kernel_twins.one_pass_corrections_twin.one_pass_corrections.
"""

from kpg.kernels.array_address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, peek
from kpg.kernels.jit import inlined, jit

FULL = -1  # returned in place of a length if a list has no space left


@inlined
def insert(pool, base, n, space, size, at_diff, source, lanes):
    """Insert the entry at `source` into a sorted list of n, summing equal rows; return the new n, or FULL."""
    position = base + n * size
    while position > base:
        order = 0
        for lane in range(lanes):
            x = pool[position - size + lane]
            y = pool[source + lane]
            if x != y:
                order = -1 if x < y else 1
                break
        if order == 0:
            for lane in range(at_diff, size):
                pool[position - size + lane] += pool[source + lane]
            return n
        if order < 0:
            break
        position -= size
    if n == space:
        return FULL
    for i in range(base + n * size - 1, position - 1, -1):
        pool[i + size] = pool[i]
    for lane in range(size):
        pool[position + lane] = pool[source + lane]
    return n + 1


@jit
def drop_zeros(pool, base, n, size, at_diff):
    """Remove the entries with a diff of zero; return the number that remain."""
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
def collect_history(table, ranges, k, skip, value_lanes, depth, width, pool, base, space, size, at_diff, row, floor):
    """Collect the history of key k over all batches: value lanes from `skip` on, then times joined with the floor."""
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
            for lane in range(value_lanes):
                pool[row + lane] = peek(table[block, DATA], (skip + lane) * rows + i)
            column = i if time_rows > 1 else 0
            for lane in range(depth):
                time = peek(table[block, TIMES], lane * time_rows + column) if lane < table[block, DEPTH] else 0
                pool[row + value_lanes + lane] = max(time, pool[floor + lane])
            column = i if diff_rows > 1 else 0
            for lane in range(width):
                pool[row + at_diff + lane] = peek(table[block, DIFFS], lane * diff_rows + column)
            n = insert(pool, base, n, space, size, at_diff, row, value_lanes + depth)
            if n == FULL:
                return FULL
    return drop_zeros(pool, base, n, size, at_diff)


@inlined
def less_equal_in_pool(pool, entry_time, time, depth):
    """Return whether one time is at or before another."""
    for lane in range(depth):
        if pool[entry_time + lane] > pool[time + lane]:
            return False
    return True


@inlined
def is_beyond_in_pool(upper, pool, time, depth):
    """Return whether a time is beyond the frontier `upper`."""
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
def equal_prefix(pool, entry, other, lanes):
    """Return whether two entries agree in their first lanes."""
    for lane in range(lanes):
        if pool[entry + lane] != pool[other + lane]:
            return False
    return True


@jit
def add_joins(pool, closure, n, space, size, at_diff, time, others, others_n, value_lanes, depth, row):
    """Add to the closure the joins of one of its times with the times of a list; return the new n, or FULL."""
    for j in range(others_n):
        differs = False
        for lane in range(depth):
            pool[row + lane] = max(pool[time + lane], pool[others + j * size + value_lanes + lane])
            if pool[row + lane] != pool[time + lane]:
                differs = True
        if differs:
            n = insert(pool, closure, n, space, size, at_diff, row, depth)
            if n == FULL:
                return FULL
    return n


@inlined
def add_times(pool, base, n, space, size, at_diff, others, others_n, value_lanes, depth, row):
    """Add the times of the entries of another list; return the new n, or FULL."""
    for j in range(others_n):
        for lane in range(depth):
            pool[row + lane] = pool[others + j * size + value_lanes + lane]
        if n != FULL:
            n = insert(pool, base, n, space, size, at_diff, row, depth)
    return n


@inlined
def is_chain(pool, base, n, size, depth):
    """Return whether each time of a sorted list is at or before the next."""
    for i in range(1, n):
        if not less_equal_in_pool(pool, base + (i - 1) * size, base + i * size, depth):
            return False
    return True
