"""Run the rounds of a small loop: one epoch of a loop of few rows, from its first round to its fixed point.

Outside the loop, times are epochs, and all rows of this run are at one epoch; rows of earlier epochs count as rows of
this one, so a time is just a round. The operators of the loop are `nodes` int64[n, NODE_FIELDS]:

    COLLECT   an arrangement (with a trace) or a consolidation (without): it adds up the rows of a round, keeps them in
              its trace, and sends them
    ENTERED   an arrangement from outside: like COLLECT; its trace is that of the arrangement
    JOIN      each row that one side receives meets the rows that the other side has received, at the later round
    REDUCE    for each key with a change in a round: what the group's output should be, minus what it is. A change in
              round r may also change the output in later rounds: at the next round of the key's history, and so on
    STAGES    a chain of stages on each row (kpg.kernels.loop_stages); also what enters a loop
    FEEDBACK  one round later          LEAVE   the rows of all rounds, kept for the caller

A node comes after those it reads, except through FEEDBACK. The heap has the rows that nodes have not processed yet, by
round and node, so a node processes a round when all of its rows are there. A trace has batches (`batches`, rows of
kpg.kernels.array_address, from nodes[n, FIRST_BATCH] on), and the rows of this run (kpg.kernels.loop_rows).

`run_rounds` returns DONE; PAUSED after `budget` visits of rows; GROW if `rows` should be larger; TOO_MANY_ROUNDS; or
ABANDONED if the loop is not small, a row fails or a number is too large. After PAUSED and GROW it can go on.
Cost: a few searches for each row, in the batches of a trace. Twin: the general loop, which tests compare with it.
"""

from collections.abc import Iterator

from kpg.kernels.array_address import DATA, DEPTH, DIFF_ROWS, DIFFS, ROWS, TIME_ROWS, TIMES, peek
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.locate_keys import locate_in_batch
from kpg.kernels.loop_rows import (
    ABANDONED,
    COUNTERS,
    DIFF,
    DONE,
    EMITTED,
    ENDLESS,
    FIELDS,
    FREE_ROWS,
    GROUPS,
    GROW,
    HEAP_SIZE,
    MAX_DIFF,
    MAX_GROUP_ROWS,
    MAX_ROWS_PER_GROUP,
    NEXT,
    NO_ROW,
    NODE,
    PAUSED,
    ROUND,
    SERIAL,
    SERIALS,
    SPARE_EMITTED,
    STACK_SIZE,
    STATUS,
    TOO_MANY_ROUNDS,
    VISITED,
    abandon,
    add_to_index,
    bucket_of,
    free_row,
    is_of_key,
    new_row,
    pop_heap,
    push_heap,
    sum_group,
)
from kpg.kernels.loop_stages import DROPPED, FAILED, run_stages
from kpg.kernels.row_expressions import product_leaves_range

COLLECT, ENTERED, JOIN, REDUCE, STAGES, FEEDBACK, LEAVE = range(7)  # kinds of nodes

KIND, LANES, KEY_LANES, HAS_TRACE, FIRST_TARGET, TARGETS, FIRST_BATCH, BATCHES = range(8)
PROGRAM_START, PROGRAM_END = 8, 9  # STAGES: its stages
LEFT, RIGHT, PROJECTION, PROJECTED = 8, 9, 10, 11  # JOIN: the nodes whose traces it reads, its projection in `program`
INPUT, OUTPUT, FUNCTION, AT_LEAST, VALUES, OUT_VALUES = 8, 9, 10, 11, 12, 13  # REDUCE: the nodes of both traces, f
MAX_ROUNDS, STOPS = 8, 9  # FEEDBACK: the limit, and whether rows beyond it are dropped
WIDTH = 14  # COLLECT: the lanes of a diff; more than one only if a REDUCE of SUMS is all that reads it
NODE_FIELDS = 15

PRESENCE, SUMS, FIRST = 0, 1, 2  # FUNCTION, as in kpg.kernels.one_pass_corrections

UNKNOWN_LANES = -1  # of LEAVE: a row that reaches it is left to the general path
NEVER = 1 << 62  # a round after all others
MAX_OUTPUT_ROWS = 64  # distinct rows of a group's output history: more go to the general path


