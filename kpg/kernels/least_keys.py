"""Maintain the least value of each node of a graph whose edges change.

    key(v)  =  min ( { (s, 0) : s a start value of v }  ∪  { key(u) + (w, 1) : an edge from u to v of weight w } )

A key is a pair of value and hops, compared in this order. No weight is negative, so a key is greater than the key that
it follows from, even on a cycle of weight 0: keys are distances, and nodes cannot support each other in a circle.

`update_values` changes the keys after edges have appeared and disappeared (`events`), in five phases:

    SUSPECT_EVENTS     a node is a suspect if its key may follow from an edge that has disappeared
    CHECK_SUSPECTS     in ascending order of keys: a suspect that no edge supports loses its key, and the nodes that may
                       follow from it become suspects. All lesser keys are final, so one look at its edges decides.
    SUPPORT_AFFECTED   a node without a key gets the least one that its remaining edges give
    FRESH_EVENTS       a new edge may give its end a lesser key
    SETTLE             Dijkstra's algorithm from all nodes with a new key

It returns when it has visited `budget` entries, and continues when it is called again. `derive_uniform` computes all
keys if all weights are equal, with a queue instead of a heap, and `derive_by_buckets` if no weight is 0. Cost: linear
in the entries of the nodes whose keys change, times the logarithm of their number. If a weight is negative, the caller
must unset all keys before each update.
Twin: kpg.testing.kernel_twins.least_keys_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.array_address import prefetch
from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.neighbour_lists import (
    APPEARS,
    EVENT_COUNT,
    HEAP_SIZE,
    HOPS,
    IN,
    LOW,
    MARK,
    MAX_INT64,
    MIN_INT64,
    NODES,
    OUT,
    OVERFLOWED,
    PHASE,
    POSITION,
    QUEUE_HEAD,
    QUEUE_TAIL,
    SIZE,
    SOURCE,
    START,
    TARGET,
    TOUCHED_COUNT,
    VALUE,
    WEIGHT,
)

SUSPECT_EVENTS = 0
CHECK_SUSPECTS = 1
SUPPORT_AFFECTED = 2
FRESH_EVENTS = 3
SETTLE = 4
DONE = 5  # also the result of a finished call
HEAP_IS_FULL = 6  # results of a call that has to be repeated
PAUSED = 7
TOO_MANY_ROUNDS = 8

BUCKET = 0  # elements of `progress`: the number of the current bucket
WAITING = 1  # nodes in buckets
NEXT_START = 2
USED = 3  # blocks so far
FREE = 4  # the first block that may be used again; -1 if there is none
PROGRESS_SIZE = 5

NEXT = 0  # columns of `blocks`, of which each is a cache line of 64 bytes: the next block of the bucket, or -1
COUNT = 1  # of the nodes in the block
FIRST_NODE = 2
BLOCK_NODES = 14
BLOCKS = np.zeros((1, FIRST_NODE + BLOCK_NODES), np.int32)  # an example

KEYS_AT, LISTS_AT, NODES_AT, WEIGHTS_AT = range(4)  # elements of `addresses`
AHEAD = 8  # nodes of a queue between two steps in which they are looked at
MAX_REQUESTS = 16  # of the entries of one node


@inlined
def is_less(value, hops, other_value, other_hops):
    """Return whether a key is less than another."""
    return value < other_value or (value == other_value and hops < other_hops)


@inlined
def leaves_64_bits(value, weight):
    """Return whether a sum is no 64-bit number."""
    return (weight > 0 and value > MAX_INT64 - weight) or (weight < 0 and value < MIN_INT64 - weight)


@inlined
def weight_at(weights, slot, step):
    """Return the weight of an entry."""
    return weights[slot] if weights.shape[0] > 1 else step


@jit
def push(heap, state, value, hops, node):
    """Add a node with a key to the heap."""
    at = state[HEAP_SIZE]
    state[HEAP_SIZE] = at + 1
    while at > 0:
        above = (at - 1) >> 1
        if not is_less(value, hops, heap[above, 0], heap[above, 1]):
            break
        heap[at, 0] = heap[above, 0]
        heap[at, 1] = heap[above, 1]
        heap[at, 2] = heap[above, 2]
        at = above
    heap[at, 0] = value
    heap[at, 1] = hops
    heap[at, 2] = node


@jit
def pop(heap, state):
    """Remove the node with the least key."""
    n = state[HEAP_SIZE] - 1
    state[HEAP_SIZE] = n
    value = heap[n, 0]
    hops = heap[n, 1]
    node = heap[n, 2]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= n:
            break
        if below + 1 < n and is_less(heap[below + 1, 0], heap[below + 1, 1], heap[below, 0], heap[below, 1]):
            below += 1
        if not is_less(heap[below, 0], heap[below, 1], value, hops):
            break
        heap[at, 0] = heap[below, 0]
        heap[at, 1] = heap[below, 1]
        heap[at, 2] = heap[below, 2]
        at = below
    heap[at, 0] = value
    heap[at, 1] = hops
    heap[at, 2] = node


@inlined
def touch(node, keys, touched, state):
    """Note the key of a node before it changes for the first time in this update."""
    if keys[node, MARK] == 0:
        keys[node, MARK] = 1
        n = state[TOUCHED_COUNT]
        touched[n, 0] = node
        touched[n, 1] = keys[node, VALUE]
        touched[n, 2] = keys[node, HOPS]
        state[TOUCHED_COUNT] = n + 1


@jit
def propose(node, value, hops, keys, touched, heap, state):
    """Give a node a key if it is less than its own."""
    if keys[node, HOPS] < 0 or is_less(value, hops, keys[node, VALUE], keys[node, HOPS]):
        touch(node, keys, touched, state)
        keys[node, VALUE] = value
        keys[node, HOPS] = hops
        push(heap, state, value, hops, node)


@jit
def suspect_events(keys, events, heap, state):
    """Suspect the ends of the edges that have disappeared and that their keys may follow from."""
    while state[POSITION] < state[EVENT_COUNT]:
        if state[HEAP_SIZE] == heap.shape[0]:
            return HEAP_IS_FULL
        i = state[POSITION]
        source = events[i, SOURCE]
        node = events[i, TARGET]
        weight = events[i, WEIGHT]
        if events[i, APPEARS] == 0 and keys[node, HOPS] >= 0:
            if source == 0:
                follows = keys[node, HOPS] == 0 and keys[node, VALUE] == weight
            else:
                follows = (
                    keys[source, HOPS] >= 0
                    and keys[source, HOPS] + 1 == keys[node, HOPS]
                    and not leaves_64_bits(keys[source, VALUE], weight)
                    and keys[source, VALUE] + weight == keys[node, VALUE]
                )
            if follows:
                push(heap, state, keys[node, VALUE], keys[node, HOPS], node)
        state[POSITION] = i + 1
    return DONE


@jit
def is_supported(node, keys, lists, in_nodes, in_weights, start_values, step):
    """Return whether the key of a node follows from a start value or from an edge."""
    value = keys[node, VALUE]
    hops = keys[node, HOPS]
    if hops == 0:
        low = lists[node, START + LOW]
        for slot in range(low, low + lists[node, START + SIZE]):
            if start_values[slot] == value:
                return True
        return False
    low = lists[node, IN + LOW]
    for slot in range(low, low + lists[node, IN + SIZE]):
        source = in_nodes[slot]
        if keys[source, HOPS] == hops - 1:
            weight = weight_at(in_weights, slot, step)
            if not leaves_64_bits(keys[source, VALUE], weight) and keys[source, VALUE] + weight == value:
                return True
    return False


@jit
def check_suspects(
    keys, lists, in_nodes, in_weights, out_kind, out_nodes, out_weights, start_values, touched, heap, state, step,
    budget,
):  # fmt: skip
    """Unset the keys that nothing supports, in ascending order."""
    visited = 0
    while state[HEAP_SIZE] > 0:
        if visited > budget:
            return PAUSED
        value = heap[0, 0]
        hops = heap[0, 1]
        node = heap[0, 2]
        size = lists[node, out_kind + SIZE]
        if state[HEAP_SIZE] + size > heap.shape[0]:
            return HEAP_IS_FULL
        pop(heap, state)
        if keys[node, HOPS] < 0:
            continue
        visited += 1 + lists[node, IN + SIZE]
        if is_supported(node, keys, lists, in_nodes, in_weights, start_values, step):
            continue
        touch(node, keys, touched, state)
        keys[node, HOPS] = -1
        visited += size
        low = lists[node, out_kind + LOW]
        for slot in range(low, low + size):
            other = np.int64(out_nodes[slot])
            if keys[other, HOPS] == hops + 1:
                weight = weight_at(out_weights, slot, step)
                if not leaves_64_bits(value, weight) and keys[other, VALUE] == value + weight:
                    push(heap, state, value + weight, hops + 1, other)
    return DONE


@jit
def support_affected(keys, lists, in_nodes, in_weights, start_values, touched, heap, state, step, budget):
    """Give each node without a key the least one that its start values and edges give now."""
    visited = 0
    while state[POSITION] < state[TOUCHED_COUNT]:
        if visited > budget:
            return PAUSED
        if state[HEAP_SIZE] == heap.shape[0]:
            return HEAP_IS_FULL
        node = touched[state[POSITION], 0]
        state[POSITION] += 1
        if keys[node, HOPS] >= 0:
            continue
        best_value = np.int64(0)
        best_hops = np.int64(-1)
        low = lists[node, START + LOW]
        for slot in range(low, low + lists[node, START + SIZE]):
            if best_hops < 0 or start_values[slot] < best_value:
                best_value = start_values[slot]
                best_hops = np.int64(0)
        low = lists[node, IN + LOW]
        size = lists[node, IN + SIZE]
        visited += 1 + size
        for slot in range(low, low + size):
            source = in_nodes[slot]
            if keys[source, HOPS] >= 0:
                weight = weight_at(in_weights, slot, step)
                if leaves_64_bits(keys[source, VALUE], weight):
                    state[OVERFLOWED] = 1
                    continue
                value = keys[source, VALUE] + weight
                hops = keys[source, HOPS] + 1
                if best_hops < 0 or is_less(value, hops, best_value, best_hops):
                    best_value = value
                    best_hops = hops
        if best_hops >= 0:
            keys[node, VALUE] = best_value
            keys[node, HOPS] = best_hops
            push(heap, state, best_value, best_hops, node)
    return DONE


@jit
def fresh_events(keys, events, touched, heap, state):
    """Propose the keys that new edges give."""
    while state[POSITION] < state[EVENT_COUNT]:
        if state[HEAP_SIZE] == heap.shape[0]:
            return HEAP_IS_FULL
        i = state[POSITION]
        source = events[i, SOURCE]
        weight = events[i, WEIGHT]
        if events[i, APPEARS] == 1:
            if source == 0:
                propose(events[i, TARGET], weight, 0, keys, touched, heap, state)
            elif keys[source, HOPS] >= 0:
                if leaves_64_bits(keys[source, VALUE], weight):
                    state[OVERFLOWED] = 1
                else:
                    value = keys[source, VALUE] + weight
                    propose(events[i, TARGET], value, keys[source, HOPS] + 1, keys, touched, heap, state)
        state[POSITION] = i + 1
    return DONE


@jit
def settle(keys, lists, out_kind, out_nodes, out_weights, touched, heap, state, step, max_hops, budget):
    """Propose keys along the edges of the nodes with new keys, in ascending order."""
    visited = 0
    while state[HEAP_SIZE] > 0:
        if visited > budget:
            return PAUSED
        value = heap[0, 0]
        hops = heap[0, 1]
        node = heap[0, 2]
        size = lists[node, out_kind + SIZE]
        if state[HEAP_SIZE] + size > heap.shape[0]:
            return HEAP_IS_FULL
        pop(heap, state)
        if keys[node, HOPS] != hops or keys[node, VALUE] != value:
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
                propose(np.int64(out_nodes[slot]), value + weight, hops + 1, keys, touched, heap, state)
    return DONE


@jit
def update_values(
    keys, lists, in_nodes, in_weights, out_nodes, out_weights, start_values, events, touched, heap, state, step,
    max_hops, budget,
):  # fmt: skip
    """Run the phases from the present one on, until the end or until one cannot go on; return why."""
    out_kind = OUT if out_nodes.shape[0] > 1 else IN
    others = out_nodes if out_nodes.shape[0] > 1 else in_nodes
    other_weights = out_weights if out_nodes.shape[0] > 1 else in_weights
    while state[PHASE] != DONE:
        phase = state[PHASE]
        result = DONE
        if phase == SUSPECT_EVENTS:
            result = suspect_events(keys, events, heap, state)
        elif phase == CHECK_SUSPECTS:
            result = check_suspects(
                keys, lists, in_nodes, in_weights, out_kind, others, other_weights, start_values, touched, heap, state,
                step, budget,
            )  # fmt: skip
        elif phase == SUPPORT_AFFECTED:
            result = support_affected(
                keys, lists, in_nodes, in_weights, start_values, touched, heap, state, step, budget
            )
        elif phase == FRESH_EVENTS:
            result = fresh_events(keys, events, touched, heap, state)
        else:
            result = settle(keys, lists, out_kind, others, other_weights, touched, heap, state, step, max_hops, budget)
        if result != DONE:
            return result
        state[PHASE] = phase + 1
        state[POSITION] = 0
    return DONE


@inlined
def prefetch_later(queue, head, tail, keys, lists, others, out_kind, addresses):
    """Request what later nodes of a queue need, each in a step for which the step before it has brought the address."""
    if head + 3 * AHEAD < tail:
        prefetch(addresses[LISTS_AT], np.int64(queue[head + 3 * AHEAD]) * lists.shape[1] + out_kind)
        prefetch(addresses[NODES_AT], lists[queue[head + 2 * AHEAD], out_kind + LOW] >> 1)
        node = np.int64(queue[head + AHEAD])
        low = lists[node, out_kind + LOW]
        for slot in range(low, low + min(lists[node, out_kind + SIZE], MAX_REQUESTS)):
            prefetch(addresses[KEYS_AT], np.int64(others[slot]) * keys.shape[1])


@jit
def derive_uniform(order, keys, lists, in_nodes, out_nodes, addresses, queue, state, step, max_hops, budget):
    """Compute all keys if all weights are `step`. `order` has start values, ascending, and their nodes.

    A queue holds the nodes whose keys follow from edges, in ascending order of keys; a start with a lesser key than its
    first node comes before it. `addresses` are those of keys, lists, and the nodes that edges lead to. Keys must be
    unset. Return as `update_values` does.
    """
    out_kind = OUT if out_nodes.shape[0] > 1 else IN
    others = out_nodes if out_nodes.shape[0] > 1 else in_nodes
    visited = 0
    while True:
        if visited > budget:
            return PAUSED
        while state[QUEUE_HEAD] < state[QUEUE_TAIL] and keys[queue[state[QUEUE_HEAD]], HOPS] == 0:
            state[QUEUE_HEAD] += 1  # a start with a lesser key has replaced its key
        has_next = state[QUEUE_HEAD] < state[QUEUE_TAIL]
        node = np.int64(queue[state[QUEUE_HEAD]]) if has_next else np.int64(0)
        if state[POSITION] < order.shape[1] and (not has_next or order[0, state[POSITION]] <= keys[node, VALUE]):
            value = order[0, state[POSITION]]
            node = order[1, state[POSITION]]
            state[POSITION] += 1
            if keys[node, HOPS] >= 0 and not is_less(value, 0, keys[node, VALUE], keys[node, HOPS]):
                continue
            keys[node, VALUE] = value
            keys[node, HOPS] = 0
        elif has_next:
            state[QUEUE_HEAD] += 1
            prefetch_later(queue, state[QUEUE_HEAD], state[QUEUE_TAIL], keys, lists, others, out_kind, addresses)
        else:
            return DONE
        value = keys[node, VALUE]
        hops = keys[node, HOPS] + 1
        if hops - 1 > max_hops:
            return TOO_MANY_ROUNDS
        low = lists[node, out_kind + LOW]
        size = lists[node, out_kind + SIZE]
        visited += 1 + size
        if leaves_64_bits(value, step):
            state[OVERFLOWED] = 1 if size > 0 else state[OVERFLOWED]
            continue
        for slot in range(low, low + size):
            other = others[slot]
            if keys[other, HOPS] < 0:
                keys[other, VALUE] = value + step
                keys[other, HOPS] = hops
                queue[state[QUEUE_TAIL]] = other
                state[QUEUE_TAIL] += 1


@jit
def append_to_bucket(node, number, heads, blocks, progress):
    """Append a node to a bucket: to its first block, or a new one."""
    bucket = number % heads.shape[0]
    block = np.int64(heads[bucket])
    if block < 0 or blocks[block, COUNT] == BLOCK_NODES:
        new = progress[FREE]
        if new >= 0:
            progress[FREE] = blocks[new, NEXT]
        else:
            new = progress[USED]
            progress[USED] += 1
        blocks[new, NEXT] = block
        blocks[new, COUNT] = 0
        heads[bucket] = new
        block = new
    count = np.int64(blocks[block, COUNT])
    blocks[block, FIRST_NODE + count] = node
    blocks[block, COUNT] = count + 1
    progress[WAITING] += 1


@jit
def derive_by_buckets(
    order, keys, lists, out_nodes, out_weights, out_kind, addresses, heads, blocks, progress, width, max_hops, budget
):
    """Compute all keys with buckets of values instead of a heap. `order` has start values, ascending, and their nodes.

    A bucket holds the values of a range of `width`, which is at most the least weight, so no node of a bucket changes
    another one of it. `heads` has a bucket for each range that a weight can reach, and -1; a bucket is a chain of
    `blocks`, which need room for all starts and edges, and a block more for each bucket. The nodes of a block are
    looked at several times: all waits of one look overlap, since each requests what the next one reads. `addresses`
    are those of keys, lists, out_nodes and out_weights.
    Keys and marks must be unset; nodes that are done are marked. No sum may leave 64 bits. Return as `update_values`
    does; `progress` keeps the place.
    """
    base = order[0, 0]
    visited = 0
    nodes = np.empty(BLOCK_NODES, np.int64)
    while True:
        if progress[WAITING] == 0:
            if progress[NEXT_START] == order.shape[1]:
                return DONE
            progress[BUCKET] = max(progress[BUCKET], (order[0, progress[NEXT_START]] - base) // width)
        while (
            progress[NEXT_START] < order.shape[1]
            and (order[0, progress[NEXT_START]] - base) // width <= progress[BUCKET]
        ):
            value = order[0, progress[NEXT_START]]
            node = order[1, progress[NEXT_START]]
            progress[NEXT_START] += 1
            if keys[node, HOPS] < 0 or is_less(value, 0, keys[node, VALUE], keys[node, HOPS]):
                keys[node, VALUE] = value
                keys[node, HOPS] = 0
                append_to_bucket(node, progress[BUCKET], heads, blocks, progress)
        bucket = progress[BUCKET] % heads.shape[0]
        while heads[bucket] >= 0:
            if visited > budget:
                return PAUSED
            block = np.int64(heads[bucket])
            heads[bucket] = blocks[block, NEXT]
            prefetch_block(blocks, np.int64(heads[bucket]), keys, addresses)
            size = np.int64(blocks[block, COUNT])
            progress[WAITING] -= size
            visited += size
            count = 0
            for i in range(size):
                node = np.int64(blocks[block, FIRST_NODE + i])
                if keys[node, MARK] == 0:
                    keys[node, MARK] = 1
                    prefetch(addresses[LISTS_AT], node * lists.shape[1] + out_kind)
                    nodes[count] = node
                    count += 1
            blocks[block, NEXT] = progress[FREE]
            progress[FREE] = block
            for i in range(count):
                low = lists[nodes[i], out_kind + LOW]
                prefetch(addresses[NODES_AT], low >> 1)
                prefetch(addresses[WEIGHTS_AT], low)
            for i in range(count):
                low = lists[nodes[i], out_kind + LOW]
                for slot in range(low, low + lists[nodes[i], out_kind + SIZE]):
                    prefetch(addresses[KEYS_AT], np.int64(out_nodes[slot]) * keys.shape[1])
            for i in range(count):
                value = keys[nodes[i], VALUE]
                hops = keys[nodes[i], HOPS] + 1
                if hops - 1 > max_hops:
                    return TOO_MANY_ROUNDS
                low = lists[nodes[i], out_kind + LOW]
                size = lists[nodes[i], out_kind + SIZE]
                visited += size
                for slot in range(low, low + size):
                    other = np.int64(out_nodes[slot])
                    sum_ = value + out_weights[slot]
                    if keys[other, HOPS] < 0 or is_less(sum_, hops, keys[other, VALUE], keys[other, HOPS]):
                        keys[other, VALUE] = sum_
                        keys[other, HOPS] = hops
                        append_to_bucket(other, (sum_ - base) // width, heads, blocks, progress)
        progress[BUCKET] += 1


@inlined
def prefetch_block(blocks, block, keys, addresses):
    """Request the keys of the nodes of a block, if there is one."""
    if block >= 0:
        for i in range(blocks[block, COUNT]):
            prefetch(addresses[KEYS_AT], np.int64(blocks[block, FIRST_NODE + i]) * keys.shape[1])


@jit
def write_changes(touched, keys, node_values, only_presence, data, diffs, state):
    """Write the changed rows of the touched nodes, and forget these; return their number."""
    n = 0
    for i in range(state[TOUCHED_COUNT]):
        node = touched[i, 0]
        keys[node, MARK] = 0
        was = touched[i, 2] >= 0
        now = keys[node, HOPS] >= 0
        if was == now and (not was or only_presence or touched[i, 1] == keys[node, VALUE]):
            continue
        for side in range(2):
            if was if side == 0 else now:
                data[0, n] = node_values[node]
                if data.shape[0] > 1:
                    data[1, n] = touched[i, 1] if side == 0 else keys[node, VALUE]
                diffs[0, n] = -1 if side == 0 else 1
                n += 1
    state[TOUCHED_COUNT] = 0
    return n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    graph = (TABLE, TABLE, NODES, COLUMN, NODES, COLUMN, COLUMN)
    yield update_values, (*graph, TABLE, TABLE, TABLE, COLUMN, NUMBER, NUMBER, NUMBER)
    yield derive_uniform, (TABLE, TABLE, TABLE, NODES, NODES, COLUMN, NODES, COLUMN, NUMBER, NUMBER, NUMBER)
    buckets = (COLUMN, COLUMN, BLOCKS, COLUMN, NUMBER, NUMBER, NUMBER)
    yield derive_by_buckets, (TABLE, TABLE, TABLE, NODES, COLUMN, NUMBER, *buckets)
    yield write_changes, (TABLE, TABLE, COLUMN, NUMBER, TABLE, TABLE, COLUMN)
