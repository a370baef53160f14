"""Extend tuples by what indexes hold: one step of a delta query, of any number of indexes at once.

A tuple is a column of `data` with its time, its diff and its *initial* time: the first coordinate of its time, and the
last lanes of its data for the others. Several *extenders* (indexes) have a say about it; `ranges` tells where each of
their batches has the rows of the tuple's key (kpg.kernels.locate_keys). The batches of extender j are rows bounds[j] to
bounds[j + 1] of `table`; shape[j] is its number of key lanes, and whether it is strict and whether it is negative.

    with no new lanes    every extender validates: the tuple is multiplied by the history of its key
    with one or more     the extender with the fewest rows proposes them, and with one new lane the others validate

A row at time t counts if t is lexicographically before the initial time, or equal to it where the extender is not
strict; the new time is the product join, the new diff the product. A negative extender stands for 1 minus its history.
Rows of a history that do not change the time are summed first. Times of rows are joined with `floor`.

`meter` is int64[2]: where to go on, and how many rows were proposed so far. Cost: for each tuple the rows of the
smallest extender, times a search in each other. Twin: kpg.testing.kernels_extend.extend.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, fetch, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.search_lane import gallop, lower_bound, past

KEYS, STRICT, NEGATIVE = range(3)  # the columns of `shape`
NEVER = (1 << 63) - 1
AHEAD = 8  # tuples between asking for rows and reading them


@inlined
def time_of(table, block, row, d, floor):
    """Coordinate d of the time of a row; one that its trace does not know is zero."""
    if d >= table[block, DEPTH]:
        return max(floor[d], 0)
    if table[block, TIME_ROWS] == 1:
        return max(floor[d], peek(table[block, TIMES], d))
    return max(floor[d], peek(table[block, TIMES], d * table[block, TIME_ROWS] + row))


@inlined
def counts(table, block, row, floor, initial, strict):
    """Whether a row is before the initial time, or at it where that is allowed."""
    for d in range(len(initial)):
        time = time_of(table, block, row, d, floor)
        if time != initial[d]:
            return time < initial[d]
    return strict == 0


@inlined
def diff_of(table, block, row):
    """The diff of a row."""
    if table[block, DIFF_ROWS] == 1:
        return peek(table[block, DIFFS], 0)
    return peek(table[block, DIFFS], row)


@jit
def most(ranges, bounds, shape, new, start, limit):
    """How many tuples from `start` on may be done so that at most `limit` rows are proposed, at least one; how many."""
    n = ranges.shape[1]
    total = 0
    i = start
    while i < n:
        least = 1
        if new > 0:
            least = -1
            for j in range(shape.shape[0]):
                if shape[j, NEGATIVE] == 0:
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
def multiply(table, first, last, sign, strict, floor, initial, hits, times, diffs, n, next_times, next_diffs):
    """Multiply n (time, diff) by a history: rows [hits[0, b], hits[1, b]) of batches first to last.

    Writes the results to next_times and next_diffs; returns how many these are, or -1 if there is no room.
    """
    made = 0
    depth = len(initial)
    for c in range(n):
        total = 1 if sign < 0 else 0
        for b in range(first, last):
            for row in range(hits[0, b], hits[1, b]):
                if not counts(table, b, row, floor, initial, strict):
                    continue
                diff = sign * diff_of(table, b, row)
                later = False
                for d in range(depth):
                    if time_of(table, b, row, d, floor) > times[d, c]:
                        later = True
                if not later:
                    total += diff
                    continue
                if made >= next_times.shape[1]:
                    return -1
                for d in range(depth):
                    next_times[d, made] = max(times[d, c], time_of(table, b, row, d, floor))
                next_diffs[made] = diffs[c] * diff
                made += 1
        if total != 0:
            if made >= next_times.shape[1]:
                return -1
            for d in range(depth):
                next_times[d, made] = times[d, c]
            next_diffs[made] = diffs[c] * total
            made += 1
    return made


@jit
def validate(table, lanes, bounds, shape, proposer, value, stop, floor, initial, hits, times, diffs, spare_times,
             spare_diffs):  # fmt: skip
    """Multiply the one (time, diff) in column 0 by every extender but the proposer.

    With a proposer their rows are those that hold `value` after the key, searched from where the last one was; else
    all rows of the key. Returns how many there are then, or -1 if there is no room.
    """
    n = 1
    for j in range(shape.shape[0]):
        if j == proposer or n <= 0:
            continue
        found = False
        for b in range(bounds[j], bounds[j + 1]):
            if proposer >= 0:
                hits[0, b] = gallop(lanes[b], hits[0, b], stop[b], value)
                hits[1, b] = past(lanes[b], hits[0, b], stop[b], value)
            found = found or hits[0, b] < hits[1, b]
        negative = shape[j, NEGATIVE] == 1
        if not found:
            if not negative:
                n = 0
            continue
        made = multiply(table, bounds[j], bounds[j + 1], -1 if negative else 1, shape[j, STRICT], floor, initial, hits,
                        times, diffs, n, spare_times, spare_diffs)  # fmt: skip
        for c in range(made):
            for d in range(times.shape[0]):
                times[d, c] = spare_times[d, c]
            diffs[c] = spare_diffs[c]
        n = made
    return n


@jit
def agreed(lanes, block, row, final, bounds, shape, proposer, hits, stop, hints, meter):
    """The first row of the proposer from `row` on whose value all others hold, at whatever time; `final` if none.

    Each side gallops to where the other is, so that what lies between is not looked at; `hints` are where each was
    last, which is near for tuples in order. A hint within the rows of this key was found among them, so it is the first
    of its value.
    """
    while row < final:
        meter[1] += 1
        value = peek(lanes[block], row)
        ahead = value
        for j in range(shape.shape[0]):
            if j == proposer or shape[j, NEGATIVE] == 1:
                continue
            least = NEVER
            for b in range(bounds[j], bounds[j + 1]):
                at = hits[0, b]
                if at < hints[b] < stop[b] and peek(lanes[b], hints[b]) <= value:
                    at = hints[b]
                at = gallop(lanes[b], at, stop[b], value)
                hits[0, b] = at
                if at < stop[b]:
                    hints[b] = at
                    least = min(least, peek(lanes[b], at))
            ahead = max(ahead, least)
            if least > value:
                break
        if ahead == value:
            return row
        if ahead == NEVER:
            return final
        row = gallop(lanes[block], row + 1, final, ahead)
    return final


@inlined
def write_run(data, i, diff, table, block, row, final, keys, projection, moments, n, out_data, out_times, out_diffs):
    """Write tuple i with each of some rows of one time; whether times, and diffs, are like the first ones written."""
    rows = final - row
    for p in range(projection.shape[0]):
        lane = projection[p, 1]
        if projection[p, 0] == 0:
            value = data[lane, i]
            for k in range(rows):
                out_data[p, n + k] = value
        else:
            at = (lane + keys) * table[block, ROWS] + row
            for k in range(rows):
                out_data[p, n + k] = peek(table[block, DATA], at + k)
    times_alike = 1
    for d in range(out_times.shape[0]):
        for k in range(rows):
            out_times[d, n + k] = moments[d, 0]
        if moments[d, 0] != out_times[d, 0]:
            times_alike = 0
    diffs_alike = 1
    for k in range(rows):
        amount = diff * diff_of(table, block, row + k)
        out_diffs[0, n + k] = amount
        if amount != out_diffs[0, 0]:
            diffs_alike = 0
    return times_alike, diffs_alike


@jit
def extend(data, times, diffs, start, stop, table, bounds, shape, ranges, floor, new, low, high, projection, meter,
           room, out_data, out_times, out_diffs):  # fmt: skip
    """Write the extensions of tuples start to stop; meter[0] is where to go on, which is before stop if room is short.

    `low` and `high` are lanes of the data that bound the new lane (low <= new < high), or -1. `room` is how many
    (time, diff) one extension may have. `projection` names each lane of the output: 0 and a lane of the tuple, or 1 and
    how many lanes after the key of the proposer. Returns how many were written, whether all times are alike, and diffs.
    """
    depth = len(floor)
    rounds = data.shape[0] - depth + 1
    batches = table.shape[0]
    hits = np.empty((2, batches), np.int64)
    begin = np.empty(batches, np.int64)
    end = np.empty(batches, np.int64)
    initial = np.empty(depth, np.int64)
    moments = np.empty((depth, room), np.int64)
    amounts = np.empty(room, np.int64)
    spare_moments = np.empty((depth, room), np.int64)
    spare_amounts = np.empty(room, np.int64)
    extenders = shape.shape[0]
    capacity = out_data.shape[1]
    lanes = np.empty(batches, np.int64)  # where the lane after the key begins
    hints = np.zeros(batches, np.int64)
    negatives = False
    for j in range(extenders):
        for b in range(bounds[j], bounds[j + 1]):
            lanes[b] = table[b, DATA] + 8 * shape[j, KEYS] * table[b, ROWS]
        negatives = negatives or shape[j, NEGATIVE] == 1
    n = 0
    times_alike = 1
    diffs_alike = 1
    for i in range(start, stop):
        if i + AHEAD < stop:
            for b in range(batches):
                fetch(lanes[b], ranges[2 * b, i + AHEAD])
        meter[0] = i
        before = n
        time_at = i if times.shape[1] > 1 else 0
        diff = diffs[0, i if diffs.shape[1] > 1 else 0]
        initial[0] = times[0, time_at]
        for d in range(1, depth):
            initial[d] = data[rounds + d - 1, i]
        proposer = -1
        least = 0
        dead = False
        for j in range(extenders):
            rows = 0
            for b in range(bounds[j], bounds[j + 1]):
                begin[b] = ranges[2 * b, i]
                end[b] = ranges[2 * b + 1, i]
                if low >= 0:
                    begin[b] = lower_bound(lanes[b], begin[b], end[b], data[low, i])
                if high >= 0:
                    end[b] = lower_bound(lanes[b], begin[b], end[b], data[high, i])
                rows += end[b] - begin[b]
            if rows == 0 and shape[j, NEGATIVE] == 0:
                dead = True
                break
            if new > 0 and shape[j, NEGATIVE] == 0 and (proposer < 0 or rows < least):
                proposer = j
                least = rows
        if dead:
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
                row = begin[block]
                final = end[block]
            if proposer >= 0 and extenders == 1 and table[block, TIME_ROWS] == 1:  # all rows count, or none
                if row == final or not counts(table, block, row, floor, initial, shape[0, STRICT]):
                    continue
                if n + final - row > capacity:
                    return before, times_alike, diffs_alike
                for d in range(depth):
                    moments[d, 0] = max(times[d, time_at], time_of(table, block, row, d, floor))
                meter[1] += final - row
                alike = write_run(data, i, diff, table, block, row, final, shape[0, KEYS], projection, moments, n,
                                  out_data, out_times, out_diffs)  # fmt: skip
                times_alike &= alike[0]
                diffs_alike &= alike[1]
                n += final - row
                continue
            for b in range(batches):
                hits[0, b] = begin[b]
                hits[1, b] = end[b]
            while row < final:
                value = 0
                if proposer >= 0 and extenders > 1:
                    row = agreed(lanes, block, row, final, bounds, shape, proposer, hits, end, hints, meter)
                    if row == final:
                        break
                else:
                    meter[1] += 1
                amount = diff
                good = True
                for d in range(depth):
                    moments[d, 0] = times[d, time_at]
                if proposer >= 0:
                    good = counts(table, block, row, floor, initial, shape[proposer, STRICT])
                    if good:
                        amount *= diff_of(table, block, row)
                        for d in range(depth):
                            moments[d, 0] = max(moments[d, 0], time_of(table, block, row, d, floor))
                        value = peek(table[block, DATA], shape[proposer, KEYS] * table[block, ROWS] + row)
                made = 0
                if good:
                    amounts[0] = amount
                    made = 1
                    plain = proposer >= 0 and not negatives  # no more than sums: the usual case, without a call
                    if plain:
                        for j in range(extenders):
                            if j == proposer:
                                continue
                            total = 0
                            for b in range(bounds[j], bounds[j + 1]):
                                at = hits[0, b]
                                while at < end[b] and peek(lanes[b], at) == value:
                                    if counts(table, b, at, floor, initial, shape[j, STRICT]):
                                        for d in range(1, depth):
                                            if time_of(table, b, at, d, floor) > moments[d, 0]:
                                                plain = False
                                        total += diff_of(table, b, at)
                                    at += 1
                            amounts[0] *= total
                    if plain:
                        made = 1 if amounts[0] != 0 else 0
                    else:
                        amounts[0] = amount
                        made = validate(table, lanes, bounds, shape, proposer, value, end, floor, initial, hits,
                                        moments, amounts, spare_moments, spare_amounts)  # fmt: skip
                    if made < 0 or n + made > capacity:
                        return before, times_alike, diffs_alike
                for c in range(made):
                    for p in range(projection.shape[0]):
                        lane = projection[p, 1]
                        if projection[p, 0] == 0:
                            out_data[p, n] = data[lane, i]
                        else:
                            lane += shape[proposer, KEYS]
                            out_data[p, n] = peek(table[block, DATA], lane * table[block, ROWS] + row)
                    for d in range(depth):
                        out_times[d, n] = moments[d, c]
                        if moments[d, c] != out_times[d, 0]:
                            times_alike = 0
                    out_diffs[0, n] = amounts[c]
                    if amounts[c] != out_diffs[0, 0]:
                        diffs_alike = 0
                    n += 1
                row += 1
    meter[0] = stop
    return n, times_alike, diffs_alike


def examples() -> Iterator[Example]:
    """How the engine calls these kernels."""
    yield most, (TABLE, COLUMN, TABLE, NUMBER, NUMBER, NUMBER)
    yield extend, (TABLE, TABLE, TABLE, NUMBER, NUMBER, TABLE, COLUMN, TABLE, TABLE, COLUMN, NUMBER, NUMBER, NUMBER,
                   TABLE, COLUMN, NUMBER, TABLE, TABLE, TABLE)  # fmt: skip
