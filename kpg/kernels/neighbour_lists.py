"""The lists of neighbours of the nodes of a graph, in arrays that change in place.

Nodes are numbers from 1 on. A node has three lists: the nodes with an edge to it (IN), the nodes it has an edge to
(OUT), and its start values (START), which are edges from node 0. `lists[node]` has LOW, SIZE and ROOM of each: the
list is the slots [LOW, LOW + SIZE) of arrays that all lists of a kind share, and may grow to ROOM slots. A full list
moves to the free end of the arrays, with twice the room. An entry is a neighbour, a weight, and in IN and START the
number of copies, which is positive. If all weights are equal, `weights` has one element, which is not used.

    count_entries, lay_out_lists, fill_lists     build the lists of a kind from all edges
    apply_changes                                insert and remove edges; write the edges that appear or disappear
    number_nodes                                 write the number of each value; number the new ones

Cost of a change: a scan of the IN list of its end, and, if an edge disappears, of the OUT list of its start.
`state` holds the scalars that kernels share. Twin: kpg.testing.kernel_twins.least_keys_twin.
"""

from collections.abc import Iterator

import numpy as np

from kpg.kernels.example import COLUMN, NUMBER, TABLE, Example
from kpg.kernels.jit import jit
from kpg.kernels.partition_rows import mix

LOW = 0
SIZE = 1
ROOM = 2
IN = 0  # the first column of each kind of list
OUT = 3
START = 6
LIST_COLUMNS = 9

# Elements of `state`. The first nine belong to the kinds of lists: the end of the used slots, and the entries in use.
TAIL = 0
LIVE = 1
NODE_COUNT = 9
NEGATIVE_WEIGHTS = 10  # edges with a negative weight
EVENT_COUNT = 11
UNPAID = 12  # removals of edges that are not there
NEEDED_SLOTS = 13
PHASE = 14
POSITION = 15  # in the list that the phase visits
HEAP_SIZE = 16
TOUCHED_COUNT = 17
OVERFLOWED = 18  # whether the value of an edge's end left 64 bits
QUEUE_HEAD = 19
QUEUE_TAIL = 20
STATE_SIZE = 21

APPEARS = 0  # columns of `events`: 1 if an edge appears, 0 if it disappears
SOURCE = 1
TARGET = 2
WEIGHT = 3
EVENT_COLUMNS = 4

VALUE = 0  # columns of `keys`
HOPS = 1  # -1 if the node has no value
MARK = 2  # 1 if the node is among the touched ones
KEY_COLUMNS = 3

MAX_INT64 = (1 << 63) - 1
MIN_INT64 = -(1 << 63)

NODES = np.zeros(1, np.int32)  # the type of node numbers in lists


@jit
def count_entries(owners, kind, lists):
    """Count the entries of each list."""
    for i in range(owners.shape[0]):
        lists[owners[i], kind + ROOM] += 1


@jit
def lay_out_lists(kind, lists, state):
    """Give each list the room that was counted; return the number of slots of all."""
    tail = np.int64(0)
    for node in range(state[NODE_COUNT]):
        lists[node, kind + LOW] = tail
        tail += lists[node, kind + ROOM]
    state[kind + TAIL] = tail
    return tail


@jit
def fill_lists(owners, others, given_weights, given_counts, kind, lists, nodes, weights, counts, state):
    """Append entries to lists that have room for them. Arrays of one element are not used."""
    for i in range(owners.shape[0]):
        owner = owners[i]
        slot = lists[owner, kind + LOW] + lists[owner, kind + SIZE]
        lists[owner, kind + SIZE] += 1
        nodes[slot] = others[i]
        if weights.shape[0] > 1:
            weights[slot] = given_weights[i] if given_weights.shape[0] > 1 else given_weights[0]
        if counts.shape[0] > 1:
            counts[slot] = given_counts[i] if given_counts.shape[0] > 1 else given_counts[0]
    state[kind + LIVE] += owners.shape[0]