@inlined
def round_of(batches, batch, row):
    """Return the round of a row of a batch: 0 if its trace is from outside the loop."""
    if batches[batch, DEPTH] == 1:
        return 0
    times = batches[batch, TIME_ROWS]
    return peek(batches[batch, TIMES], times + (row if times > 1 else 0))


@inlined
def diff_of(batches, batch, row, lane):
    """Return a lane of the diff of a row of a batch."""
    rows = batches[batch, DIFF_ROWS]
    return peek(batches[batch, DIFFS], lane * rows + (row if rows > 1 else 0))


@jit
def locate_key(nodes, batches, node, rows, slot, key, ranges):
    """Fill the range of rows with the key of a row, in each batch of a node's trace."""
    lanes = nodes[node, KEY_LANES]
    for lane in range(lanes):
        key[lane, 0] = rows[slot, FIELDS + lane]
    first = nodes[node, FIRST_BATCH]
    for number in range(nodes[node, BATCHES]):
        place = 2 * number
        locate_in_batch(
            batches, first + number, key[:lanes], True, ranges[place : place + 1], ranges[place + 1 : place + 2]
        )


@jit
def emit(nodes, targets, rows, heap_keys, heap_slots, stack, state, node, values, values_row, round_, diff):
    """Send a row of `values` from a node: to the heap of nodes that collect, to the stack of the others."""
    if abs(diff) > MAX_DIFF:
        abandon(state)
        return
    first = nodes[node, FIRST_TARGET]
    for place in range(first, first + nodes[node, TARGETS]):
        slot = new_row(rows, state)
        if slot == NO_ROW:
            return
        target = targets[place, 0]
        rows[slot, NODE] = target
        rows[slot, ROUND] = round_
        rows[slot, DIFF] = diff
        for lane in range(rows.shape[1] - FIELDS):
            rows[slot, FIELDS + lane] = values[values_row, lane]
        state[EMITTED] += 1
        kind = nodes[target, KIND]
        if kind == COLLECT or kind == ENTERED:
            push_heap(heap_keys, heap_slots, state, round_ * nodes.shape[0] + target, slot)
        else:
            stack[state[STACK_SIZE]] = slot
            state[STACK_SIZE] += 1


@jit
def pass_on(nodes, targets, program, rows, heap_keys, heap_slots, stack, state, work):
    """Process all rows on the stack."""
    while state[STACK_SIZE] > 0 and state[STATUS] == DONE:
        state[STACK_SIZE] -= 1
        slot = stack[state[STACK_SIZE]]
        state[VISITED] += 1
        node = rows[slot, NODE]
        kind = nodes[node, KIND]
        if kind == LEAVE:
            if nodes[node, LANES] == UNKNOWN_LANES:
                abandon(state)
            continue  # the row stays until the caller takes it
        round_, diff = rows[slot, ROUND], rows[slot, DIFF]
        row = 0
        for lane in range(rows.shape[1] - FIELDS):
            work[0, lane] = rows[slot, FIELDS + lane]
        free_row(rows, state, slot)
        if kind == FEEDBACK:
            round_ += 1
            if round_ > nodes[node, MAX_ROUNDS]:
                if nodes[node, STOPS]:
                    continue
                state[STATUS] = TOO_MANY_ROUNDS
                state[ENDLESS] = node
                return
        else:
            outcome, row, diff = run_stages(program, nodes[node, PROGRAM_START], nodes[node, PROGRAM_END], work, diff)
            if outcome == FAILED:
                abandon(state)
                return
            if outcome == DROPPED:
                continue
        emit(nodes, targets, rows, heap_keys, heap_slots, stack, state, node, work, row, round_, diff)


