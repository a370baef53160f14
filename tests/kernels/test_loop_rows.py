"""The heap, the sums and the index of a small loop's rows equal what Python computes."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.kernels.loop_rows import (
    COUNTERS,
    DIFF,
    FIELDS,
    FREE,
    FREE_ROWS,
    HEAP_SIZE,
    NEXT,
    NO_ROW,
    NODE,
    USED,
    add_to_index,
    bucket_of,
    is_of_key,
    new_row,
    pop_heap,
    push_heap,
    sum_group,
)

numbers = st.integers(-3, 3)


def empty_rows(capacity, lanes):
    state = np.zeros(COUNTERS, np.int64)
    state[FREE], state[FREE_ROWS] = NO_ROW, capacity
    return np.zeros((capacity, FIELDS + lanes), np.int64), state


def fill(rows, state, updates, node=0):
    """Write updates ((lanes…), diff) as rows of a node; return their slots."""
    slots = np.empty(len(updates), np.int64)
    for place, (lanes, diff) in enumerate(updates):
        slots[place] = slot = new_row(rows, state)
        rows[slot, NODE], rows[slot, DIFF] = node, diff
        rows[slot, FIELDS : FIELDS + len(lanes)] = lanes
    return slots


@given(st.lists(st.integers(-50, 50), max_size=40))
def test_the_heap_returns_the_least_key_first(keys):
    _, state = empty_rows(1, 1)
    heap_keys, heap_slots = np.empty((2, max(1, len(keys))), np.int64)
    for slot, key in enumerate(keys):
        push_heap(heap_keys, heap_slots, state, key, slot)
    popped = [keys[pop_heap(heap_keys, heap_slots, state)] for _ in keys]
    assert popped == sorted(keys) and state[HEAP_SIZE] == 0


@given(st.lists(st.tuples(st.tuples(numbers, numbers), st.integers(-2, 2)), min_size=1, max_size=40))
def test_groups_are_sorted_and_added_up(updates):
    rows, state = empty_rows(len(updates), 2)
    group = fill(rows, state, updates)
    kept = sum_group(rows, state, group, group.copy(), len(group), 2, 1)
    found = [(tuple(rows[slot, FIELDS:].tolist()), int(rows[slot, DIFF])) for slot in group[:kept]]
    expected = Counter()
    for lanes, diff in updates:
        expected[lanes] += diff
    assert found == sorted((lanes, diff) for lanes, diff in expected.items() if diff)
    assert state[FREE_ROWS] == len(rows) - kept and state[USED] == len(rows)


@given(st.lists(st.tuples(numbers, st.tuples(numbers, numbers)), min_size=1, max_size=40))
def test_diffs_of_several_lanes_are_added_up(updates):
    rows, state = empty_rows(len(updates), 3)
    group = fill(rows, state, [((key, *diffs), 1) for key, diffs in updates])
    kept = sum_group(rows, state, group, group.copy(), len(group), 1, 2)
    found = [tuple(rows[slot, FIELDS:].tolist()) for slot in group[:kept]]
    sums = {key: tuple(map(sum, zip(*(d for k, d in updates if k == key), strict=True))) for key, _ in updates}
    assert found == sorted((key, *diffs) for key, diffs in sums.items() if any(diffs))


@given(st.lists(st.tuples(st.integers(0, 2), st.tuples(numbers, numbers)), min_size=1, max_size=30))
def test_the_index_finds_the_rows_of_a_node_and_a_key(entries):
    rows, state = empty_rows(len(entries), 2)
    heads = np.full(8, NO_ROW, np.int64)
    slots = [int(fill(rows, state, [(lanes, 1)], node)[0]) for node, lanes in entries]
    for slot, (node, _) in zip(slots, entries, strict=True):
        add_to_index(rows, heads, slot, node, 1)
    for slot, (node, lanes) in zip(slots, entries, strict=True):
        found = set()
        row = int(heads[bucket_of(rows, slot, node, 1, len(heads))])
        while row != NO_ROW:
            if is_of_key(rows, row, node, slot, 1):
                found.add(row)
            row = int(rows[row, NEXT])
        assert found == {s for s, (n, other) in zip(slots, entries, strict=True) if n == node and other[0] == lanes[0]}
