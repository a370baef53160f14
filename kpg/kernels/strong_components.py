"""Maintain the strongly connected components of a graph whose edges change.

A component has a *root*, its node of least value. Each node keeps its component, named by the root, its number of steps
from the root (AHEAD) and to the root (BEHIND) within the component, and the ring of the nodes of its component:

    parts[v, AHEAD]  =  0 if v is the root, else 1 + min { parts[u, AHEAD] : an edge from u to v, in one component }

`update_components` follows edges that have appeared and disappeared (`events`), with all edges in their lists:

    SHRINK   As edges disappear, steps grow. A node that the root no longer reaches, or that no longer reaches it,
             leaves the component. The nodes that leave are split by Tarjan's algorithm among themselves.
    MERGE    A new edge from u to v, of two components, closes a cycle if v reaches u. Two searches over components,
             onward from v and back from u, take turns; when the first of them ends, it has found all components on
             paths from v to u, which become one, or none.
    EXTEND   Nodes whose component has changed, and ends of new edges, get their steps.

Steps change as in `kpg.kernels.least_keys`: in ascending order, a node without an edge from a node with one step less
loses its steps. All edges have the same length, so a queue keeps the order, and a heap is needed only to start.

Cost: the edges of the nodes whose steps or components change, times a logarithm; for each new edge between components
the smaller of the two searches. If searches visit more than `limit` edges, the caller computes everything again with
`derive_components`. Twin: kpg.testing.kernel_twins.strong_components_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import inlined, jit
from kpg.kernels.least_keys import pop, push
from kpg.kernels.neighbour_lists import (
    APPEARS,
    EVENT_COUNT,
    HEAP_SIZE,
    IN,
    LOW,
    NODE_COUNT,
    NODES,
    OUT,
    PHASE,
    POSITION,
    QUEUE_HEAD,
    QUEUE_TAIL,
    SIZE,
    SOURCE,
    TARGET,
    TOUCHED_COUNT,
    WEIGHT,
)

COMPONENT = 0  # columns of `parts`: the root of the node's component; 0 for a node without edges
AHEAD = 1  # steps from the root; -1 for none
BEHIND = 2  # steps to the root
NEXT = 3  # the ring of the nodes of a component
PREVIOUS = 4
FLAGS = 5
PART_COLUMNS = 6

TOUCHED = 1  # flags
QUEUED = 2
LEAVING = 4
SEARCHED = 8

WITHIN = 0  # the column WEIGHT of events: a new edge is within a component, connects two, or did so before a merge
CROSSING = 1
MERGED = 2

INDEX = 0  # columns of `scratch`, in Tarjan's algorithm
LOWEST = 1
SLOT = 2
PARENT = 3
STAMP = 0  # the same in a search, for each of the two sides: the search that has found the component
FIRST_RECORD = 2
SCRATCH_COLUMNS = 4

LEAVING_COUNT = 0  # elements of `counts`
SEARCHES = 1  # more than any index in Tarjan's algorithm, because searches use the same scratch
VISITED = 2
COUNTS_SIZE = 3

START = 0  # phases
MERGE = 1
EXTEND = 2
DONE = 3  # also the result of a finished call
RECORDS_ARE_FULL = 4  # the call has to be repeated with more room
TOO_MUCH_WORK = 5


@inlined
def touch(node, parts, touched, state):
    """Note the component of a node before it changes for the first time in this update."""
    if parts[node, FLAGS] & TOUCHED == 0:
        parts[node, FLAGS] |= TOUCHED
        touched[state[TOUCHED_COUNT], 0] = node
        touched[state[TOUCHED_COUNT], 1] = parts[node, COMPONENT]
        state[TOUCHED_COUNT] += 1


@jit
def next_node(column, parts, heap, queue, state):
    """Take the node with the fewest steps from the heap or the queue; return it and its steps, or 0 if none is left."""
    in_queue = state[QUEUE_HEAD] < state[QUEUE_TAIL]
    node = queue[state[QUEUE_HEAD]] if in_queue else np.int64(0)
    if state[HEAP_SIZE] > 0 and (not in_queue or heap[0, 0] <= parts[node, column]):
        node = heap[0, 2]
        steps = heap[0, 0]
        pop(heap, state)
        return node, steps
    if in_queue:
        state[QUEUE_HEAD] += 1
        return node, parts[node, column]
    return np.int64(0), np.int64(0)


@jit
def settle(column, kind, lists, others, parts, heap, queue, state):
    """Spread steps from the nodes of the heap along the edges of a kind, within components, in ascending order."""
    state[QUEUE_HEAD] = 0
    state[QUEUE_TAIL] = 0
    while True:
        node, steps = next_node(column, parts, heap, queue, state)
        if node == 0:
            return
        if parts[node, column] != steps:
            continue
        component = parts[node, COMPONENT]
        low = lists[node, kind + LOW]
        for slot in range(low, low + lists[node, kind + SIZE]):
            other = np.int64(others[slot])
            if parts[other, COMPONENT] == component and (parts[other, column] < 0 or parts[other, column] > steps + 1):
                parts[other, column] = steps + 1
                queue[state[QUEUE_TAIL]] = other
                state[QUEUE_TAIL] += 1


@jit
def support(node, column, kind, lists, others, parts, heap, state):
    """Give a node without steps the least number that its edges give."""
    component = parts[node, COMPONENT]
    best = np.int64(-1)
    low = lists[node, kind + LOW]
    for slot in range(low, low + lists[node, kind + SIZE]):
        other = np.int64(others[slot])
        if parts[other, COMPONENT] == component and parts[other, column] >= 0:
            if best < 0 or parts[other, column] + 1 < best:
                best = parts[other, column] + 1
    if best >= 0:
        parts[node, column] = best
        push(heap, state, best, 0, node)


@jit
def lose_steps(column, back, lists, back_nodes, onward, onward_nodes, parts, events, lost, heap, queue, state):
    """Unset the steps that depend on edges that have disappeared, and compute them again; return the number of lost.

    `lost` receives the nodes that lost their steps. Edges of kind `back` lead to nodes that may support a node.
    """
    for i in range(state[EVENT_COUNT]):
        source = events[i, SOURCE] if column == AHEAD else events[i, TARGET]
        node = events[i, TARGET] if column == AHEAD else events[i, SOURCE]
        if (
            events[i, APPEARS] == 0
            and parts[source, COMPONENT] == parts[node, COMPONENT]
            and parts[source, column] + 1 == parts[node, column]
            and parts[node, FLAGS] & QUEUED == 0
        ):
            parts[node, FLAGS] |= QUEUED
            push(heap, state, parts[node, column], 0, node)
    state[QUEUE_HEAD] = 0
    state[QUEUE_TAIL] = 0
    count = np.int64(0)
    while True:
        node, steps = next_node(column, parts, heap, queue, state)
        if node == 0:
            break
        parts[node, FLAGS] &= ~QUEUED
        component = parts[node, COMPONENT]
        low = lists[node, back + LOW]
        supported = False
        for slot in range(low, low + lists[node, back + SIZE]):
            other = np.int64(back_nodes[slot])
            if parts[other, column] == steps - 1 and parts[other, COMPONENT] == component:
                supported = True
                break
        if supported:
            continue
        parts[node, column] = -1
        lost[count] = node
        count += 1
        low = lists[node, onward + LOW]
        for slot in range(low, low + lists[node, onward + SIZE]):
            other = np.int64(onward_nodes[slot])
            if (
                parts[other, column] == steps + 1
                and parts[other, COMPONENT] == component
                and parts[other, FLAGS] & QUEUED == 0
            ):
                parts[other, FLAGS] |= QUEUED
                queue[state[QUEUE_TAIL]] = other
                state[QUEUE_TAIL] += 1
    for i in range(count):
        support(lost[i], column, back, lists, back_nodes, parts, heap, state)
    settle(column, onward, lists, onward_nodes, parts, heap, queue, state)
    return count


@jit
def collect_leaving(column, lost, count, leaving, parts, counts, touched, state):
    """Append the nodes that are left without steps to the leaving ones."""
    for i in range(count):
        node = lost[i]
        if parts[node, column] < 0 and parts[node, FLAGS] & LEAVING == 0:
            parts[node, FLAGS] |= LEAVING
            touch(node, parts, touched, state)
            parts[parts[node, PREVIOUS], NEXT] = parts[node, NEXT]
            parts[parts[node, NEXT], PREVIOUS] = parts[node, PREVIOUS]
            leaving[counts[LEAVING_COUNT]] = node
            counts[LEAVING_COUNT] += 1


@jit
def name_component(stack, lo, hi, parts, values):
    """Make the nodes of a part of the stack one component: name it by its root, and link its ring."""
    root = stack[lo]
    for i in range(lo, hi):
        if values[stack[i]] < values[root]:
            root = stack[i]
    for i in range(lo, hi):
        node = stack[i]
        following = stack[i + 1] if i + 1 < hi else stack[lo]
        parts[node, COMPONENT] = root
        parts[node, FLAGS] &= ~LEAVING
        parts[node, NEXT] = following
        parts[following, PREVIOUS] = node


@jit
def split(leaving, lists, out_nodes, values, parts, scratch, stack, counts):
    """Split the leaving nodes into strongly connected components, by Tarjan's algorithm.

    Edges count if both ends leave the same component.
    """
    for i in range(counts[LEAVING_COUNT]):
        scratch[leaving[i], INDEX] = 0
    index = np.int64(0)
    height = np.int64(0)
    for i in range(counts[LEAVING_COUNT]):
        if scratch[leaving[i], INDEX] != 0:
            continue
        node = leaving[i]
        parent = np.int64(0)
        while node != 0:
            if scratch[node, INDEX] == 0:
                index += 1
                scratch[node, INDEX] = index
                scratch[node, LOWEST] = index
                scratch[node, SLOT] = lists[node, OUT + LOW]
                scratch[node, PARENT] = parent
                stack[height] = node
                height += 1
            slot = scratch[node, SLOT]
            end = lists[node, OUT + LOW] + lists[node, OUT + SIZE]
            child = np.int64(0)
            while slot < end and child == 0:
                other = np.int64(out_nodes[slot])
                slot += 1
                if parts[other, FLAGS] & LEAVING != 0 and parts[other, COMPONENT] == parts[node, COMPONENT]:
                    if scratch[other, INDEX] == 0:
                        child = other
                    elif scratch[other, INDEX] < scratch[node, LOWEST]:
                        scratch[node, LOWEST] = scratch[other, INDEX]
            scratch[node, SLOT] = slot
            if child != 0:
                parent = node
                node = child
                continue
            if scratch[node, LOWEST] == scratch[node, INDEX]:
                low = height - 1
                while stack[low] != node:
                    low -= 1
                name_component(stack, low, height, parts, values)
                height = low
            parent = scratch[node, PARENT]
            if parent != 0 and scratch[node, LOWEST] < scratch[parent, LOWEST]:
                scratch[parent, LOWEST] = scratch[node, LOWEST]
            node = parent


@jit
def derive_steps(column, kind, lists, others, parts, leaving, heap, queue, state, counts):
    """Compute the steps of the nodes of whole components from their roots."""
    state[QUEUE_HEAD] = 0
    state[QUEUE_TAIL] = 0
    for i in range(counts[LEAVING_COUNT]):
        parts[leaving[i], column] = -1
    for i in range(counts[LEAVING_COUNT]):
        node = leaving[i]
        if parts[node, COMPONENT] == node:
            parts[node, column] = 0
            if parts[node, NEXT] != node:
                queue[state[QUEUE_TAIL]] = node
                state[QUEUE_TAIL] += 1
    while state[QUEUE_HEAD] < state[QUEUE_TAIL]:
        node = queue[state[QUEUE_HEAD]]
        state[QUEUE_HEAD] += 1
        component = parts[node, COMPONENT]
        low = lists[node, kind + LOW]
        for slot in range(low, low + lists[node, kind + SIZE]):
            other = np.int64(others[slot])
            if parts[other, column] < 0 and parts[other, COMPONENT] == component:
                parts[other, column] = parts[node, column] + 1
                queue[state[QUEUE_TAIL]] = other
                state[QUEUE_TAIL] += 1


@jit
def split_leaving(lists, in_nodes, out_nodes, values, parts, leaving, scratch, heap, queue, state, counts):
    """Split the leaving nodes, and compute their steps."""
    split(leaving, lists, out_nodes, values, parts, scratch, queue, counts)
    derive_steps(AHEAD, OUT, lists, out_nodes, parts, leaving, heap, queue, state, counts)
    derive_steps(BEHIND, IN, lists, in_nodes, parts, leaving, heap, queue, state, counts)
    counts[LEAVING_COUNT] = 0


@jit
def add_nodes(parts, events, touched, state):
    """Make the ends of new edges components of their own, if they had no edges."""
    for i in range(state[EVENT_COUNT]):
        for end in range(2):
            node = events[i, SOURCE] if end == 0 else events[i, TARGET]
            if events[i, APPEARS] == 1 and parts[node, COMPONENT] == 0:
                touch(node, parts, touched, state)
                parts[node, COMPONENT] = node
                parts[node, AHEAD] = 0
                parts[node, BEHIND] = 0
                parts[node, NEXT] = node
                parts[node, PREVIOUS] = node


@jit
def drop_nodes(lists, parts, events, touched, state):
    """Drop the nodes that have lost their last edge."""
    for i in range(state[EVENT_COUNT]):
        for end in range(2):
            node = events[i, SOURCE] if end == 0 else events[i, TARGET]
            if parts[node, COMPONENT] != 0 and lists[node, IN + SIZE] + lists[node, OUT + SIZE] == 0:
                touch(node, parts, touched, state)
                parts[node, COMPONENT] = 0


@jit
def search_sides(first, last, lists, in_nodes, out_nodes, parts, scratch, queue, records, counts, limit):
    """Search onward from component `first` and back from `last` in turns, until one of the searches ends.

    Return the side that ended, or a negative number: RECORDS_ARE_FULL or TOO_MUCH_WORK. A search notes each edge
    that it follows with the component that the edge leads it to. It does not go beyond the start of the other one. If
    both start at the same component, they look for paths back to it.
    """
    counts[SEARCHES] += 1
    stamp = counts[SEARCHES]
    half = parts.shape[0]
    used = np.int64(0)
    head = np.zeros(2, np.int64)
    tail = np.ones(2, np.int64)
    member = np.zeros(2, np.int64)  # the node whose edges are followed; 0: take the next component
    slot = np.zeros(2, np.int64)
    current = np.zeros(2, np.int64)
    for side in range(2):
        start = first if side == 0 else last
        queue[side * half] = start
        scratch[start, STAMP + side] = stamp
        scratch[start, FIRST_RECORD + side] = -1
    side = 0
    while True:
        kind = OUT if side == 0 else IN
        if member[side] == 0:
            if head[side] == tail[side]:
                return side
            current[side] = queue[side * half + head[side]]
            head[side] += 1
            if first != last and current[side] == (last if side == 0 else first):
                continue
            member[side] = current[side]
            slot[side] = lists[current[side], kind + LOW]
        node = member[side]
        counts[VISITED] += 1
        if counts[VISITED] > limit:
            return -TOO_MUCH_WORK
        if slot[side] == lists[node, kind + LOW] + lists[node, kind + SIZE]:
            node = parts[node, NEXT]
            member[side] = 0 if node == current[side] else node
            slot[side] = lists[node, kind + LOW]
        else:
            other = np.int64(out_nodes[slot[side]] if side == 0 else in_nodes[slot[side]])
            slot[side] += 1
            component = parts[other, COMPONENT]
            if component != current[side]:
                if used == records.shape[0]:
                    return -RECORDS_ARE_FULL
                if scratch[component, STAMP + side] != stamp:
                    scratch[component, STAMP + side] = stamp
                    scratch[component, FIRST_RECORD + side] = -1
                    queue[side * half + tail[side]] = component
                    tail[side] += 1
                records[used, 0] = current[side]
                records[used, 1] = scratch[component, FIRST_RECORD + side]
                scratch[component, FIRST_RECORD + side] = used
                used += 1
        side = 1 - side


@jit
def merge_found(start, side, values, parts, scratch, queue, records, leaving, counts, touched, state):
    """Merge all components on the recorded paths from component `start`; their nodes lose their steps.

    The component with the least root keeps its nodes' steps. `leaving` receives the nodes of the others.
    """
    tail = np.int64(1)
    head = np.int64(0)
    root = start
    taken = -counts[SEARCHES]  # in place of the stamps of the other side, which are not needed any more
    queue[0] = start
    scratch[start, STAMP + 1 - side] = taken
    while head < tail:
        component = queue[head]
        head += 1
        if values[component] < values[root]:
            root = component
        record = scratch[component, FIRST_RECORD + side]
        while record >= 0:
            onward = records[record, 0]
            if scratch[onward, STAMP + 1 - side] != taken:
                scratch[onward, STAMP + 1 - side] = taken
                queue[tail] = onward
                tail += 1
            record = records[record, 1]
    for i in range(tail):
        component = queue[i]
        if component == root:
            continue
        node = component
        while True:
            touch(node, parts, touched, state)
            parts[node, COMPONENT] = root
            if parts[node, AHEAD] >= 0:  # otherwise an earlier event has appended it
                parts[node, AHEAD] = -1
                parts[node, BEHIND] = -1
                leaving[counts[LEAVING_COUNT]] = node
                counts[LEAVING_COUNT] += 1
            node = parts[node, NEXT]
            if node == component:
                break
        last = parts[component, PREVIOUS]
        after = parts[root, NEXT]
        parts[root, NEXT] = component
        parts[component, PREVIOUS] = root
        parts[last, NEXT] = after
        parts[after, PREVIOUS] = last


@jit
def note_crossing(parts, events, state):
    """Note which new edges connect two components."""
    for i in range(state[EVENT_COUNT]):
        crosses = parts[events[i, SOURCE], COMPONENT] != parts[events[i, TARGET], COMPONENT]
        events[i, WEIGHT] = CROSSING if events[i, APPEARS] == 1 and crosses else WITHIN


@jit
def merge_events(
    lists, in_nodes, out_nodes, values, parts, events, scratch, queue, records, leaving, counts, touched, state, limit
):
    """Merge the components that new edges connect in both directions; return DONE, or why it stopped.

    A search finds the cycles through an edge of two components. If an earlier edge has merged them, cycles may remain
    that leave the merged component and return to it: the second pass looks for these, once for each component.
    """
    while state[POSITION] < 2 * state[EVENT_COUNT]:
        i = state[POSITION] % state[EVENT_COUNT]
        is_second = state[POSITION] >= state[EVENT_COUNT]
        last = parts[events[i, SOURCE], COMPONENT]
        first = parts[events[i, TARGET], COMPONENT]
        is_due = events[i, WEIGHT] == (MERGED if is_second else CROSSING)
        if is_due and is_second:
            is_due = parts[first, FLAGS] & SEARCHED == 0
        elif is_due and first == last:
            events[i, WEIGHT] = MERGED
            is_due = False
        if is_due:
            ended = search_sides(first, last, lists, in_nodes, out_nodes, parts, scratch, queue, records, counts, limit)
            if ended < 0:
                return -ended
            start = last if ended == 0 else first
            if scratch[start, STAMP + ended] == counts[SEARCHES]:
                merge_found(start, ended, values, parts, scratch, queue, records, leaving, counts, touched, state)
            if is_second:
                parts[parts[events[i, SOURCE], COMPONENT], FLAGS] |= SEARCHED
        state[POSITION] += 1
    for i in range(state[EVENT_COUNT]):
        parts[parts[events[i, SOURCE], COMPONENT], FLAGS] &= ~SEARCHED
    return np.int64(DONE)


@jit
def extend_steps(
    column, back, lists, back_nodes, onward, onward_nodes, parts, events, leaving, heap, queue, state, counts
):
    """Give the nodes of merged components their steps, and apply the new edges."""
    for i in range(counts[LEAVING_COUNT]):
        if parts[leaving[i], column] < 0:
            support(leaving[i], column, back, lists, back_nodes, parts, heap, state)
    for i in range(state[EVENT_COUNT]):
        source = events[i, SOURCE] if column == AHEAD else events[i, TARGET]
        node = events[i, TARGET] if column == AHEAD else events[i, SOURCE]
        if (
            events[i, APPEARS] == 1
            and parts[source, COMPONENT] == parts[node, COMPONENT]
            and parts[source, column] >= 0
            and (parts[node, column] < 0 or parts[node, column] > parts[source, column] + 1)
        ):
            parts[node, column] = parts[source, column] + 1
            push(heap, state, parts[node, column], 0, node)
    settle(column, onward, lists, onward_nodes, parts, heap, queue, state)


@jit
def update_components(
    lists, in_nodes, out_nodes, values, parts, events, leaving, scratch, heap, queue, records, counts, touched, state,
    limit,
):  # fmt: skip
    """Follow the events from the present phase on; return DONE, or why it stopped.

    `leaving` has one element for each node, `heap` one for each node and event, `queue` two for each node.
    """
    if state[PHASE] == START:
        add_nodes(parts, events, touched, state)
        lost = queue[parts.shape[0] :]
        count = lose_steps(AHEAD, IN, lists, in_nodes, OUT, out_nodes, parts, events, lost, heap, queue, state)
        collect_leaving(AHEAD, lost, count, leaving, parts, counts, touched, state)
        count = lose_steps(BEHIND, OUT, lists, out_nodes, IN, in_nodes, parts, events, lost, heap, queue, state)
        collect_leaving(BEHIND, lost, count, leaving, parts, counts, touched, state)
        if counts[LEAVING_COUNT] > 0:
            split_leaving(lists, in_nodes, out_nodes, values, parts, leaving, scratch, heap, queue, state, counts)
        note_crossing(parts, events, state)
        state[PHASE] = MERGE
        state[POSITION] = 0
    if state[PHASE] == MERGE:
        result = merge_events(
            lists, in_nodes, out_nodes, values, parts, events, scratch, queue, records, leaving, counts, touched,
            state, limit,
        )  # fmt: skip
        if result != DONE:
            return result
        state[PHASE] = EXTEND
    extend_steps(AHEAD, IN, lists, in_nodes, OUT, out_nodes, parts, events, leaving, heap, queue, state, counts)
    extend_steps(BEHIND, OUT, lists, out_nodes, IN, in_nodes, parts, events, leaving, heap, queue, state, counts)
    counts[LEAVING_COUNT] = 0
    drop_nodes(lists, parts, events, touched, state)
    return np.int64(DONE)


@jit
def derive_components(lists, in_nodes, out_nodes, values, parts, leaving, scratch, heap, queue, counts, touched, state):
    """Compute all components from the lists; note those of before."""
    counts[LEAVING_COUNT] = 0
    for node in range(1, state[NODE_COUNT]):
        touch(node, parts, touched, state)
        parts[node, COMPONENT] = 0
        parts[node, FLAGS] = TOUCHED
        if lists[node, IN + SIZE] + lists[node, OUT + SIZE] > 0:
            parts[node, FLAGS] |= LEAVING
            leaving[counts[LEAVING_COUNT]] = node
            counts[LEAVING_COUNT] += 1
    split_leaving(lists, in_nodes, out_nodes, values, parts, leaving, scratch, heap, queue, state, counts)


@jit
def write_components(touched, parts, values, data, diffs, state):
    """Write the changed rows (node, component) of the touched nodes, and forget these; return their number."""
    n = 0
    for i in range(state[TOUCHED_COUNT]):
        node = touched[i, 0]
        parts[node, FLAGS] &= ~TOUCHED
        if touched[i, 1] != parts[node, COMPONENT]:
            for side in range(2):
                component = touched[i, 1] if side == 0 else parts[node, COMPONENT]
                if component != 0:
                    data[0, n] = values[node]
                    data[1, n] = values[component]
                    diffs[0, n] = -1 if side == 0 else 1
                    n += 1
    state[TOUCHED_COUNT] = 0
    return n


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    graph = (TABLE, NODES, NODES, COLUMN, TABLE)
    yield update_components, (
        *graph, TABLE, COLUMN, TABLE, TABLE, COLUMN, TABLE, COLUMN, TABLE, COLUMN, NUMBER,
    )  # fmt: skip
    yield derive_components, (*graph, COLUMN, TABLE, TABLE, COLUMN, COLUMN, TABLE, COLUMN)
    yield write_components, (TABLE, TABLE, COLUMN, TABLE, TABLE, COLUMN)
