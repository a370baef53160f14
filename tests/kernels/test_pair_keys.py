"""Keys of pairs in a changing graph equal those that passes over all edges give each group: A6.8, A8.4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.kernels.neighbour_lists import HOPS, VALUE
from kpg.kernels.pair_keys import GROUP, NODE
from kpg.seminaive import graph_lists, pair_table, pair_values
from kpg.seminaive.graph_lists import GraphChange
from kpg.seminaive.least_values import LeastValueSpec
from kpg.seminaive.pair_values import PairValues
from kpg.testing import kernel_twins as twins

edge = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3))
start = st.tuples(st.integers(0, 3), st.integers(0, 6), st.integers(-2, 3))
counts = st.sampled_from([1, 1, 2, -1, -1])
epochs = st.lists(
    st.tuples(st.dictionaries(start, counts, max_size=5), st.dictionaries(edge, counts, max_size=12)),
    min_size=1,
    max_size=6,
)
specs = st.builds(
    LeastValueSpec,
    st.just("test"),
    st.just(1000),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 1, 3]),
    st.booleans(),
    group_lanes=st.integers(0, 2),
    node_lanes=st.integers(1, 2),
)


def group_row(group, spec):
    return (group, group % 2)[: spec.group_lanes]


def node_row(node, spec):
    """Return a node as a row: in two lanes, each has values that several nodes share."""
    return (node * spec_factor(spec),) if spec.node_lanes == 1 else (node % 3, node // 3)


def spec_factor(spec):
    return 10**15 if spec.group_lanes == 2 else 1


def change_of(rows, lanes):
    data = np.array([row for row, _ in rows], np.int64).reshape(len(rows), lanes).T.copy()
    return GraphChange(data, np.array([diff for _, diff in rows], np.int64))


def start_change(starts, spec):
    rows = [
        ((*group_row(group, spec), *node_row(node, spec), *([value] if spec.has_values else [])), diff)
        for (group, node, value), diff in starts.items()
    ]
    return change_of(rows, spec.group_lanes + spec.node_lanes + spec.has_values)


def edge_change(edges, spec):
    rows = [
        ((*node_row(u, spec), *node_row(v, spec), *([weight] if spec.weighted else [])), diff)
        for (u, v, weight), diff in edges.items()
    ]
    return change_of(rows, 2 * spec.node_lanes + spec.weighted)


def apply(least, answer, starts, edges):
    """Change the graph, apply the changes to the answer, and check that they fit."""
    data, diffs, is_sorted = least.change(start_change(starts, least.spec), edge_change(edges, least.spec))
    rows = list(zip(map(tuple, data.T.tolist()), np.broadcast_to(diffs[0], data.shape[1]).tolist(), strict=True))
    assert not is_sorted or rows == sorted(rows)
    for row, diff in sorted(rows, key=lambda pair: pair[1]):
        assert (row in answer) == (diff < 0)
        (answer.remove if diff < 0 else answer.add)(row)


def positive(held, changes, of):
    """Return the changes, of which none removes what is not there, by what an operator sees of a row; count them."""
    kept = {}
    for row, diff in changes.items():
        before = held.get(of(row), 0) + kept.get(of(row), 0)
        if before + diff >= 0:
            kept[of(row)] = kept.get(of(row), 0) + diff
    kept = {row: diff for row, diff in kept.items() if diff}
    for row, diff in kept.items():
        held[row] = held.get(row, 0) + diff
    return kept


def seen_start(spec):
    return lambda row: (row[0] if spec.group_lanes else 0, row[1], row[2] if spec.has_values else 0)


def seen_edge(spec):
    return lambda row: (row[0], row[1], row[2] if spec.weighted else spec.step)


def keys_of(spec, starts, edges):
    """Return the keys that the twin computes."""
    weights = dict(edges)
    if spec.both_ways:
        for (source, target, weight), count in edges.items():
            weights[target, source, weight] = max(weights.get((target, source, weight), 0), count)
    return twins.pair_keys(starts, weights)


def kept_keys(least):
    """Return the keys of all pairs that have one, by row."""
    pairs = least.table.used[least.table.used[:, HOPS] >= 0]
    rows = zip(least.groups.rows(pairs[:, GROUP]).T.tolist(), least._node_rows(pairs[:, NODE]).T.tolist(), strict=True)
    return {
        (*group, *node): tuple(key) for (group, node), key in zip(rows, pairs[:, [VALUE, HOPS]].tolist(), strict=True)
    }


@settings(max_examples=100)
@given(epochs, specs, st.sampled_from([0, 1 << 10]), st.sampled_from([-1, 1 << 16]), st.sampled_from([1, 64]))
def test_keys_equal_those_of_each_group_by_itself(epochs, spec, load_rows, sparse, room):
    """Groups and nodes of several lanes, loaded at once or row by row, built again after each change or never."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_values, "MIN_LOAD_ROWS", load_rows)
        patch.setattr(pair_values, "MIN_UNUSED", sparse)
        patch.setattr(graph_lists, "MIN_SPARSE", sparse)
        patch.setattr(pair_table, "MIN_ROWS", room)
        least, answer, starts, edges = PairValues(spec), set(), {}, {}
        for more_starts, more_edges in epochs:
            changed = positive(starts, more_starts, seen_start(spec)), positive(edges, more_edges, seen_edge(spec))
            apply(least, answer, *changed)
            keys = {
                (*group_row(group, spec), *node_row(node, spec)): key
                for (group, node), key in keys_of(spec, starts, edges).items()
            }
            assert answer == {(*row, *key[: spec.has_values]) for row, key in keys.items()}
            assert kept_keys(least) == keys


def test_a_budget_of_no_visits_pauses_after_each_pair(monkeypatch):
    monkeypatch.setattr(pair_values, "MAX_VISITS", 0)
    pauses = []
    monkeypatch.setattr(pair_values, "pause", lambda: pauses.append(1))
    least, answer = PairValues(LeastValueSpec("test", 1000, step=1, group_lanes=1)), set()
    chain = {(n, n + 1, 0): 1 for n in range(20)}
    apply(least, answer, {(7, 0, 0): 1, (8, 5, 0): 1}, chain)
    apply(least, answer, {}, {(10, 11, 0): -1})
    apply(least, answer, {}, {(10, 11, 0): 1, (0, 15, 0): 1})
    assert answer == {(7, n, min(n, n - 14 if n >= 15 else n)) for n in range(21)} | {
        (8, n, n - 5) for n in range(5, 21)
    }
    assert len(pauses) > 50


def test_a_region_is_indexed_until_the_graph_outgrows_it():
    """Nodes that come later do not fit into regions with a slot for each node."""
    least, answer = PairValues(LeastValueSpec("test", 1000, step=1, group_lanes=1)), set()
    apply(least, answer, {(1, 0, 0): 1}, {(0, n, 0): 1 for n in range(1, 6)})
    apply(least, answer, {(2, 3, 0): 1}, {(n, n + 6, 0): 1 for n in range(200)})
    apply(least, answer, {}, {(n, n + 1, 0): 1 for n in range(6, 200)})
    expected = twins.pair_keys(
        {(1, 0, 0): 1, (2, 3, 0): 1},
        {(u, v, 1): 1 for u, v in [*((0, n) for n in range(1, 6)), *((n, n + 6) for n in range(200)),
                                   *((n, n + 1) for n in range(6, 200))]},
    )  # fmt: skip
    assert answer == {(*pair, key[0]) for pair, key in expected.items()}
