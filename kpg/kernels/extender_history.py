"""The history of a key in an extender: the time, the diff and the visibility of its rows, and its product with a tuple.

A row is visible if its time, joined with `floor`, is lexicographically before the initial time of the tuple, or equal
to it and the extender is not strict. Multiplying a tuple by a visible row joins their times, coordinate by coordinate,
and multiplies their diffs. Only kpg.kernels.extend_tuples calls these; their arguments are described there. They are
tested through it. Twin: kpg.testing.kernel_twins.extend_tuples_twin.
"""

from kpg.kernels.array_address import DEPTH, DIFF_ROWS, DIFFS, TIME_ROWS, TIMES, peek
from kpg.kernels.jit import inlined, jit


@inlined
def time_of(table, block, row, d, floor):
    """Return coordinate d of the time of a row, joined with `floor`; a coordinate that its trace lacks is zero."""
    if d >= table[block, DEPTH]:
        return max(floor[d], 0)
    if table[block, TIME_ROWS] == 1:
        return max(floor[d], peek(table[block, TIMES], d))
    return max(floor[d], peek(table[block, TIMES], d * table[block, TIME_ROWS] + row))


@inlined
def is_visible(table, block, row, floor, initial, strict):
    """Return whether a row is before the initial time, or at it where the extender is not strict."""
    for d in range(len(initial)):
        time = time_of(table, block, row, d, floor)
        if time != initial[d]:
            return time < initial[d]
    return strict == 0


@inlined
def diff_of(table, block, row):
    """Return the diff of a row."""
    if table[block, DIFF_ROWS] == 1:
        return peek(table[block, DIFFS], 0)
    return peek(table[block, DIFFS], row)


@jit
def multiply(table, first, last, sign, strict, floor, initial, matches, times, diffs, n, next_times, next_diffs):
    """Multiply n pairs (time, diff) by a history: the rows [matches[0, b], matches[1, b]) of batches first to last.

    Write the results to next_times and next_diffs; return their number, or -1 if they do not fit.
    """
    count = 0
    depth = len(initial)
    for c in range(n):
        total = 1 if sign < 0 else 0
        for b in range(first, last):
            for row in range(matches[0, b], matches[1, b]):
                if not is_visible(table, b, row, floor, initial, strict):
                    continue
                diff = sign * diff_of(table, b, row)
                later = False
                for d in range(depth):
                    if time_of(table, b, row, d, floor) > times[d, c]:
                        later = True
                if not later:
                    total += diff
                    continue
                if count >= next_times.shape[1]:
                    return -1
                for d in range(depth):
                    next_times[d, count] = max(times[d, c], time_of(table, b, row, d, floor))
                next_diffs[count] = diffs[c] * diff
                count += 1
        if total != 0:
            if count >= next_times.shape[1]:
                return -1
            for d in range(depth):
                next_times[d, count] = times[d, c]
            next_diffs[count] = diffs[c] * total
            count += 1
    return count
