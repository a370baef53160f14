"""Strongly connected components of a changing graph equal those of its closure, in all regimes: A6.5, A17.11."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.kernels import strong_components as kernels
from kpg.seminaive import graph_lists, maintained_components
from kpg.seminaive.graph_lists import GraphChange
from kpg.seminaive.maintained_components import MaintainedComponents
from kpg.testing import kernel_twins as twins

edge = st.tuples(st.integers(0, 7), st.integers(0, 7))
epochs = st.lists(st.dictionaries(edge, st.sampled_from([1, 1, 2, -1, -1]), max_size=14), min_size=1, max_size=8)


def change_of(changes):
    data = np.array(list(changes), np.int64).reshape(len(changes), 2).T.copy()
    return GraphChange(data, np.array(list(changes.values()), np.int64))


def apply(components, answer, changes):
    """Change the graph, apply the changes to the answer, and check that they fit."""
    changed = components.change(change_of(changes))
    diffs = np.broadcast_to(changed.diffs[0], changed.data.shape[1]).tolist()
    for row, diff in sorted(zip(map(tuple, changed.data.T.tolist()), diffs, strict=True), key=lambda pair: pair[1]):
        assert (row in answer) == (diff < 0)
        (answer.remove if diff < 0 else answer.add)(row)


def check_steps(components, edges):
    """Check that steps are distances from and to the root within components, and that rings hold their nodes."""
    graph = components.graph
    parts, values = components._parts[: graph.node_count], graph.values
    assert not parts[:, kernels.FLAGS].any()
    component = {int(values[n]): int(values[parts[n, 0]]) for n in np.flatnonzero(parts[:, 0])}
    for column, (start, end) in ((kernels.AHEAD, (0, 1)), (kernels.BEHIND, (1, 0))):
        far = {node: 0 for node, root in component.items() if node == root}
        for round_ in range(len(component)):
            for row in edges:
                u, v = row[start], row[end]
                if far.get(u) == round_ and component[u] == component[v] and v not in far:
                    far[v] = round_ + 1
        assert far == {int(values[n]): int(parts[n, column]) for n in np.flatnonzero(parts[:, 0])}
    for node in np.flatnonzero(parts[:, 0]).tolist():
        ring, at = {node}, int(parts[node, kernels.NEXT])
        while at != node:
            ring.add(at)
            at = int(parts[at, kernels.NEXT])
        assert ring == set(np.flatnonzero(parts[:, 0] == parts[node, 0]).tolist())


@settings(max_examples=300)
@given(
    epochs,
    st.sampled_from([1, -1, 10**15]),
    st.sampled_from([0, 1 << 10]),
    st.sampled_from([0, 3, 1 << 16]),
    st.sampled_from([-1, 1 << 16]),
)
def test_components_equal_those_of_the_closure(epochs, factor, load_rows, limit, sparse):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintained_components, "MIN_LOAD_ROWS", load_rows)
        patch.setattr(maintained_components, "MIN_SEARCH_LIMIT", limit)
        patch.setattr(maintained_components, "MIN_RECORDS", 1)
        patch.setattr(graph_lists, "MIN_SPARSE", sparse)
        components, answer, counts = MaintainedComponents(), set(), {}
        for epoch in epochs:
            changes = {(u * factor, v * factor): diff for (u, v), diff in epoch.items()}
            changes = {row: diff for row, diff in changes.items() if counts.get(row, 0) + diff >= 0}
            for row, diff in changes.items():
                counts[row] = counts.get(row, 0) + diff
            apply(components, answer, changes)
            edges = [row for row, count in counts.items() if count > 0]
            assert answer == set(twins.strong_components(edges).items())
            assert sorted(map(tuple, components.rows().T.tolist())) == sorted(answer)
            check_steps(components, edges)
            assert components.row_count() == len(answer)


@given(epochs)
def test_an_edge_is_there_if_it_has_a_positive_number_of_copies(epochs):
    components, answer, counts = MaintainedComponents(), set(), {}
    for changes in epochs:
        for row, diff in changes.items():
            counts[row] = counts.get(row, 0) + diff
        apply(components, answer, changes)
        assert answer == set(twins.strong_components([row for row, count in counts.items() if count > 0]).items())


def test_a_search_is_not_misled_by_components_that_an_earlier_one_merged():
    """The edge 3 → 4 merges 3 and 4; the cycle that 0 → 3 closes leads through them, too."""
    components, answer = MaintainedComponents(), set()
    apply(components, answer, {(0, 0): 1, (1, 0): 1, (2, 0): 1, (3, 5): 1, (4, 3): 1, (5, 0): 1})
    apply(components, answer, {(3, 4): 1, (0, 3): 1})
    assert answer == {(0, 0), (1, 1), (2, 2), (3, 0), (4, 0), (5, 0)}


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_many_changes_of_one_edge(seed):
    random = Random(seed)
    components, answer, edges = MaintainedComponents(), set(), set()
    for _ in range(120):
        row = random.randrange(8), random.randrange(8)
        apply(components, answer, {row: -1 if row in edges else 1})
        edges ^= {row}
        assert answer == set(twins.strong_components(list(edges)).items())


def test_larger_graphs_change_as_networkx_says():
    import networkx as nx

    rng = np.random.default_rng(5)
    for size, degree in ((300, 1.1), (300, 2.0), (60, 1.5)):
        components, answer, edges = MaintainedComponents(), set(), set()
        for epoch in range(40):
            count = int(size * degree) if epoch == 0 else int(rng.choice([1, 5, 60]))
            added = {tuple(row) for row in rng.integers(0, size, (count, 2)).tolist()} - edges
            removed = set() if epoch == 0 else {row for row in edges if rng.random() < count / len(edges)}
            apply(components, answer, dict.fromkeys(added, 1) | dict.fromkeys(removed, -1))
            edges = edges - removed | added
            found = nx.strongly_connected_components(nx.DiGraph(list(edges)))
            assert answer == {(node, min(nodes)) for nodes in found for node in nodes}
            check_steps(components, edges)