@jit
def join_row(
    nodes, targets, program, batches, rows, heads, heap_keys, heap_slots, stack, state, node, side, slot, work, key,
    ranges,
):  # fmt: skip
    """Pair a new row of one side of a join with the rows that the other side has received."""
    other = nodes[node, RIGHT if side == 0 else LEFT]
    projection, projected = nodes[node, PROJECTION], nodes[node, PROJECTED]
    round_, diff = rows[slot, ROUND], rows[slot, DIFF]
    for place in range(projected):  # its own lanes
        if program[projection + 2 * place] == side:
            work[0, place] = rows[slot, FIELDS + program[projection + 2 * place + 1]]
    locate_key(nodes, batches, other, rows, slot, key, ranges)
    first = nodes[other, FIRST_BATCH]
    for number in range(nodes[other, BATCHES]):
        batch = first + number
        data, n = batches[batch, DATA], batches[batch, ROWS]
        for row in range(ranges[2 * number], ranges[2 * number + 1]):
            for place in range(projected):
                if program[projection + 2 * place] != side:
                    work[0, place] = peek(data, program[projection + 2 * place + 1] * n + row)
            factor = diff_of(batches, batch, row, 0)
            if product_leaves_range(diff, factor):
                abandon(state)
                return
            later = max(round_, round_of(batches, batch, row))
            emit(nodes, targets, rows, heap_keys, heap_slots, stack, state, node, work, 0, later, diff * factor)
            state[VISITED] += 1
            if state[STATUS] != DONE:
                return
    received = state[COUNTERS + 2 * node + 1 - side]
    row = heads[bucket_of(rows, slot, other, nodes[other, KEY_LANES], len(heads))]
    while row != NO_ROW:
        if rows[row, SERIAL] < received and is_of_key(rows, row, other, slot, nodes[other, KEY_LANES]):
            for place in range(projected):
                if program[projection + 2 * place] != side:
                    work[0, place] = rows[row, FIELDS + program[projection + 2 * place + 1]]
            if product_leaves_range(diff, rows[row, DIFF]):
                abandon(state)
                return
            later = max(round_, rows[row, ROUND])
            emit(
                nodes, targets, rows, heap_keys, heap_slots, stack, state, node, work, 0, later, diff * rows[row, DIFF]
            )
            if state[STATUS] != DONE:
                return
        state[VISITED] += 1
        row = rows[row, NEXT]


BEST, LAST, PRESENT = 3, 4, 5  # rows of `work`: what should be the output, values tried before, the first output row


@jit
def total_at(nodes, batches, rows, heads, state, node, slot, round_, work, key, ranges):
    """Add up the diffs of a key up to a round, in row BEST of `work`. Return the next round of the key's history."""
    following = NEVER
    width = nodes[node, WIDTH]
    at_diff = DIFF if width == 1 else FIELDS + nodes[node, LANES]
    for lane in range(width):
        work[BEST, lane] = 0
    locate_key(nodes, batches, node, rows, slot, key, ranges)
    first = nodes[node, FIRST_BATCH]
    for number in range(nodes[node, BATCHES]):
        for row in range(ranges[2 * number], ranges[2 * number + 1]):
            at = round_of(batches, first + number, row)
            state[VISITED] += 1
            if at > round_:
                following = min(following, at)
                continue
            for lane in range(width):
                work[BEST, lane] += diff_of(batches, first + number, row, lane)
                if abs(work[BEST, lane]) > MAX_DIFF:
                    abandon(state)
    row = heads[bucket_of(rows, slot, node, nodes[node, KEY_LANES], len(heads))]
    while row != NO_ROW:
        state[VISITED] += 1
        if is_of_key(rows, row, node, slot, nodes[node, KEY_LANES]):
            if rows[row, ROUND] > round_:
                following = min(following, rows[row, ROUND])
            else:
                for lane in range(width):
                    work[BEST, lane] += rows[row, at_diff + lane]
                    if abs(work[BEST, lane]) > MAX_DIFF:
                        abandon(state)
        row = rows[row, NEXT]
    return following


@inlined
def compare_with_best(batches, batch, row, key_lanes, values, work, best):
    """Return how the values of a batch's row compare with a row of `work`."""
    data, n = batches[batch, DATA], batches[batch, ROWS]
    for lane in range(values):
        value = peek(data, (key_lanes + lane) * n + row)
        if value != work[best, lane]:
            return -1 if value < work[best, lane] else 1
    return 0


@inlined
def compare_row_with_best(rows, row, key_lanes, values, work, best):
    """Return how the values of a row of this run compare with a row of `work`."""
    for lane in range(values):
        value = rows[row, FIELDS + key_lanes + lane]
        if value != work[best, lane]:
            return -1 if value < work[best, lane] else 1
    return 0


