"""Maintain the least value of each pair of a group and a node, where all groups share the edges of one graph.

    key(g, v)  =  min ( { (s, 0) : s a start value of (g, v) }
                        ∪  { key(g, u) + (w, 1) : an edge from u to v of weight w } )

A key is a pair of value and hops, as in `kpg.kernels.least_keys`, and the phases of an update are the same. An edge
that appears or disappears is one in each group that has its start. Only pairs that were reached have a row in `pairs`:
GROUP, NODE, their key, the number of their list of start values (START), and the next pair of the same node (NEXT),
from `heads[node]` on. Row 0 is not used.

A group has a region of `pool`, which is a hash table of its pairs by node, so the pairs of a group lie close together
and are found without a look at others. A region that has more slots than the graph has nodes is indexed by node. A full
region moves to the free end of the pool, with twice the slots.

`update_pairs` runs the phases; the groups of new start values are settled one after the other. It returns when it has
visited `budget` entries, and when an array is full: `state` then has the rows that it needs. `events` has the changed
edges, and from FIRST_START on the changed start values, whose TARGET is a pair, by group. Keys must be unset before an
update if a weight is negative. Cost: linear in the entries of the pairs whose keys change, times the logarithm of their
number, and the groups that have the start of a changed edge.
Twin: kpg.testing.kernel_twins.pair_keys_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.least_keys import is_less, leaves_64_bits, pop, push, touch, weight_at
from kpg.kernels.neighbour_lists import (
    APPEARS,
    EVENT_COUNT,
    HEAP_SIZE,
    HOPS,
    IN,
    LOW,
    MARK,
    NODE_COUNT,
    NODES,
    OUT,
    OVERFLOWED,
    PHASE,
    POSITION,
    SIZE,
    SOURCE,
    STATE_SIZE,
    TARGET,
    TOUCHED_COUNT,
    VALUE,
    WEIGHT,
)
from kpg.kernels.neighbour_lists import START as STARTS
from kpg.kernels.partition_rows import mix

GROUP = 3  # columns of `pairs`, after VALUE, HOPS and MARK
NODE = 4
NEXT = 5
START = 6
PAIR_COLUMNS = 7

REGION_LOW = 0  # columns of `groups`: the region of a group in the pool
REGION_SIZE = 1  # a power of two; 0 if it has none yet
PAIRS = 2  # the pairs in it
IS_INDEXED = 3  # whether a node's slot is its number
GROUP_COLUMNS = 4
MIN_REGION = 4

PAIR_COUNT = STATE_SIZE  # elements of `state`, after those of `neighbour_lists`
POOL_TAIL = STATE_SIZE + 1
CHAIN = STATE_SIZE + 2  # the next pair to visit of the start of an event; 0: the first
FIRST_START = STATE_SIZE + 3  # the first event of a start value
NEEDED_PAIRS = STATE_SIZE + 4  # rows that the arrays need at least
NEEDED_POOL = STATE_SIZE + 5
NEEDED_HEAP = STATE_SIZE + 6
NEEDED_TOUCHED = STATE_SIZE + 7
PAIR_STATE_SIZE = STATE_SIZE + 8

SUSPECT_EVENTS = 0  # phases, as in `least_keys`
CHECK_SUSPECTS = 1
SUPPORT_AFFECTED = 2
FRESH_EVENTS = 3
SETTLE = 4
DONE = 5  # also the result of a finished call
LACKS_ROOM = 6  # results of a call that has to be repeated
PAUSED = 7
TOO_MANY_ROUNDS = 8


# Pairs


@jit
def slot_of(group, node, pairs, groups, pool):
    """Return the slot of a pair in the pool, or the one where it belongs. The region must have a free slot."""
    low = groups[group, REGION_LOW]
    mask = groups[group, REGION_SIZE] - 1
    at = node & mask
    if groups[group, IS_INDEXED] == 0:
        at = np.int64(mix(np.uint64(node)) >> np.uint64(1)) & mask
    while pool[low + at] != 0 and pairs[pool[low + at], NODE] != node:
        at = (at + 1) & mask
    return low + at


@jit
def find_pair(group, node, pairs, groups, pool):
    """Return the number of a pair; 0 if there is none."""
    if groups[group, REGION_SIZE] == 0:
        return np.int64(0)
    return np.int64(pool[slot_of(group, node, pairs, groups, pool)])


@jit
def has_room(group, more, pairs, groups, pool, state):
    """Return whether there is room for more pairs of a group; its region is moved if it is too small."""
    count = groups[group, PAIRS]
    more = min(more, state[NODE_COUNT] - count)
    if state[PAIR_COUNT] + more > pairs.shape[0]:
        state[NEEDED_PAIRS] = state[PAIR_COUNT] + more
        return False
    size = groups[group, REGION_SIZE]
    if 2 * (count + more) <= size or state[NODE_COUNT] < size:
        return True
    wanted = max(np.int64(MIN_REGION), size)
    while wanted < 2 * (count + more) and wanted <= state[NODE_COUNT]:
        wanted *= 2
    if state[POOL_TAIL] + wanted > pool.shape[0]:
        state[NEEDED_POOL] = state[POOL_TAIL] + wanted
        return False
    before = groups[group, REGION_LOW]
    groups[group, REGION_LOW] = state[POOL_TAIL]
    groups[group, REGION_SIZE] = wanted
    groups[group, IS_INDEXED] = 1 if wanted > state[NODE_COUNT] else 0
    state[POOL_TAIL] += wanted
    for slot in range(before, before + size):
        if pool[slot] != 0:
            pool[slot_of(group, pairs[pool[slot], NODE], pairs, groups, pool)] = pool[slot]
    return True


@jit
def find_or_add(group, node, pairs, groups, pool, heads, state):
    """Return the number of a pair, which is added if it is new. There must be room for it."""
    slot = slot_of(group, node, pairs, groups, pool)
    pair = np.int64(pool[slot])
    if pair == 0:
        pair = state[PAIR_COUNT]
        state[PAIR_COUNT] = pair + 1
        pool[slot] = pair
        groups[group, PAIRS] += 1
        pairs[pair, HOPS] = -1
        pairs[pair, MARK] = 0
        pairs[pair, GROUP] = group
        pairs[pair, NODE] = node
        pairs[pair, NEXT] = heads[node]
        pairs[pair, START] = 0
        heads[node] = pair
    return pair


@jit
def number_pairs(of_groups, of_nodes, start, pairs, groups, pool, heads, numbers, state):
    """Write the number of each pair from `start` on; return the position of the first one without room."""
    for i in range(start, of_groups.shape[0]):
        if not has_room(of_groups[i], 1, pairs, groups, pool, state):
            return i
        numbers[i] = find_or_add(of_groups[i], np.int64(of_nodes[i]), pairs, groups, pool, heads, state)
    return of_groups.shape[0]


# Phases


@jit
def can_push(more, heap, state):
    """Return whether the heap has room for more pairs; note how much it needs."""
    if state[HEAP_SIZE] + more <= heap.shape[0]:
        return True
    state[NEEDED_HEAP] = state[HEAP_SIZE] + more
    return False


@jit
def can_touch(more, touched, state):
    """Return whether more pairs may change; note how many rows `touched` needs."""
    if state[TOUCHED_COUNT] + more <= touched.shape[0]:
        return True
    state[NEEDED_TOUCHED] = state[TOUCHED_COUNT] + more
    return False


@jit
def propose(pair, value, hops, pairs, touched, heap, state):
    """Give a pair a key if it is less than its own."""
    if pairs[pair, HOPS] < 0 or is_less(value, hops, pairs[pair, VALUE], pairs[pair, HOPS]):
        touch(pair, pairs, touched, state)
        pairs[pair, VALUE] = value
        pairs[pair, HOPS] = hops
        push(heap, state, value, hops, pair)


@jit
def follows(pair, source, weight, pairs):
    """Return whether the key of a pair is that of another one and an edge from there."""
    return (
        pairs[source, HOPS] >= 0
        and pairs[pair, HOPS] == pairs[source, HOPS] + 1
        and not leaves_64_bits(pairs[source, VALUE], weight)
        and pairs[source, VALUE] + weight == pairs[pair, VALUE]
    )


@jit
def suspect_events(pairs, groups, pool, heads, events, heap, state, budget):
    """Suspect the pairs whose keys may follow from a start value or an edge that has disappeared."""
    visited = 0
    while state[POSITION] < state[EVENT_COUNT]:
        i = state[POSITION]
        target = events[i, TARGET]
        weight = events[i, WEIGHT]
        if events[i, APPEARS] == 0 and events[i, SOURCE] == 0:
            if not can_push(1, heap, state):
                return LACKS_ROOM
            if pairs[target, HOPS] == 0 and pairs[target, VALUE] == weight:
                push(heap, state, weight, np.int64(0), target)
        elif events[i, APPEARS] == 0:
            source = state[CHAIN] if state[CHAIN] != 0 else np.int64(heads[events[i, SOURCE]])
            while source != 0:
                state[CHAIN] = source
                if visited > budget:
                    return PAUSED
                if not can_push(1, heap, state):
                    return LACKS_ROOM
                visited += 1
                if pairs[source, HOPS] >= 0:
                    pair = find_pair(pairs[source, GROUP], target, pairs, groups, pool)
                    if pair != 0 and follows(pair, source, weight, pairs):
                        push(heap, state, pairs[pair, VALUE], pairs[pair, HOPS], pair)
                source = pairs[source, NEXT]
            state[CHAIN] = 0
        state[POSITION] = i + 1
    return DONE


@jit
def is_supported(pair, pairs, groups, pool, lists, in_nodes, in_weights, start_lists, start_values, step):
    """Return whether the key of a pair follows from a start value or from an edge."""
    if pairs[pair, HOPS] == 0:
        low = start_lists[pairs[pair, START], STARTS + LOW]
        for slot in range(low, low + start_lists[pairs[pair, START], STARTS + SIZE]):
            if start_values[slot] == pairs[pair, VALUE]:
                return True
        return False
    low = lists[pairs[pair, NODE], IN + LOW]
    for slot in range(low, low + lists[pairs[pair, NODE], IN + SIZE]):
        source = find_pair(pairs[pair, GROUP], np.int64(in_nodes[slot]), pairs, groups, pool)
        if source != 0 and follows(pair, source, weight_at(in_weights, slot, step), pairs):
            return True
    return False


@jit
def check_suspects(
    pairs, groups, pool, lists, in_nodes, in_weights, out_kind, out_nodes, out_weights, start_lists, start_values,
    touched, heap, state, step, budget,
):  # fmt: skip
    """Unset the keys that nothing supports, in ascending order."""
    visited = 0
    while state[HEAP_SIZE] > 0:
        if visited > budget:
            return PAUSED
        value = heap[0, 0]
        hops = heap[0, 1]
        pair = heap[0, 2]
        node = pairs[pair, NODE]
        size = lists[node, out_kind + SIZE]
        if not can_push(size, heap, state) or not can_touch(1, touched, state):
            return LACKS_ROOM
        pop(heap, state)
        if pairs[pair, HOPS] < 0:
            continue
        visited += 1 + lists[node, IN + SIZE]
        if is_supported(pair, pairs, groups, pool, lists, in_nodes, in_weights, start_lists, start_values, step):
            continue
        touch(pair, pairs, touched, state)
        pairs[pair, HOPS] = -1
        visited += size
        low = lists[node, out_kind + LOW]
        for slot in range(low, low + size):
            other = find_pair(pairs[pair, GROUP], np.int64(out_nodes[slot]), pairs, groups, pool)
            if other != 0 and pairs[other, HOPS] == hops + 1:
                weight = weight_at(out_weights, slot, step)
                if not leaves_64_bits(value, weight) and pairs[other, VALUE] == value + weight:
                    push(heap, state, value + weight, hops + 1, other)
    return DONE


@jit
def support_affected(
    pairs, groups, pool, lists, in_nodes, in_weights, start_lists, start_values, touched, heap, state, step, budget
):
    """Give each pair without a key the least one that its start values and edges give now."""
    visited = 0
    while state[POSITION] < state[TOUCHED_COUNT]:
        if visited > budget:
            return PAUSED
        if not can_push(1, heap, state):
            return LACKS_ROOM
        pair = touched[state[POSITION], 0]
        state[POSITION] += 1
        if pairs[pair, HOPS] >= 0:
            continue
        best_value = np.int64(0)
        best_hops = np.int64(-1)
        low = start_lists[pairs[pair, START], STARTS + LOW]
        for slot in range(low, low + start_lists[pairs[pair, START], STARTS + SIZE]):
            if best_hops < 0 or start_values[slot] < best_value:
                best_value = start_values[slot]
                best_hops = np.int64(0)
        low = lists[pairs[pair, NODE], IN + LOW]
        size = lists[pairs[pair, NODE], IN + SIZE]
        visited += 1 + size
        for slot in range(low, low + size):
            source = find_pair(pairs[pair, GROUP], np.int64(in_nodes[slot]), pairs, groups, pool)
            if source != 0 and pairs[source, HOPS] >= 0:
                weight = weight_at(in_weights, slot, step)
                if leaves_64_bits(pairs[source, VALUE], weight):
                    state[OVERFLOWED] = 1
                    continue
                value = pairs[source, VALUE] + weight
                hops = pairs[source, HOPS] + 1
                if best_hops < 0 or is_less(value, hops, best_value, best_hops):
                    best_value = value
                    best_hops = hops
        if best_hops >= 0:
            pairs[pair, VALUE] = best_value
            pairs[pair, HOPS] = best_hops
            push(heap, state, best_value, best_hops, pair)
    return DONE


@jit
def fresh_events(pairs, groups, pool, heads, events, touched, heap, state, budget):
    """Propose the keys that new edges give, in all groups that have their start."""
    visited = 0
    while state[POSITION] < state[FIRST_START]:
        i = state[POSITION]
        weight = events[i, WEIGHT]
        if events[i, APPEARS] == 1:
            source = state[CHAIN] if state[CHAIN] != 0 else np.int64(heads[events[i, SOURCE]])
            while source != 0:
                state[CHAIN] = source
                if visited > budget:
                    return PAUSED
                group = pairs[source, GROUP]
                if not (
                    can_push(1, heap, state)
                    and can_touch(1, touched, state)
                    and has_room(group, 1, pairs, groups, pool, state)
                ):
                    return LACKS_ROOM
                visited += 1
                if pairs[source, HOPS] >= 0 and leaves_64_bits(pairs[source, VALUE], weight):
                    state[OVERFLOWED] = 1
                elif pairs[source, HOPS] >= 0:
                    pair = find_or_add(group, events[i, TARGET], pairs, groups, pool, heads, state)
                    value = pairs[source, VALUE] + weight
                    propose(pair, value, pairs[source, HOPS] + 1, pairs, touched, heap, state)
                source = pairs[source, NEXT]
            state[CHAIN] = 0
        state[POSITION] = i + 1
    return DONE


@jit
def propose_starts(pairs, events, touched, heap, state):
    """Propose the new start values of the next group; return False if there is no room for one."""
    group = pairs[events[state[POSITION], TARGET], GROUP]
    while state[POSITION] < state[EVENT_COUNT]:
        i = state[POSITION]
        if pairs[events[i, TARGET], GROUP] != group:
            return True
        if not can_push(1, heap, state) or not can_touch(1, touched, state):
            return False
        if events[i, APPEARS] == 1:
            propose(events[i, TARGET], events[i, WEIGHT], np.int64(0), pairs, touched, heap, state)
        state[POSITION] = i + 1
    return True


@jit
def settle(
    pairs, groups, pool, heads, lists, out_kind, out_nodes, out_weights, events, touched, heap, state, step, max_hops,
    budget,
):  # fmt: skip
    """Propose keys along the edges of the pairs with new keys, in ascending order; then the same from new starts."""
    visited = 0
    while True:
        if visited > budget:
            return PAUSED
        if state[HEAP_SIZE] == 0:
            if state[POSITION] == state[EVENT_COUNT]:
                return DONE
            if not propose_starts(pairs, events, touched, heap, state):
                return LACKS_ROOM
            visited += 1
            continue
        value = heap[0, 0]
        hops = heap[0, 1]
        pair = heap[0, 2]
        group = pairs[pair, GROUP]
        node = pairs[pair, NODE]
        size = lists[node, out_kind + SIZE]
        if not (
            can_push(size, heap, state)
            and can_touch(size, touched, state)
            and has_room(group, size, pairs, groups, pool, state)
        ):
            return LACKS_ROOM
        pop(heap, state)
        if pairs[pair, HOPS] != hops or pairs[pair, VALUE] != value:
            continue
        if hops > max_hops:
            return TOO_MANY_ROUNDS
        visited += 1 + size
        low = lists[node, out_kind + LOW]
        for slot in range(low, low + size):
            weight = weight_at(out_weights, slot, step)
            if leaves_64_bits(value, weight):
                state[OVERFLOWED] = 1
            else:
                other = find_or_add(group, np.int64(out_nodes[slot]), pairs, groups, pool, heads, state)
                propose(other, value + weight, hops + 1, pairs, touched, heap, state)


@jit
def update_pairs(
    pairs, groups, pool, heads, lists, in_nodes, in_weights, out_nodes, out_weights, start_lists, start_values,
    events, touched, heap, state, step, max_hops, budget,
):  # fmt: skip
    """Run the phases from the present one on, until the end or until one cannot go on; return why."""
    out_kind = OUT if out_nodes.shape[0] > 1 else IN
    others = out_nodes if out_nodes.shape[0] > 1 else in_nodes
    other_weights = out_weights if out_nodes.shape[0] > 1 else in_weights
    while state[PHASE] != DONE:
        phase = state[PHASE]
        result = DONE
        if phase == SUSPECT_EVENTS:
            result = suspect_events(pairs, groups, pool, heads, events, heap, state, budget)
        elif phase == CHECK_SUSPECTS:
            result = check_suspects(
                pairs, groups, pool, lists, in_nodes, in_weights, out_kind, others, other_weights, start_lists,
                start_values, touched, heap, state, step, budget,
            )  # fmt: skip
        elif phase == SUPPORT_AFFECTED:
            result = support_affected(
                pairs, groups, pool, lists, in_nodes, in_weights, start_lists, start_values, touched, heap, state,
                step, budget,
            )  # fmt: skip
        elif phase == FRESH_EVENTS:
            result = fresh_events(pairs, groups, pool, heads, events, touched, heap, state, budget)
        else:
            result = settle(
                pairs, groups, pool, heads, lists, out_kind, others, other_weights, events, touched, heap, state, step,
                max_hops, budget,
            )  # fmt: skip
        if result != DONE:
            return result
        state[PHASE] = phase + 1
        state[POSITION] = state[FIRST_START] if phase + 1 == SETTLE else 0
    return DONE


@jit
def write_pair_changes(touched, pairs, only_presence, data, diffs, state):
    """Write group, node and value of the changed rows of the touched pairs, and forget these; return their number."""
    n = 0
    for i in range(state[TOUCHED_COUNT]):
        pair = touched[i, 0]
        pairs[pair, MARK] = 0
        was = touched[i, 2] >= 0
        now = pairs[pair, HOPS] >= 0
        if was == now and (not was or only_presence or touched[i, 1] == pairs[pair, VALUE]):
            continue
        for side in range(2):
            if was if side == 0 else now:
                data[0, n] = pairs[pair, GROUP]
                data[1, n] = pairs[pair, NODE]
                data[2, n] = touched[i, 1] if side == 0 else pairs[pair, VALUE]
                diffs[0, n] = -1 if side == 0 else 1
                n += 1
    state[TOUCHED_COUNT] = 0
    return n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    of_pairs = (TABLE, TABLE, NODES, NODES)
    yield number_pairs, (COLUMN, NODES, NUMBER, *of_pairs, COLUMN, COLUMN)
    graph = (TABLE, NODES, COLUMN, NODES, COLUMN, TABLE, COLUMN)
    yield update_pairs, (*of_pairs, *graph, TABLE, TABLE, TABLE, COLUMN, NUMBER, NUMBER, NUMBER)
    yield write_pair_changes, (TABLE, TABLE, NUMBER, TABLE, TABLE, COLUMN)
