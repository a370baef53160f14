"""Extend tuples by values that indexes hold: one step of a delta query, for any number of indexes in one call.

A tuple is a column of `data` with a time, a diff and an *initial* time. The first coordinate of the initial time is
that of the time; its other coordinates are the last lanes of the data. Several *extenders* (indexes) constrain a tuple.
`ranges` holds where each batch of an extender has the rows of the tuple's key (kpg.kernels.locate_keys). The batches of
extender j are rows bounds[j] to bounds[j + 1] of `table`. flags[j] holds its number of key lanes, whether it is strict,
and whether it is negative.

    no new lanes           every extender validates: the tuple is multiplied by the history of its key
    one or more new lanes  the extender with the fewest rows proposes them; with one new lane, the others validate

The kernel joins the time of each row with `floor`. A row is visible if its time is lexicographically before the initial
time, or equal to it and the extender is not strict. Multiplying a tuple by a visible row joins their times, coordinate
by coordinate, and multiplies their diffs. A negative extender stands for 1 minus its history. The kernel sums all rows
of a history that leave the time of the tuple unchanged, and writes one result for them.

`progress` is int64[2]: the next tuple, and the number of rows proposed so far. Cost: for each tuple the rows of the
smallest extender, times a search in each other one. Twin: kpg.testing.kernel_twins.extend_tuples_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import DATA, ROWS, TIME_ROWS, peek, prefetch
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.extender_history import diff_of, is_visible, multiply, time_of
from kpg.kernels.jit import inlined, jit
from kpg.kernels.search_lane import gallop, lower_bound, run_end

KEYS, STRICT, NEGATIVE = range(3)  # the columns of `flags`
NO_VALUE = (1 << 63) - 1  # stands for the next value of an extender that has no more values; above all others
PREFETCH_TUPLES = 8  # distance in tuples between prefetching rows and reading them


@jit
def tuples_within_limit(ranges, bounds, flags, new, start, limit):
    """Return the end of the tuples from `start` on that propose at most `limit` rows together, and their row count.

    The range has at least one tuple, even if that one exceeds the limit.
    """
    n = ranges.shape[1]
    total = 0
    i = start
    while i < n:
        least = 1
        if new > 0:
            least = -1
            for j in range(flags.shape[0]):
                if flags[j, NEGATIVE] == 0:
                    rows = 0
                    for b in range(bounds[j], bounds[j + 1]):
                        rows += ranges[2 * b + 1, i] - ranges[2 * b, i]
                    if least < 0 or rows < least:
                        least = rows
        if i > start and total + least > limit:
            break
        total += least
        i += 1
    return i, total


@jit
def validate(
    table, lanes, bounds, flags, proposer, value, stop, floor, initial, matches, times, diffs, spare_times, spare_diffs,
):  # fmt: skip
    """Multiply the pair (time, diff) in column 0 by every extender but the proposer.

    With a proposer, the rows of an extender are those that hold `value` after the key; the search for them starts at
    its last position. Without one, they are all rows of the key. Return the number of results, or -1 if they do not
    fit.
    """
    n = 1
    for j in range(flags.shape[0]):
        if j == proposer or n <= 0:
            continue
        nonempty = False
        for b in range(bounds[j], bounds[j + 1]):
            if proposer >= 0:
                matches[0, b] = gallop(lanes[b], matches[0, b], stop[b], value)
                matches[1, b] = run_end(lanes[b], matches[0, b], stop[b], value)
            nonempty = nonempty or matches[0, b] < matches[1, b]
        negative = flags[j, NEGATIVE] == 1
        if not nonempty:
            if not negative:
                n = 0
            continue
        count = multiply(
            table, bounds[j], bounds[j + 1], -1 if negative else 1, flags[j, STRICT], floor, initial, matches,
            times, diffs, n, spare_times, spare_diffs,
        )  # fmt: skip
        for c in range(count):
            for d in range(times.shape[0]):
                times[d, c] = spare_times[d, c]
            diffs[c] = spare_diffs[c]
        n = count
    return n


@jit
def next_common_row(lanes, block, row, final, bounds, flags, proposer, matches, stop, last_positions, progress):
    """Return the first row of the proposer, from `row` on, with a value that all others hold at any time, else `final`.

    Each side gallops to the position of the other, so that rows in between are not read. `last_positions` holds where
    the previous search ended in each batch, which is near if tuples are sorted. A last position within the rows of this
    key is always the first row of its value, because a search ends there.
    """
    while row < final:
        progress[1] += 1
        value = peek(lanes[block], row)
        ahead = value
        for j in range(flags.shape[0]):
            if j == proposer or flags[j, NEGATIVE] == 1:
                continue
            least = NO_VALUE
            for b in range(bounds[j], bounds[j + 1]):
                position = matches[0, b]
                if position < last_positions[b] < stop[b] and peek(lanes[b], last_positions[b]) <= value:
                    position = last_positions[b]
                position = gallop(lanes[b], position, stop[b], value)
                matches[0, b] = position
                if position < stop[b]:
                    last_positions[b] = position
                    least = min(least, peek(lanes[b], position))
            ahead = max(ahead, least)
            if least > value:
                break
        if ahead == value:
            return row
        if ahead == NO_VALUE:
            return final
        row = gallop(lanes[block], row + 1, final, ahead)
    return final


@inlined
def write_run(
    data, i, diff, table, block, row, final, keys, projection, joined_times, n, out_data, out_times, out_diffs
):
    """Write tuple i with each of some rows of one time; return whether times and diffs equal the first ones written."""
    rows = final - row
    for p in range(projection.shape[0]):
        lane = projection[p, 1]
        if projection[p, 0] == 0:
            value = data[lane, i]
            for k in range(rows):
                out_data[p, n + k] = value
        else:
            first = (lane + keys) * table[block, ROWS] + row
            for k in range(rows):
                out_data[p, n + k] = peek(table[block, DATA], first + k)
    times_alike = 1
    for d in range(out_times.shape[0]):
        for k in range(rows):
            out_times[d, n + k] = joined_times[d, 0]
        if joined_times[d, 0] != out_times[d, 0]:
            times_alike = 0
    diffs_alike = 1
    for k in range(rows):
        amount = diff * diff_of(table, block, row + k)
        out_diffs[0, n + k] = amount
        if amount != out_diffs[0, 0]:
            diffs_alike = 0
    return times_alike, diffs_alike


@jit
def extend_tuples(
    data, times, diffs, start, stop, table, bounds, flags, ranges, floor, new, low, high, projection, progress,
    products_capacity, out_data, out_times, out_diffs,
):  # fmt: skip
    """Write the extensions of tuples start to stop; progress[0] is the next tuple, before stop if the buffer is full.

    `low` and `high` are lanes of the data that bound the new lane (low <= new < high), or -1. `products_capacity` is
    the maximum number of pairs (time, diff) of one extension. `projection` names each lane of the output: 0 and a lane
    of the tuple, or 1 and a position among the lanes of the proposer after its key. Return the number written, whether
    all times are equal, and whether all diffs are.
    """
    depth = len(floor)
    rounds = data.shape[0] - depth + 1
    batches = table.shape[0]
    matches = np.empty((2, batches), np.int64)
    range_start = np.empty(batches, np.int64)
    range_end = np.empty(batches, np.int64)
    initial = np.empty(depth, np.int64)
    joined_times = np.empty((depth, products_capacity), np.int64)
    products = np.empty(products_capacity, np.int64)
    spare_times = np.empty((depth, products_capacity), np.int64)
    spare_products = np.empty(products_capacity, np.int64)
    extenders = flags.shape[0]
    capacity = out_data.shape[1]
    lanes = np.empty(batches, np.int64)  # the address of the lane after the key
    last_positions = np.zeros(batches, np.int64)
    negatives = False
    for j in range(extenders):
        for b in range(bounds[j], bounds[j + 1]):
            lanes[b] = table[b, DATA] + 8 * flags[j, KEYS] * table[b, ROWS]
        negatives = negatives or flags[j, NEGATIVE] == 1
    n = 0
    times_alike = 1
    diffs_alike = 1
    for i in range(start, stop):
        if i + PREFETCH_TUPLES < stop:
            for b in range(batches):
                prefetch(lanes[b], ranges[2 * b, i + PREFETCH_TUPLES])
        progress[0] = i
        written_before = n
        time_at = i if times.shape[1] > 1 else 0
        diff = diffs[0, i if diffs.shape[1] > 1 else 0]
        initial[0] = times[0, time_at]
        for d in range(1, depth):
            initial[d] = data[rounds + d - 1, i]
        proposer = -1
        least = 0
        impossible = False
        for j in range(extenders):
            rows = 0
            for b in range(bounds[j], bounds[j + 1]):
                range_start[b] = ranges[2 * b, i]
                range_end[b] = ranges[2 * b + 1, i]
                if low >= 0:
                    range_start[b] = lower_bound(lanes[b], range_start[b], range_end[b], data[low, i])
                if high >= 0:
                    range_end[b] = lower_bound(lanes[b], range_start[b], range_end[b], data[high, i])
                rows += range_end[b] - range_start[b]
            if rows == 0 and flags[j, NEGATIVE] == 0:
                impossible = True
                break
            if new > 0 and flags[j, NEGATIVE] == 0 and (proposer < 0 or rows < least):
                proposer = j
                least = rows
        if impossible:
            continue
        first = 0
        last = 1
        if proposer >= 0:
            first = bounds[proposer]
            last = bounds[proposer + 1]
        for block in range(first, last):
            row = 0
            final = 1
            if proposer >= 0:
                row = range_start[block]
                final = range_end[block]
            if proposer >= 0 and extenders == 1 and table[block, TIME_ROWS] == 1:  # all rows are visible, or none
                if row == final or not is_visible(table, block, row, floor, initial, flags[0, STRICT]):
                    continue
                if n + final - row > capacity:
                    return written_before, times_alike, diffs_alike
                for d in range(depth):
                    joined_times[d, 0] = max(times[d, time_at], time_of(table, block, row, d, floor))
                progress[1] += final - row
                alike = write_run(data, i, diff, table, block, row, final, flags[0, KEYS], projection, joined_times, n,
                                  out_data, out_times, out_diffs)  # fmt: skip
                times_alike &= alike[0]
                diffs_alike &= alike[1]
                n += final - row
                continue
            for b in range(batches):
                matches[0, b] = range_start[b]
                matches[1, b] = range_end[b]
            while row < final:
                value = 0
                if proposer >= 0 and extenders > 1:
                    row = next_common_row(
                        lanes, block, row, final, bounds, flags, proposer, matches, range_end, last_positions, progress
                    )
                    if row == final:
                        break
                else:
                    progress[1] += 1
                amount = diff
                visible = True
                for d in range(depth):
                    joined_times[d, 0] = times[d, time_at]
                if proposer >= 0:
                    visible = is_visible(table, block, row, floor, initial, flags[proposer, STRICT])
                    if visible:
                        amount *= diff_of(table, block, row)
                        for d in range(depth):
                            joined_times[d, 0] = max(joined_times[d, 0], time_of(table, block, row, d, floor))
                        value = peek(table[block, DATA], flags[proposer, KEYS] * table[block, ROWS] + row)
                count = 0
                if visible:
                    products[0] = amount
                    count = 1
                    sums_only = proposer >= 0 and not negatives  # the usual case needs only sums, and no call
                    if sums_only:
                        for j in range(extenders):
                            if j == proposer:
                                continue
                            total = 0
                            for b in range(bounds[j], bounds[j + 1]):
                                match = matches[0, b]
                                while match < range_end[b] and peek(lanes[b], match) == value:
                                    if is_visible(table, b, match, floor, initial, flags[j, STRICT]):
                                        for d in range(1, depth):
                                            if time_of(table, b, match, d, floor) > joined_times[d, 0]:
                                                sums_only = False
                                        total += diff_of(table, b, match)
                                    match += 1
                            products[0] *= total
                    if sums_only:
                        count = 1 if products[0] != 0 else 0
                    else:
                        products[0] = amount
                        count = validate(
                            table, lanes, bounds, flags, proposer, value, range_end, floor, initial, matches,
                            joined_times, products, spare_times, spare_products,
                        )  # fmt: skip
                    if count < 0 or n + count > capacity:
                        return written_before, times_alike, diffs_alike
                for c in range(count):
                    for p in range(projection.shape[0]):
                        lane = projection[p, 1]
                        if projection[p, 0] == 0:
                            out_data[p, n] = data[lane, i]
                        else:
                            lane += flags[proposer, KEYS]
                            out_data[p, n] = peek(table[block, DATA], lane * table[block, ROWS] + row)
                    for d in range(depth):
                        out_times[d, n] = joined_times[d, c]
                        if joined_times[d, c] != out_times[d, 0]:
                            times_alike = 0
                    out_diffs[0, n] = products[c]
                    if products[c] != out_diffs[0, 0]:
                        diffs_alike = 0
                    n += 1
                row += 1
    progress[0] = stop
    return n, times_alike, diffs_alike


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield tuples_within_limit, (TABLE, COLUMN, TABLE, NUMBER, NUMBER, NUMBER)
    yield extend_tuples, (
        TABLE, TABLE, TABLE, NUMBER, NUMBER, TABLE, COLUMN, TABLE, TABLE, COLUMN, NUMBER, NUMBER, NUMBER,
        TABLE, COLUMN, NUMBER, TABLE, TABLE, TABLE,
    )  # fmt: skip