@jit
def first_at(nodes, batches, rows, heads, state, node, slot, round_, work, key, ranges, cursors):
    """Find the least values with a positive count at a round. Return whether there are any; `work` has them in BEST.

    The rows of a key are sorted by values in each batch, so the search stops at the first values that are present.
    """
    key_lanes = nodes[node, KEY_LANES]
    values = nodes[node, LANES] - key_lanes
    locate_key(nodes, batches, node, rows, slot, key, ranges)
    first, count = nodes[node, FIRST_BATCH], nodes[node, BATCHES]
    for number in range(count):
        cursors[number] = ranges[2 * number]
    chain = heads[bucket_of(rows, slot, node, key_lanes, len(heads))]
    tried = False
    while True:
        found = False
        for number in range(count):
            row = cursors[number]
            if row < ranges[2 * number + 1] and (
                not found or compare_with_best(batches, first + number, row, key_lanes, values, work, BEST) < 0
            ):
                found = True
                for lane in range(values):
                    work[BEST, lane] = peek(
                        batches[first + number, DATA], (key_lanes + lane) * batches[first + number, ROWS] + row
                    )
        row = chain
        while row != NO_ROW:
            state[VISITED] += 1
            if (
                is_of_key(rows, row, node, slot, key_lanes)
                and (not tried or compare_row_with_best(rows, row, key_lanes, values, work, LAST) > 0)
                and (not found or compare_row_with_best(rows, row, key_lanes, values, work, BEST) < 0)
            ):
                found = True
                for lane in range(values):
                    work[BEST, lane] = rows[row, FIELDS + key_lanes + lane]
            row = rows[row, NEXT]
        if not found:
            return False
        total = 0
        for number in range(count):
            row = cursors[number]
            while row < ranges[2 * number + 1] and (
                compare_with_best(batches, first + number, row, key_lanes, values, work, BEST) == 0
            ):
                if round_of(batches, first + number, row) <= round_:
                    total += diff_of(batches, first + number, row, 0)
                row += 1
                state[VISITED] += 1
                if abs(total) > MAX_DIFF:
                    abandon(state)
            cursors[number] = row
        row = chain
        while row != NO_ROW:
            if (
                rows[row, ROUND] <= round_
                and is_of_key(rows, row, node, slot, key_lanes)
                and compare_row_with_best(rows, row, key_lanes, values, work, BEST) == 0
            ):
                total += rows[row, DIFF]
                if abs(total) > MAX_DIFF:
                    abandon(state)
            row = rows[row, NEXT]
        if total > 0:
            return True
        tried = True
        for lane in range(values):
            work[LAST, lane] = work[BEST, lane]


@jit
def next_round_of(nodes, batches, rows, heads, state, node, slot, round_, bounded, work, bound, key, ranges):
    """Return the next round of a key's history; if `bounded`, of the rows with at most the values of `bound`."""
    following = NEVER
    key_lanes = nodes[node, KEY_LANES]
    values = nodes[node, LANES] - key_lanes
    locate_key(nodes, batches, node, rows, slot, key, ranges)
    first = nodes[node, FIRST_BATCH]
    for number in range(nodes[node, BATCHES]):
        for row in range(ranges[2 * number], ranges[2 * number + 1]):
            if bounded and compare_with_best(batches, first + number, row, key_lanes, values, work, bound) > 0:
                break
            at = round_of(batches, first + number, row)
            if round_ < at < following:
                following = at
            state[VISITED] += 1
    row = heads[bucket_of(rows, slot, node, key_lanes, len(heads))]
    while row != NO_ROW:
        if (
            round_ < rows[row, ROUND] < following
            and is_of_key(rows, row, node, slot, key_lanes)
            and not (bounded and compare_row_with_best(rows, row, key_lanes, values, work, bound) > 0)
        ):
            following = rows[row, ROUND]
        state[VISITED] += 1
        row = rows[row, NEXT]
    return following


@inlined
def add_output(work, n, values, diff):
    """Add the values in row LAST of `work` to the listed rows of an output, from PRESENT on; return their number."""
    for number in range(n):
        same = True
        for lane in range(values):
            if work[PRESENT + number, lane] != work[LAST, lane]:
                same = False
                break
        if same:
            work[PRESENT + number, values] += diff
            return n
    for lane in range(values):
        work[PRESENT + n, lane] = work[LAST, lane]
    work[PRESENT + n, values] = diff
    return n + 1


