"""Correct groups with short histories in one pass, reading the batches of both traces directly.

For each key the kernel collects the input and output histories, joined with the meet of the key's seeds, and closes the
seeds under join with all those times. At each time of the closure that is not beyond `upper`, in lexicographic order,
it emits

    f(Σ inputs at or before it)  −  Σ outputs at or before it        (earlier corrections count as outputs)

Of the times beyond `upper` it postpones the minimal ones at which that difference is not zero. Where it is zero, the
output is right for the inputs that have arrived. Later inputs are seeds again, and the closure of those seeds includes
these times again. So a change that does not affect the output of a group is examined once, even if the group's history
has many times. The function f of a group is one of three:

    PRESENCE  one row without values if the sum of diffs is at least `at_least`
    SUMS      one row, with the summed diff as its values, if the sum is not zero
    FIRST     the row with the least values among those with a positive count, once

If a key's consolidated history, closure or corrections exceed the scratch space, its number goes to `long_keys`, and
the caller uses the general kernels. If the times of a key are all comparable, as those of one epoch are, they are their
own closure. Twin: kpg.testing.kernel_twins.one_pass_corrections_twin.one_pass_corrections.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import DATA, ROWS, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.insertion_list import (
    FULL,
    add_joins,
    add_times,
    collect_history,
    equal_prefix,
    insert,
    is_beyond_in_pool,
    is_chain,
    less_equal_in_pool,
)
from kpg.kernels.jit import inlined, jit
from kpg.kernels.join_closure import is_beyond
from kpg.kernels.key_probe import (
    PREFETCH_ROWS_PER_KEY,
    batch_of_only_row,
    batch_of_only_time,
    diff_as_of,
    is_least_value,
    prefetch_rows_of_key,
    sum_diffs_of_range,
)

PRESENCE, SUMS, FIRST = 0, 1, 2  # the function f

# The lists of one key in the pool (kpg.kernels.insertion_list). ENTRIES holds single entries for the kernel's own use.
INPUTS, OUTPUTS, CORRECTIONS, CLOSURE, CORRECTIONS_AT_TIME, ENTRIES = 0, 1, 2, 3, 4, 5
ROW, TARGET, FLOOR = 0, 1, 2  # positions in ENTRIES
POOL_LISTS = 6  # lists in the pool
PREFETCH_KEYS = 8  # distance in keys between prefetching rows and reading them


@jit
def write_target_row(kind, at_least, pool, base, n, size, at_diff, value_lanes, width, time, depth, target):
    """Write the values that the group should have at a time; return 1 if it should have a row."""
    if kind == FIRST:
        i = 0
        while i < n:
            total = 0
            j = i
            while j < n and equal_prefix(pool, base + j * size, base + i * size, value_lanes):
                if less_equal_in_pool(pool, base + j * size + value_lanes, time, depth):
                    total += pool[base + j * size + at_diff]
                j += 1
            if total > 0:
                for lane in range(value_lanes):
                    pool[target + lane] = pool[base + i * size + lane]
                return 1
            i = j
        return 0
    if kind == SUMS:
        for lane in range(width):
            pool[target + lane] = 0
        for i in range(n):
            if less_equal_in_pool(pool, base + i * size + value_lanes, time, depth):
                for lane in range(width):
                    pool[target + lane] += pool[base + i * size + at_diff + lane]
        for lane in range(width):
            if pool[target + lane] != 0:
                return 1
        return 0
    total = 0
    for i in range(n):
        if less_equal_in_pool(pool, base + i * size + value_lanes, time, depth):
            total += pool[base + i * size + at_diff]
    return 1 if total >= at_least else 0


@jit
def list_corrections_at(pool, base, n, size, at_diff, target, present, value_lanes, time, depth, missing):
    """List the corrections at a time: insert the target row, remove all other rows; return their number."""
    count = 0
    target_count = 0  # the count of the target row in the output
    i = 0
    while i < n:
        entry = base + i * size
        total = 0
        j = i
        while j < n and equal_prefix(pool, base + j * size, entry, value_lanes):
            if less_equal_in_pool(pool, base + j * size + value_lanes, time, depth):
                total += pool[base + j * size + at_diff]
            j += 1
        if present == 1 and equal_prefix(pool, entry, target, value_lanes):
            target_count = total
        elif total != 0:
            for lane in range(value_lanes):
                pool[missing + count * size + lane] = pool[entry + lane]
            pool[missing + count * size + at_diff] = -total
            count += 1
        i = j
    if present == 1 and target_count != 1:
        for lane in range(value_lanes):
            pool[missing + count * size + lane] = pool[target + lane]
        pool[missing + count * size + at_diff] = 1 - target_count
        count += 1
    for i_missing in range(count):
        for lane in range(depth):
            pool[missing + i_missing * size + value_lanes + lane] = pool[time + lane]
        for lane in range(at_diff + 1, size):
            pool[missing + i_missing * size + lane] = 0
    return count


@inlined
def is_after_postponed(postponed, start, end, pool, time):
    """Return whether a time is at or after one of those already postponed."""
    for j in range(start, end):
        after = True
        for lane in range(postponed.shape[0]):
            if postponed[lane, j] > pool[time + lane]:
                after = False
                break
        if after:
            return True
    return False


@inlined
def postpone(postponed_keys, postponed, n, key, pool, time):
    """Write a time at which the key must be evaluated again."""
    postponed_keys[n] = key
    for lane in range(postponed.shape[0]):
        postponed[lane, n] = pool[time + lane]


@jit
def correct_presence_along_chain(
    at_least, key, pool, closure, times_n, ins, ins_n, outs, outs_n, size, at_diff, depth, upper,
    correction_keys, corrections, correction_diffs, postponed_keys, postponed, corrections_n, postponed_n,
):  # fmt: skip
    """Correct presence along a chain of times, from running sums; return the new corrections_n and postponed_n."""
    total = 0
    present = 0
    i = 0
    o = 0
    for c in range(times_n):
        time = closure + c * size
        while i < ins_n and equal_prefix(pool, ins + i * size, time, depth):
            total += pool[ins + i * size + at_diff]
            i += 1
        while o < outs_n and equal_prefix(pool, outs + o * size, time, depth):
            present += pool[outs + o * size + at_diff]
            o += 1
        missing = (1 if total >= at_least else 0) - present
        if missing != 0:
            if is_beyond_in_pool(upper, pool, time, depth):
                postpone(postponed_keys, postponed, postponed_n, key, pool, time)
                return corrections_n, postponed_n + 1  # all that follow are after it
            correction_keys[corrections_n] = key
            for lane in range(depth):
                corrections[lane, corrections_n] = pool[time + lane]
            correction_diffs[corrections_n] = missing
            corrections_n += 1
            present += missing
    return corrections_n, postponed_n


@jit
def one_pass_corrections(
    kind, at_least, monotone, first_key, offsets, seeds, key_lanes, in_values, out_values, width, upper,
    in_table, in_ranges, out_table, out_ranges, pool, space, size, at_diff,
    correction_keys, corrections, correction_diffs, postponed_keys, postponed, long_keys, state,
):  # fmt: skip
    """Process the keys from `first_key` on; return the key to resume from if a buffer is full, or the number of keys.

    `corrections` int64[out lanes, capacity] receives corrections (values, then times) and `postponed` int64[depth,
    capacity] postponed times, each with the number of its key. `state` counts the entries: corrections, postponed
    times, long keys.
    """
    m = len(offsets) - 1
    depth = seeds.shape[0]
    list_size = space * size
    ins, outs, new_list, closure, missing = (
        INPUTS * list_size,
        OUTPUTS * list_size,
        CORRECTIONS * list_size,
        CLOSURE * list_size,
        CORRECTIONS_AT_TIME * list_size,
    )
    row, target, floor = (
        ENTRIES * list_size + ROW * size,
        ENTRIES * list_size + TARGET * size,
        ENTRIES * list_size + FLOOR * size,
    )
    seed_step = 1 if seeds.shape[1] > 1 else 0
    corrections_n, postponed_n, long_n = state[0], state[1], state[2]
    k = first_key
    prefetching = False
    for block in range(in_table.shape[0]):
        prefetching = prefetching or in_table[block, ROWS] >= PREFETCH_ROWS_PER_KEY * m
    while k < m and corrections_n + space <= corrections.shape[1] and postponed_n + space <= postponed.shape[1]:
        first, last = offsets[k], offsets[k + 1]
        if prefetching and k + PREFETCH_KEYS < m:
            prefetch_rows_of_key(out_table, out_ranges, k + PREFETCH_KEYS, key_lanes, out_values)
            prefetch_rows_of_key(in_table, in_ranges, k + PREFETCH_KEYS, key_lanes, in_values)
        k += 1
        if kind != SUMS and monotone == 1 and last == first + 1:
            seed = first * seed_step
            block = batch_of_only_row(out_ranges, k - 1)
            if block >= 0:
                first_row = out_ranges[2 * block, k - 1]
                if diff_as_of(out_table, block, first_row, seeds, seed, depth) == 1 and (
                    kind == PRESENCE
                    or is_least_value(in_table, in_ranges, k - 1, key_lanes, in_values, out_table, block, first_row)
                ):
                    continue  # the output is right from here on: the new rows change nothing
            elif block == -1:
                block = batch_of_only_row(in_ranges, k - 1)
                if block == -2:
                    block = batch_of_only_time(in_table, in_ranges, k - 1)
                if block >= 0:
                    first_row = in_ranges[2 * block, k - 1]
                    total = diff_as_of(in_table, block, first_row, seeds, seed, depth)
                    if total != 0 and kind == PRESENCE:
                        total = sum_diffs_of_range(in_table, block, first_row, in_ranges[2 * block + 1, k - 1])
                    if total >= at_least and not is_beyond(upper, seeds, seed):
                        # The key is new: its first row is the least.
                        correction_keys[corrections_n] = k - 1
                        for lane in range(out_values):
                            corrections[lane, corrections_n] = peek(
                                in_table[block, DATA], (key_lanes + lane) * in_table[block, ROWS] + first_row
                            )
                        for lane in range(depth):
                            corrections[out_values + lane, corrections_n] = seeds[lane, seed]
                        correction_diffs[corrections_n] = 1
                        corrections_n += 1
                        continue
        for lane in range(depth):
            pool[floor + lane] = seeds[lane, first * seed_step]
            for i in range(first + 1, last):
                pool[floor + lane] = min(pool[floor + lane], seeds[lane, i * seed_step])
        outs_n = collect_history(
            out_table, out_ranges, k - 1, key_lanes, out_values, depth, 1, pool, outs, space, size, at_diff, row, floor
        )
        ins_n = collect_history(
            in_table, in_ranges, k - 1, key_lanes, in_values, depth, width, pool, ins, space, size, at_diff, row, floor
        )
        if outs_n == FULL or ins_n == FULL:
            long_keys[long_n] = k - 1
            long_n += 1
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
            corrections_n, postponed_n = correct_presence_along_chain(
                at_least, k - 1, pool, closure, times_n, ins, ins_n, outs, outs_n, size, at_diff, depth, upper,
                correction_keys, corrections, correction_diffs, postponed_keys, postponed, corrections_n, postponed_n,
            )  # fmt: skip
            continue
        if not chained and seeds_n != FULL:  # start again from the seeds alone
            times_n = 0
            for i in range(first, last):
                for lane in range(depth):
                    pool[row + lane] = seeds[lane, i * seed_step]
                times_n = insert(pool, closure, times_n, space, size, at_diff, row, depth)
        postponed_before = postponed_n
        new_n = 0
        i = 0
        while i < times_n:
            time = closure + i * size
            i += 1
            if is_after_postponed(postponed, postponed_before, postponed_n, pool, time):
                continue
            if outs_n + 1 >= space:
                times_n = FULL
                break
            present = write_target_row(
                kind, at_least, pool, ins, ins_n, size, at_diff, in_values, width, time, depth, target
            )
            missing_n = list_corrections_at(
                pool, outs, outs_n, size, at_diff, target, present, out_values, time, depth, missing
            )
            if is_beyond_in_pool(upper, pool, time, depth):
                if missing_n > 0:
                    postpone(postponed_keys, postponed, postponed_n, k - 1, pool, time)
                    postponed_n += 1
                    if chained:
                        break  # all that follow are after it
                    continue
            else:
                for i_missing in range(missing_n):
                    entry = missing + i_missing * size
                    if outs_n != FULL:
                        outs_n = insert(pool, outs, outs_n, space, size, at_diff, entry, out_values + depth)
                    if new_n != FULL:
                        new_n = insert(pool, new_list, new_n, space, size, at_diff, entry, out_values + depth)
                if outs_n == FULL or new_n == FULL:
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
            postponed_n = postponed_before
            long_keys[long_n] = k - 1
            long_n += 1
            continue
        for j in range(new_n):
            entry = new_list + j * size
            if pool[entry + at_diff] != 0:
                correction_keys[corrections_n] = k - 1
                for lane in range(out_values + depth):
                    corrections[lane, corrections_n] = pool[entry + lane]
                correction_diffs[corrections_n] = pool[entry + at_diff]
                corrections_n += 1
    state[0], state[1], state[2] = corrections_n, postponed_n, long_n
    return k


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield one_pass_corrections, (
        NUMBER, NUMBER, NUMBER, NUMBER, COLUMN, TABLE, NUMBER, NUMBER, NUMBER, NUMBER, TABLE,
        TABLE, TABLE, TABLE, TABLE, COLUMN, NUMBER, NUMBER, NUMBER,
        COLUMN, TABLE, COLUMN, COLUMN, TABLE, COLUMN, COLUMN,
    )  # fmt: skip
