"""Corrections of groups with short histories, straight from the batches of both traces.

For each key: bring the input and output histories together, joined with the meet of the key's seeds; close the seeds
under join with all those times; at each of them that is not beyond `upper`, in lexicographic order, emit

    f(Σ inputs at or before it)  −  Σ outputs at or before it        (corrections made here count as outputs)

and put off those of the others at which that would not be zero, the minimal ones of them. Where it is zero the output
is right already, for the inputs known; inputs still to come are seeds, which meet these times again. So a change that
makes no difference to a group is looked at once, however many times its history has. Three functions f of a group:

    PRESENCE  one row without values if the sum of diffs is at least `at_least`
    SUMS      one row whose values are the summed diff, if that is not zero
    FIRST     the row with the least values among those with a positive count, once

A key whose consolidated history, closure or corrections are longer than the scratch space is left to the general way:
its number goes to `hard`. Where the times of a key are all comparable, as those of one epoch are, they are their own
closure. Twin: kpg.testing.kernels_react.react.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import DATA, ROWS, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.insertion_list import FULL, add_joins, add_times, collect, insert, is_beyond, is_chain, reaches, same
from kpg.kernels.jit import inlined, jit
from kpg.kernels.join_closure import beyond
from kpg.kernels.key_probe import SPARSE, counted, fetch_rows, lone_batch, lone_row, none_before, there_from

PRESENCE, SUMS, FIRST = 0, 1, 2

INPUTS, OUTPUTS, MADE, CLOSURE, FIXES, SINGLE = 0, 1, 2, 3, 4, 5  # the lists of one key: see kpg.kernels.insertion_list
ROW, WANT, FLOOR = 0, 1, 2  # single entries, at the base of SINGLE
LISTS = 6
AHEAD = 8  # keys between asking for rows and reading them


@jit
def want_at(kind, at_least, pool, base, n, size, at_diff, values, width, time, depth, want):
    """Fill in the values that the group should have at a time; returns 1 if it should have any."""
    if kind == FIRST:
        i = 0
        while i < n:
            total = 0
            j = i
            while j < n and same(pool, base + j * size, base + i * size, values):
                if reaches(pool, base + j * size + values, time, depth):
                    total += pool[base + j * size + at_diff]
                j += 1
            if total > 0:
                for lane in range(values):
                    pool[want + lane] = pool[base + i * size + lane]
                return 1
            i = j
        return 0
    if kind == SUMS:
        for lane in range(width):
            pool[want + lane] = 0
        for i in range(n):
            if reaches(pool, base + i * size + values, time, depth):
                for lane in range(width):
                    pool[want + lane] += pool[base + i * size + at_diff + lane]
        for lane in range(width):
            if pool[want + lane] != 0:
                return 1
        return 0
    total = 0
    for i in range(n):
        if reaches(pool, base + i * size + values, time, depth):
            total += pool[base + i * size + at_diff]
    return 1 if total >= at_least else 0


@jit
def missing_at(pool, base, n, size, at_diff, want, present, values, time, depth, fixes):
    """List what makes the output right at a time: old rows out, the wanted row in; returns how many."""
    count = 0
    found = 0  # how often the wanted row is there already
    i = 0
    while i < n:
        entry = base + i * size
        total = 0
        j = i
        while j < n and same(pool, base + j * size, entry, values):
            if reaches(pool, base + j * size + values, time, depth):
                total += pool[base + j * size + at_diff]
            j += 1
        if present == 1 and same(pool, entry, want, values):
            found = total
        elif total != 0:
            for lane in range(values):
                pool[fixes + count * size + lane] = pool[entry + lane]
            pool[fixes + count * size + at_diff] = -total
            count += 1
        i = j
    if present == 1 and found != 1:
        for lane in range(values):
            pool[fixes + count * size + lane] = pool[want + lane]
        pool[fixes + count * size + at_diff] = 1 - found
        count += 1
    for fix in range(count):
        for lane in range(depth):
            pool[fixes + fix * size + values + lane] = pool[time + lane]
        for lane in range(at_diff + 1, size):
            pool[fixes + fix * size + lane] = 0
    return count


@inlined
def is_covered(late, start, end, pool, time):
    """Whether a time is at or after one of those already put off."""
    for j in range(start, end):
        after = True
        for lane in range(late.shape[0]):
            if late[lane, j] > pool[time + lane]:
                after = False
                break
        if after:
            return True
    return False


@inlined
def put_off(late_keys, late, n, key, pool, time):
    """Note a time at which to look again."""
    late_keys[n] = key
    for lane in range(late.shape[0]):
        late[lane, n] = pool[time + lane]


@jit
def follow_presence(
    at_least, key, pool, closure, times_n, ins, ins_n, outs, outs_n, size, at_diff, depth, upper,
    made_keys, made, made_diffs, late_keys, late, made_n, late_n,
):  # fmt: skip
    """Correct presence along a chain of times, from running sums; returns how many are made and put off then."""
    total = 0
    there = 0
    i = 0
    o = 0
    for c in range(times_n):
        time = closure + c * size
        while i < ins_n and same(pool, ins + i * size, time, depth):
            total += pool[ins + i * size + at_diff]
            i += 1
        while o < outs_n and same(pool, outs + o * size, time, depth):
            there += pool[outs + o * size + at_diff]
            o += 1
        fix = (1 if total >= at_least else 0) - there
        if fix != 0:
            if is_beyond(upper, pool, time, depth):
                put_off(late_keys, late, late_n, key, pool, time)
                return made_n, late_n + 1  # all that follow are after it
            made_keys[made_n] = key
            for lane in range(depth):
                made[lane, made_n] = pool[time + lane]
            made_diffs[made_n] = fix
            made_n += 1
            there += fix
    return made_n, late_n


@jit
def react(
    kind, at_least, monotone, keys_from, offsets, seeds, key_lanes, in_values, out_values, width, upper,
    in_table, in_ranges, out_table, out_ranges, pool, space, size, at_diff,
    made_keys, made, made_diffs, late_keys, late, hard, state,
):  # fmt: skip
    """Work through the keys from `keys_from` on; returns the key to resume from when the output is full, or m.

    `made` int64[out lanes, capacity] gets corrections (values, then times) and `late` int64[depth, capacity] times put
    off, each with the number of its key. `state` counts what is in them: corrections, put off, hard.
    """
    m = len(offsets) - 1
    depth = seeds.shape[0]
    room = space * size
    ins, outs, news, closure, fixes = INPUTS * room, OUTPUTS * room, MADE * room, CLOSURE * room, FIXES * room
    row, want, floor = SINGLE * room + ROW * size, SINGLE * room + WANT * size, SINGLE * room + FLOOR * size
    seed_step = 1 if seeds.shape[1] > 1 else 0
    made_n, late_n, hard_n = state[0], state[1], state[2]
    k = keys_from
    far = False
    for block in range(in_table.shape[0]):
        far = far or in_table[block, ROWS] >= SPARSE * m
    while k < m and made_n + space <= made.shape[1] and late_n + space <= late.shape[1]:
        first, last = offsets[k], offsets[k + 1]
        if far and k + AHEAD < m:
            fetch_rows(out_table, out_ranges, k + AHEAD, key_lanes, out_values)
            fetch_rows(in_table, in_ranges, k + AHEAD, key_lanes, in_values)
        k += 1
        if kind != SUMS and monotone == 1 and last == first + 1:
            seed = first * seed_step
            block = lone_row(out_ranges, k - 1)
            if block >= 0:
                at = out_ranges[2 * block, k - 1]
                if there_from(out_table, block, at, seeds, seed, depth) == 1 and (
                    kind == PRESENCE
                    or none_before(in_table, in_ranges, k - 1, key_lanes, in_values, out_table, block, at)
                ):
                    continue  # the answer already, from here on: what was added changes nothing
            elif block == -1:
                block = lone_row(in_ranges, k - 1)
                if block == -2:
                    block = lone_batch(in_table, in_ranges, k - 1)
                if block >= 0:
                    at = in_ranges[2 * block, k - 1]
                    there = there_from(in_table, block, at, seeds, seed, depth)
                    if there != 0 and kind == PRESENCE:
                        there = counted(in_table, block, at, in_ranges[2 * block + 1, k - 1])
                    if there >= at_least and not beyond(upper, seeds, seed):
                        # Seen for the first time: the first row is the least.
                        made_keys[made_n] = k - 1
                        for lane in range(out_values):
                            made[lane, made_n] = peek(
                                in_table[block, DATA], (key_lanes + lane) * in_table[block, ROWS] + at
                            )
                        for lane in range(depth):
                            made[out_values + lane, made_n] = seeds[lane, seed]
                        made_diffs[made_n] = 1
                        made_n += 1
                        continue
        for lane in range(depth):
            pool[floor + lane] = seeds[lane, first * seed_step]
            for i in range(first + 1, last):
                pool[floor + lane] = min(pool[floor + lane], seeds[lane, i * seed_step])
        outs_n = collect(
            out_table, out_ranges, k - 1, key_lanes, out_values, depth, 1, pool, outs, space, size, at_diff, row, floor
        )
        ins_n = collect(
            in_table, in_ranges, k - 1, key_lanes, in_values, depth, width, pool, ins, space, size, at_diff, row, floor
        )
        if outs_n == FULL or ins_n == FULL:
            hard[hard_n] = k - 1
            hard_n += 1
            continue
        for lane in range(size):
            pool[row + lane] = 0
        times_n = 0
        for i in range(first, last):
            for lane in range(depth):
                pool[row + lane] = seeds[lane, i * seed_step]
            if times_n != FULL:
                times_n = insert(pool, closure, times_n, space, size, at_diff, row, depth)
        seeds_n = times_n
        if times_n != FULL:
            times_n = add_times(pool, closure, times_n, space, size, at_diff, ins, ins_n, in_values, depth, row)
        if times_n != FULL:
            times_n = add_times(pool, closure, times_n, space, size, at_diff, outs, outs_n, out_values, depth, row)
        chained = times_n != FULL and is_chain(pool, closure, times_n, size, depth)
        if chained and kind == PRESENCE:
            made_n, late_n = follow_presence(
                at_least, k - 1, pool, closure, times_n, ins, ins_n, outs, outs_n, size, at_diff, depth, upper,
                made_keys, made, made_diffs, late_keys, late, made_n, late_n,
            )  # fmt: skip
            continue
        if not chained and seeds_n != FULL:  # begin again from the seeds alone
            times_n = 0
            for i in range(first, last):
                for lane in range(depth):
                    pool[row + lane] = seeds[lane, i * seed_step]
                times_n = insert(pool, closure, times_n, space, size, at_diff, row, depth)
        late_before = late_n
        news_n = 0
        i = 0
        while i < times_n:
            time = closure + i * size
            i += 1
            if is_covered(late, late_before, late_n, pool, time):
                continue
            if outs_n + 1 >= space:
                times_n = FULL
                break
            present = want_at(kind, at_least, pool, ins, ins_n, size, at_diff, in_values, width, time, depth, want)
            fixes_n = missing_at(pool, outs, outs_n, size, at_diff, want, present, out_values, time, depth, fixes)
            if is_beyond(upper, pool, time, depth):
                if fixes_n > 0:
                    put_off(late_keys, late, late_n, k - 1, pool, time)
                    late_n += 1
                    if chained:
                        break  # all that follow are after it
                    continue
            else:
                for fix in range(fixes_n):
                    entry = fixes + fix * size
                    if outs_n != FULL:
                        outs_n = insert(pool, outs, outs_n, space, size, at_diff, entry, out_values + depth)
                    if news_n != FULL:
                        news_n = insert(pool, news, news_n, space, size, at_diff, entry, out_values + depth)
                if outs_n == FULL or news_n == FULL:
                    times_n = FULL
                    break
            if not chained:
                times_n = add_joins(
                    pool, closure, times_n, space, size, at_diff, time, ins, ins_n, in_values, depth, row
                )
                if times_n != FULL:
                    times_n = add_joins(
                        pool, closure, times_n, space, size, at_diff, time, outs, outs_n, out_values, depth, row
                    )
                if times_n != FULL:
                    times_n = add_joins(
                        pool, closure, times_n, space, size, at_diff, time, closure, times_n, 0, depth, row
                    )
        if times_n == FULL:
            late_n = late_before
            hard[hard_n] = k - 1
            hard_n += 1
            continue
        for j in range(news_n):
            entry = news + j * size
            if pool[entry + at_diff] != 0:
                made_keys[made_n] = k - 1
                for lane in range(out_values + depth):
                    made[lane, made_n] = pool[entry + lane]
                made_diffs[made_n] = pool[entry + at_diff]
                made_n += 1
    state[0], state[1], state[2] = made_n, late_n, hard_n
    return k


def examples() -> Iterator[Example]:
    """The one signature of each kernel that Python calls."""
    yield react, (
        NUMBER, NUMBER, NUMBER, NUMBER, COLUMN, TABLE, NUMBER, NUMBER, NUMBER, NUMBER, TABLE,
        TABLE, TABLE, TABLE, TABLE, COLUMN, NUMBER, NUMBER, NUMBER,
        COLUMN, TABLE, COLUMN, COLUMN, TABLE, COLUMN, COLUMN,
    )  # fmt: skip