@jit
def list_output(nodes, batches, rows, heads, state, node, slot, round_, work, key, ranges):
    """List the rows of a key's output at a round, with counts, in `work` from PRESENT on.

    Return their number, and the next round of the output's history.
    """
    n, following = 0, NEVER
    key_lanes = nodes[node, KEY_LANES]
    values = nodes[node, LANES] - key_lanes
    locate_key(nodes, batches, node, rows, slot, key, ranges)
    first = nodes[node, FIRST_BATCH]
    for number in range(nodes[node, BATCHES]):
        batch = first + number
        for row in range(ranges[2 * number], ranges[2 * number + 1]):
            at = round_of(batches, batch, row)
            state[VISITED] += 1
            if at > round_:
                following = min(following, at)
                continue
            if n == MAX_OUTPUT_ROWS:
                abandon(state)
                return n, following
            for lane in range(values):
                work[LAST, lane] = peek(batches[batch, DATA], (key_lanes + lane) * batches[batch, ROWS] + row)
            n = add_output(work, n, values, diff_of(batches, batch, row, 0))
    row = heads[bucket_of(rows, slot, node, key_lanes, len(heads))]
    while row != NO_ROW:
        state[VISITED] += 1
        if is_of_key(rows, row, node, slot, key_lanes):
            if rows[row, ROUND] > round_:
                following = min(following, rows[row, ROUND])
            elif n == MAX_OUTPUT_ROWS:
                abandon(state)
                return n, following
            else:
                for lane in range(values):
                    work[LAST, lane] = rows[row, FIELDS + key_lanes + lane]
                n = add_output(work, n, values, rows[row, DIFF])
        row = rows[row, NEXT]
    return n, following


@jit
def send_correction(nodes, rows, heap_keys, heap_slots, state, output, seed, work, row, values, round_, diff):
    """Send a change of a group's output to the node of that output."""
    slot = new_row(rows, state)
    if slot == NO_ROW:
        return
    key_lanes = nodes[output, KEY_LANES]
    rows[slot, NODE] = output
    rows[slot, ROUND] = round_
    rows[slot, DIFF] = diff
    for lane in range(key_lanes):
        rows[slot, FIELDS + lane] = rows[seed, FIELDS + lane]
    for lane in range(values):
        rows[slot, FIELDS + key_lanes + lane] = work[row, lane]
    state[EMITTED] += 1
    push_heap(heap_keys, heap_slots, state, round_ * nodes.shape[0] + output, slot)


@jit
def add_seed(nodes, rows, heap_keys, heap_slots, state, node, row, round_):
    """Let a reduction evaluate the key of a row at a round."""
    slot = new_row(rows, state)
    if slot == NO_ROW:
        return
    rows[slot, NODE] = node
    rows[slot, ROUND] = round_
    rows[slot, DIFF] = 1
    for lane in range(nodes[node, KEY_LANES]):
        rows[slot, FIELDS + lane] = rows[row, FIELDS + lane]
    push_heap(heap_keys, heap_slots, state, round_ * nodes.shape[0] + node, slot)


@jit
def reduce_key(nodes, batches, rows, heads, heap_keys, heap_slots, state, node, seed, work, key, ranges, cursors):
    """Correct the output of the key of a seed at its round, and evaluate it again at the next round that may differ."""
    round_ = rows[seed, ROUND]
    source, output, function = nodes[node, INPUT], nodes[node, OUTPUT], nodes[node, FUNCTION]
    values = nodes[node, OUT_VALUES]
    present, after_output = list_output(nodes, batches, rows, heads, state, output, seed, round_, work, key, ranges)
    if function == FIRST:
        wanted = first_at(nodes, batches, rows, heads, state, source, seed, round_, work, key, ranges, cursors)
        bound = BEST  # the greatest of the values that are and that should be the output
        for number in range(present):
            if work[PRESENT + number, values] != 0:
                for lane in range(values):
                    if work[PRESENT + number, lane] != work[bound, lane]:
                        if work[PRESENT + number, lane] > work[bound, lane]:
                            bound = PRESENT + number
                        break
        following = next_round_of(
            nodes, batches, rows, heads, state, source, seed, round_, wanted, work, bound, key, ranges
        )
    else:
        following = total_at(nodes, batches, rows, heads, state, source, seed, round_, work, key, ranges)
        wanted = function == PRESENCE and work[BEST, 0] >= nodes[node, AT_LEAST]
        for lane in range(values):  # none of PRESENCE
            wanted = wanted or work[BEST, lane] != 0
    for number in range(present):
        row = PRESENT + number
        diff = -work[row, values]
        if wanted:
            same = True
            for lane in range(values):
                if work[row, lane] != work[BEST, lane]:
                    same = False
                    break
            if same:
                diff += 1
                wanted = False
        if diff != 0:
            send_correction(nodes, rows, heap_keys, heap_slots, state, output, seed, work, row, values, round_, diff)
    if wanted:
        send_correction(nodes, rows, heap_keys, heap_slots, state, output, seed, work, BEST, values, round_, 1)
    following = min(following, after_output)
    if following < NEVER:
        add_seed(nodes, rows, heap_keys, heap_slots, state, node, seed, following)


