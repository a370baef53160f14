"""The rows of a small loop: rows on their way, rows of traces, a heap of what comes next, and an index by key.

All rows are in one block, `rows` int64[capacity, FIELDS + lanes]. A row whose diff has several lanes (`width`) has them
after its data, and DIFF has no meaning. A row is used as

    on its way   to a node that collects the rows of a round: in the heap, by (round, position of the node)
    on the stack to a node that passes each row on at once
    in a trace   of a node, from the moment its round was processed: in the index, by node and key
    free         in a list

`state` int64[…] has the counters. If the block is full or the loop is not small, STATUS becomes ABANDONED, and the
caller forgets the run: nothing outside these arrays has changed. Used by kpg.kernels.run_rounds; its twin is the
general loop.
"""

from kpg.kernels.jit import inlined, jit

NEXT, NODE, ROUND, DIFF, SERIAL = range(5)  # fields of a row; its lanes follow
FIELDS = 5

# counters; ENDLESS is the node that has reached its limit of rounds
FREE, FREE_ROWS, USED, HEAP_SIZE, STACK_SIZE, SERIALS, STATUS, EMITTED, GROUPS, VISITED, ENDLESS = range(11)
COUNTERS = 11

DONE, PAUSED, GROW, ABANDONED, TOO_MANY_ROUNDS = 0, 1, 2, 3, 4  # of a run

NO_ROW = -1
MAX_GROUP_ROWS = 4096  # that one node may emit in a round: with more, the general path is faster
SPARE_EMITTED = 1 << 14  # rows that a run may emit in rounds of any size
MAX_ROWS_PER_GROUP = 64  # on average, beyond these
MAX_DIFF = 1 << 61  # of a row: sums of two fit 64 bits


@inlined
def abandon(state):
    """Give the run up."""
    state[STATUS] = ABANDONED


@inlined
def new_row(rows, state):
    """Return a free row, or NO_ROW if there is none."""
    slot = state[FREE]
    if slot != NO_ROW:
        state[FREE] = rows[slot, NEXT]
    else:
        slot = state[USED]
        if slot == rows.shape[0]:
            state[STATUS] = ABANDONED
            return NO_ROW
        state[USED] = slot + 1
    state[FREE_ROWS] -= 1
    rows[slot, SERIAL] = NO_ROW
    return slot


@inlined
def free_row(rows, state, slot):
    """Return a row to the list of free rows."""
    rows[slot, NODE] = NO_ROW
    rows[slot, NEXT] = state[FREE]
    state[FREE] = slot
    state[FREE_ROWS] += 1


@jit
def push_heap(keys, slots, state, key, slot):
    """Add a row to the heap."""
    place = state[HEAP_SIZE]
    state[HEAP_SIZE] = place + 1
    while place > 0:
        parent = (place - 1) >> 1
        if keys[parent] <= key:
            break
        keys[place] = keys[parent]
        slots[place] = slots[parent]
        place = parent
    keys[place] = key
    slots[place] = slot


@jit
def pop_heap(keys, slots, state):
    """Remove and return the row with the least key."""
    least = slots[0]
    size = state[HEAP_SIZE] - 1
    state[HEAP_SIZE] = size
    key, slot = keys[size], slots[size]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[place] = keys[child]
        slots[place] = slots[child]
        place = child
    keys[place] = key
    slots[place] = slot
    return least


@inlined
def compare_lanes_of(rows, a, b, lanes):
    """Return a negative number, 0 or a positive one: how two rows compare by their first lanes."""
    for lane in range(FIELDS, FIELDS + lanes):
        if rows[a, lane] != rows[b, lane]:
            return -1 if rows[a, lane] < rows[b, lane] else 1
    return 0


@jit
def sort_group(rows, group, spare, n, lanes):
    """Sort the first n rows of a group by their lanes; `spare` is as long."""
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            end = min(start + 2 * width, n)
            left, right, place = start, middle, start
            while left < middle or right < end:
                if right == end or (left < middle and compare_lanes_of(rows, group[left], group[right], lanes) <= 0):
                    spare[place] = group[left]
                    left += 1
                else:
                    spare[place] = group[right]
                    right += 1
                place += 1
        for place in range(n):
            group[place] = spare[place]
        width *= 2


@inlined
def add_diff(rows, state, slot, other, lanes, width):
    """Add the diff of one row to that of another."""
    first = DIFF if width == 1 else FIELDS + lanes
    for lane in range(first, first + width):
        rows[slot, lane] += rows[other, lane]
        if abs(rows[slot, lane]) > MAX_DIFF:
            abandon(state)


@inlined
def is_zero(rows, slot, lanes, width):
    """Return whether the diff of a row is zero."""
    first = DIFF if width == 1 else FIELDS + lanes
    for lane in range(first, first + width):
        if rows[slot, lane] != 0:
            return False
    return True


@jit
def sum_group(rows, state, group, spare, n, lanes, width):
    """Sort a group and add the diffs of equal rows; free the others and the zeros. Return the number of rows left."""
    if n > 1:
        sort_group(rows, group, spare, n, lanes)
    kept = 0
    place = 0
    while place < n:
        slot = group[place]
        place += 1
        while place < n and compare_lanes_of(rows, slot, group[place], lanes) == 0:
            add_diff(rows, state, slot, group[place], lanes, width)
            free_row(rows, state, group[place])
            place += 1
        if is_zero(rows, slot, lanes, width):
            free_row(rows, state, slot)
        else:
            group[kept] = slot
            kept += 1
    return kept


@inlined
def bucket_of(rows, slot, node, key_lanes, buckets):
    """Return the bucket of a node's row in the index, by its key."""
    word = node
    for lane in range(FIELDS, FIELDS + key_lanes):
        word = (word ^ rows[slot, lane]) * 0x2545F4914F6CDD1D
        word ^= (word >> 29) & 0x7FFFFFFFF
    return word & (buckets - 1)


@inlined
def is_of_key(rows, row, node, slot, key_lanes):
    """Return whether a row belongs to the trace of a node and has the key of the row at `slot`."""
    if rows[row, NODE] != node:
        return False
    for lane in range(FIELDS, FIELDS + key_lanes):
        if rows[row, lane] != rows[slot, lane]:
            return False
    return True


@inlined
def add_to_index(rows, heads, slot, node, key_lanes):
    """Add a row to the index."""
    bucket = bucket_of(rows, slot, node, key_lanes, len(heads))
    rows[slot, NEXT] = heads[bucket]
    heads[bucket] = slot