@jit
def find_entry(lists, kind, node, other, weight, nodes, weights):
    """Return the slot of an entry; -1 if there is none."""
    low = lists[node, kind + LOW]
    for slot in range(low, low + lists[node, kind + SIZE]):
        if nodes[slot] == other and (weights.shape[0] == 1 or weights[slot] == weight):
            return slot
    return np.int64(-1)


@jit
def lacks_room(lists, kind, node, nodes, state):
    """Return whether an entry cannot be appended before the arrays grow; the number of slots is then in `state`."""
    size = lists[node, kind + SIZE]
    needed = state[kind + TAIL] + 2 * size + 2
    if size < lists[node, kind + ROOM] or needed <= nodes.shape[0]:
        return False
    state[NEEDED_SLOTS] = needed
    return True


@jit
def append_entry(lists, kind, node, other, weight, count, nodes, weights, counts, state):
    """Append an entry to a list; move the list if it is full."""
    size = lists[node, kind + SIZE]
    low = lists[node, kind + LOW]
    if size == lists[node, kind + ROOM]:
        tail = state[kind + TAIL]
        for i in range(size):
            nodes[tail + i] = nodes[low + i]
            if weights.shape[0] > 1:
                weights[tail + i] = weights[low + i]
            if counts.shape[0] > 1:
                counts[tail + i] = counts[low + i]
        low = tail
        lists[node, kind + LOW] = tail
        lists[node, kind + ROOM] = 2 * size + 2
        state[kind + TAIL] = tail + 2 * size + 2
    nodes[low + size] = other
    if weights.shape[0] > 1:
        weights[low + size] = weight
    if counts.shape[0] > 1:
        counts[low + size] = count
    lists[node, kind + SIZE] = size + 1
    state[kind + LIVE] += 1


@jit
def remove_entry(lists, kind, node, slot, nodes, weights, counts, state):
    """Remove the entry in a slot: the last entry of the list takes its place."""
    size = lists[node, kind + SIZE] - 1
    last = lists[node, kind + LOW] + size
    nodes[slot] = nodes[last]
    if weights.shape[0] > 1:
        weights[slot] = weights[last]
    if counts.shape[0] > 1:
        counts[slot] = counts[last]
    lists[node, kind + SIZE] = size
    state[kind + LIVE] -= 1


@jit
def write_event(events, state, appears, source, target, weight):
    """Note that an edge appears or disappears."""
    n = state[EVENT_COUNT]
    events[n, APPEARS] = appears
    events[n, SOURCE] = source
    events[n, TARGET] = target
    events[n, WEIGHT] = weight
    state[EVENT_COUNT] = n + 1