@jit
def send_group(
    nodes, targets, program, batches, rows, heads, heap_keys, heap_slots, stack, state, node, group, n, work, key,
    ranges,
):  # fmt: skip
    """Send the rows of a round that a node has collected."""
    lanes = nodes[node, LANES]
    first = nodes[node, FIRST_TARGET]
    for place in range(first, first + nodes[node, TARGETS]):
        target, side = targets[place, 0], targets[place, 1]
        kind = nodes[target, KIND]
        for number in range(n):
            slot = group[number]
            if kind == JOIN:
                join_row(
                    nodes, targets, program, batches, rows, heads, heap_keys, heap_slots, stack, state, target, side,
                    slot, work, key, ranges,
                )  # fmt: skip
            elif kind == REDUCE:
                if number == 0 or not is_of_key(rows, group[number - 1], node, slot, nodes[target, KEY_LANES]):
                    add_seed(nodes, rows, heap_keys, heap_slots, state, target, slot, rows[slot, ROUND])
            else:
                copy = new_row(rows, state)
                if copy == NO_ROW:
                    return
                rows[copy, NODE] = target
                rows[copy, ROUND] = rows[slot, ROUND]
                rows[copy, DIFF] = rows[slot, DIFF]
                for lane in range(lanes):
                    rows[copy, FIELDS + lane] = rows[slot, FIELDS + lane]
                state[EMITTED] += 1
                if kind == COLLECT or kind == ENTERED:
                    push_heap(heap_keys, heap_slots, state, rows[slot, ROUND] * nodes.shape[0] + target, copy)
                else:
                    stack[state[STACK_SIZE]] = copy
                    state[STACK_SIZE] += 1
            if state[STATUS] != DONE:
                return
        if kind == JOIN:
            state[COUNTERS + 2 * target + side] = state[SERIALS]


@jit
def run_rounds(
    nodes, targets, program, batches, rows, heads, heap_keys, heap_slots, stack, group, spare, state, work, key,
    ranges, cursors, budget,
):  # fmt: skip
    """Process rows, round by round, until none is on its way."""
    end = state[VISITED] + budget
    while True:
        pass_on(nodes, targets, program, rows, heap_keys, heap_slots, stack, state, work)
        if state[STATUS] != DONE:
            return state[STATUS]
        if state[EMITTED] > SPARE_EMITTED + MAX_ROWS_PER_GROUP * state[GROUPS]:
            return ABANDONED
        if state[HEAP_SIZE] == 0:
            return DONE
        if 2 * state[FREE_ROWS] < rows.shape[0]:
            return GROW
        if state[VISITED] >= end:
            return PAUSED
        least = heap_keys[0]
        n = 0
        while state[HEAP_SIZE] > 0 and heap_keys[0] == least:
            group[n] = pop_heap(heap_keys, heap_slots, state)
            n += 1
        state[GROUPS] += 1
        state[VISITED] += n
        emitted = state[EMITTED]
        node = rows[group[0], NODE]
        if nodes[node, KIND] == REDUCE:
            n = sum_group(rows, state, group, spare, n, nodes[node, KEY_LANES], 1)  # each key once: diffs are positive
            for number in range(n):
                reduce_key(
                    nodes, batches, rows, heads, heap_keys, heap_slots, state, node, group[number], work, key, ranges,
                    cursors,
                )  # fmt: skip
                free_row(rows, state, group[number])
        else:
            n = sum_group(rows, state, group, spare, n, nodes[node, LANES], nodes[node, WIDTH])
            if nodes[node, HAS_TRACE]:
                for number in range(n):
                    rows[group[number], SERIAL] = state[SERIALS]
                    state[SERIALS] += 1
                    add_to_index(rows, heads, group[number], node, nodes[node, KEY_LANES])
            send_group(
                nodes, targets, program, batches, rows, heads, heap_keys, heap_slots, stack, state, node, group, n,
                work, key, ranges,
            )  # fmt: skip
            if not nodes[node, HAS_TRACE]:
                for number in range(n):
                    free_row(rows, state, group[number])
        if state[EMITTED] - emitted > MAX_GROUP_ROWS:
            return ABANDONED


