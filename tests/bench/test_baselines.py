"""The single-threaded programs agree with a search in plain Python, and with each other."""

import numpy as np
import pytest

from kpg.bench.baselines import array_graphs, hash_map_graphs
from kpg.bench.baselines.incremental_bfs import FAR, ChangingDistances
from kpg.bench.data.graphs import random_graph

pytestmark = pytest.mark.jit  # as plain Python they overflow the hash


def searched(edges, root):
    """Return distances by a search in plain Python."""
    onward = {}
    for a, b in edges:
        onward.setdefault(a, []).append(b)
    distance, level = {root: 0}, [root]
    while level:
        fresh = [b for a in level for b in onward.get(a, [])]
        level = []
        for node in fresh:
            if node not in distance:
                distance[node] = distance[min_parent(edges, distance, node)] + 1
                level.append(node)
    return distance


def min_parent(edges, distance, node):
    return min((a for a, b in edges if b == node and a in distance), key=lambda a: distance[a])


@pytest.mark.parametrize("seed", range(3))
def test_distances_and_components_are_right(seed):
    edges = random_graph(60, 80, seed)
    sources, targets = edges[:, 0].copy(), edges[:, 1].copy()
    root = int(sources[0])
    starts, ends = array_graphs.forward(sources, targets, 60)
    expected = searched(edges.tolist(), root)
    assert {n: d for n, d in enumerate(array_graphs.distances(starts, ends, 60, root).tolist()) if d >= 0} == expected
    nodes, far = hash_map_graphs.distances(starts, ends, 60, root)
    assert dict(zip(nodes.tolist(), far.tolist(), strict=True)) == expected
    least = array_graphs.components(sources, targets, 60)
    both = np.concatenate([edges, edges[:, ::-1]]).tolist()
    assert all(least[node] == min(searched(both, node)) for node in range(60))
    ends, labels = hash_map_graphs.components(sources, targets)
    assert dict(zip(ends.tolist(), labels.tolist(), strict=True)) == {
        node: least[node] for node in np.unique(edges).tolist()
    }


@pytest.mark.parametrize("seed", range(4))
def test_distances_stay_right_while_edges_are_inserted_and_removed(seed):
    edges = random_graph(25, 120, seed)
    root = int(edges[0, 0])
    state = ChangingDistances(25, edges[:40], root, 80)
    for step in range(80):
        state.apply(edges[40 + step : 41 + step], edges[step : step + 1])
        distances = {node: far for node, far in enumerate(state.far.tolist()) if far < FAR}
        assert distances == searched(edges[step + 1 : 41 + step].tolist(), root)