@jit
def apply_changes(
    sources, targets, given_weights, diffs, start, kind, lists, nodes, weights, counts, out_nodes, out_weights,
    own_starts, events, state,
):  # fmt: skip
    """Apply changes of edges from `start` on; return the number of the first change that did not fit.

    Return -1 if a number of copies leaves 64 bits.

    `kind` is IN, or START, whose entries have no OUT lists. `out_nodes` of one element: edges are in both directions,
    and the IN lists serve as OUT lists. `own_starts` of more than one element: a node with an edge has the start value
    that it has there, and no other. `diffs` is left with the copies that could not be removed.
    """
    has_out = kind == IN and out_nodes.shape[0] > 1
    for i in range(start, targets.shape[0]):
        target = np.int64(targets[i])
        source = np.int64(0) if kind == START else np.int64(sources[i])
        weight = given_weights[i] if given_weights.shape[0] > 1 else given_weights[0]
        if diffs[i] > 0:
            slot = find_entry(lists, kind, target, source, weight, nodes, weights)
            if slot >= 0:
                if counts[slot] > MAX_INT64 - diffs[i]:
                    return -1
                counts[slot] += diffs[i]
            elif (
                state[EVENT_COUNT] + 2 > events.shape[0]
                or lacks_room(lists, kind, target, nodes, state)
                or (has_out and lacks_room(lists, OUT, source, out_nodes, state))
            ):
                return i
            else:
                append_entry(lists, kind, target, source, weight, diffs[i], nodes, weights, counts, state)
                if has_out:
                    append_entry(
                        lists, OUT, source, target, weight, 0, out_nodes, out_weights, given_weights[:1], state
                    )
                if kind == IN and weight < 0:
                    state[NEGATIVE_WEIGHTS] += 1
                write_event(events, state, 1, source, target, weight)
                if own_starts.shape[0] > 1 and lists[target, IN + SIZE] == 1:
                    lists[target, START + LOW] = target
                    lists[target, START + SIZE] = 1
                    write_event(events, state, 1, 0, target, own_starts[target])
            diffs[i] = 0
        if diffs[i] == MIN_INT64:
            return -1
        while diffs[i] < 0:
            if state[EVENT_COUNT] + 2 > events.shape[0]:
                return i
            slot = find_entry(lists, kind, target, source, weight, nodes, weights)
            if slot < 0:
                state[UNPAID] += 1
                break
            taken = min(counts[slot], -diffs[i])
            diffs[i] += taken
            counts[slot] -= taken
            if counts[slot] == 0:
                remove_entry(lists, kind, target, slot, nodes, weights, counts, state)
                if has_out:
                    out_slot = find_entry(lists, OUT, source, target, weight, out_nodes, out_weights)
                    remove_entry(lists, OUT, source, out_slot, out_nodes, out_weights, given_weights[:1], state)
                if kind == IN and weight < 0:
                    state[NEGATIVE_WEIGHTS] -= 1
                write_event(events, state, 0, source, target, weight)
                if own_starts.shape[0] > 1 and lists[target, IN + SIZE] == 0:
                    lists[target, START + SIZE] = 0
                    write_event(events, state, 0, 0, target, own_starts[target])
    return targets.shape[0]


@jit
def number_nodes(values, start, table, least, node_values, keys, numbers, state):
    """Write the number of each value from `start` on; return the position of the first value without a slot.

    `table` has the numbers by value, from `least` on; 0 for none. If `least` is the least 64-bit number, it is a hash
    table of a size that is a power of two. The caller must have room for as many new nodes as there are values.
    """
    size = table.shape[0]
    is_hash = least == MIN_INT64
    mask = np.int64(size - 1)
    for i in range(start, values.shape[0]):
        value = values[i]
        if is_hash:
            slot = np.int64(mix(np.uint64(value)) >> np.uint64(1)) & mask
            while table[slot] != 0 and node_values[table[slot]] != value:
                slot = (slot + 1) & mask
        else:
            if value < least or value - least >= size or value - least < 0:
                return i
            slot = value - least
        node = np.int64(table[slot])
        if node == 0:
            node = state[NODE_COUNT]
            state[NODE_COUNT] = node + 1
            table[slot] = node
            node_values[node] = value
            keys[node, HOPS] = -1
        numbers[i] = node
    return values.shape[0]


def examples() -> Iterator[Example]:
    """Yield each kernel that Python calls, with example arguments."""
    yield count_entries, (NODES, NUMBER, TABLE)
    yield lay_out_lists, (NUMBER, TABLE, COLUMN)
    yield fill_lists, (NODES, NODES, COLUMN, COLUMN, NUMBER, TABLE, NODES, COLUMN, COLUMN, COLUMN)
    lists = (TABLE, NODES, COLUMN, COLUMN, NODES, COLUMN, COLUMN, TABLE, COLUMN)
    yield apply_changes, (NODES, NODES, COLUMN, COLUMN, NUMBER, NUMBER, *lists)
    yield number_nodes, (COLUMN, NUMBER, NODES, NUMBER, COLUMN, TABLE, NODES, COLUMN)