@jit
def load_rows(nodes, rows, heap_keys, heap_slots, stack, state, node, data, rounds, diffs):
    """Put rows on their way to a node; `rounds` and `diffs` are one number, or one for each row."""
    kind = nodes[node, KIND]
    for column in range(data.shape[1]):
        slot = new_row(rows, state)
        if slot == NO_ROW:
            return
        rows[slot, NODE] = node
        rows[slot, ROUND] = rounds[column if len(rounds) > 1 else 0]
        at_diff = DIFF if diffs.shape[0] == 1 else FIELDS + data.shape[0]
        for lane in range(data.shape[0]):
            rows[slot, FIELDS + lane] = data[lane, column]
        for lane in range(diffs.shape[0]):
            rows[slot, at_diff + lane] = diffs[lane, column if diffs.shape[1] > 1 else 0]
            if abs(rows[slot, at_diff + lane]) > MAX_DIFF:
                abandon(state)
        if kind == COLLECT or kind == ENTERED or kind == REDUCE:
            push_heap(heap_keys, heap_slots, state, rows[slot, ROUND] * nodes.shape[0] + node, slot)
        else:
            stack[state[STACK_SIZE]] = slot
            state[STACK_SIZE] += 1


@jit
def count_rows(rows, used, counts):
    """Count the rows of each node that are left after a run."""
    for slot in range(used):
        if rows[slot, NODE] != NO_ROW:
            counts[rows[slot, NODE]] += 1


@jit
def take_rows(rows, used, node, data, rounds, diffs):
    """Write the rows of a node that are left after a run, in any order."""
    n = 0
    for slot in range(used):
        if rows[slot, NODE] == node:
            for lane in range(data.shape[0]):
                data[lane, n] = rows[slot, FIELDS + lane]
            rounds[n] = rows[slot, ROUND]
            at_diff = DIFF if diffs.shape[0] == 1 else FIELDS + data.shape[0]
            for lane in range(diffs.shape[0]):
                diffs[lane, n] = rows[slot, at_diff + lane]
            n += 1


@jit
def clear_rows(nodes, rows, used, heads):
    """Remove all rows from the index."""
    if 4 * used > len(heads):
        heads[:] = NO_ROW
        return
    for slot in range(used):
        node = rows[slot, NODE]
        if node != NO_ROW:
            heads[bucket_of(rows, slot, node, nodes[node, KEY_LANES], len(heads))] = NO_ROW


@jit
def index_rows(nodes, rows, used, heads):
    """Fill an empty index with the rows of all traces, oldest first, so that chains are in the same order."""
    for slot in range(used):
        node = rows[slot, NODE]
        if node != NO_ROW and nodes[node, HAS_TRACE] and rows[slot, SERIAL] != NO_ROW:
            add_to_index(rows, heads, slot, node, nodes[node, KEY_LANES])


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield run_rounds, (
        TABLE, TABLE, COLUMN, TABLE, TABLE, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, COLUMN, TABLE, TABLE,
        COLUMN, COLUMN, NUMBER,
    )  # fmt: skip
    yield load_rows, (TABLE, TABLE, COLUMN, COLUMN, COLUMN, COLUMN, NUMBER, TABLE, COLUMN, TABLE)
    yield count_rows, (TABLE, NUMBER, COLUMN)
    yield take_rows, (TABLE, NUMBER, NUMBER, TABLE, COLUMN, TABLE)
    yield clear_rows, (TABLE, TABLE, NUMBER, COLUMN)
    yield index_rows, (TABLE, TABLE, NUMBER, COLUMN)
