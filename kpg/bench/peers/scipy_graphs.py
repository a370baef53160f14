"""SciPy's graph routines on a sparse matrix: answers, and CPU seconds including the construction of the matrix."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kpg.bench.data.graphs import Ints


def distances(edges: Ints, nodes: int, root: int) -> tuple[Ints, float]:
    """Return the number of edges from a root to each node; -1 if it is not reached."""
    from scipy.sparse.csgraph import dijkstra

    began = time.process_time()
    far = dijkstra(matrix(edges, nodes), directed=True, indices=root, unweighted=True)
    return np.where(np.isinf(far), -1, far).astype(np.int64), time.process_time() - began


def weighted_distances(edges: Ints, nodes: int, root: int) -> tuple[Ints, float]:
    """Return the least sum of weights from a root to each node, over edges (src, dst, weight); -1 if not reached."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    began = time.process_time()
    ordered = edges[np.lexsort((edges[:, 2], edges[:, 1], edges[:, 0]))]
    is_least = np.ones(len(ordered), np.bool_)  # of parallel edges
    is_least[1:] = (ordered[1:, :2] != ordered[:-1, :2]).any(axis=1)
    src, dst, weights = ordered[is_least].T
    adjacency = coo_array((weights, (src, dst)), shape=(nodes, nodes)).tocsr()
    far = dijkstra(adjacency, directed=True, indices=root)
    return np.where(np.isinf(far), -1, far).astype(np.int64), time.process_time() - began


def reached(edges: Ints, nodes: int, root: int) -> tuple[Ints, float]:
    """Return the nodes that a root reaches, sorted, with the root itself."""
    from scipy.sparse.csgraph import breadth_first_order

    began = time.process_time()
    order = breadth_first_order(matrix(edges, nodes), root, directed=True, return_predecessors=False)
    return np.sort(order).astype(np.int64), time.process_time() - began


def weak(edges: Ints, nodes: int) -> tuple[Ints, float]:
    """Return the least node of each node's weak component."""
    return _components(edges, nodes, "weak")


def strong(edges: Ints, nodes: int) -> tuple[Ints, float]:
    """Return the least node of each node's strong component."""
    return _components(edges, nodes, "strong")


def _components(edges: Ints, nodes: int, kind: str) -> tuple[Ints, float]:
    from scipy.sparse.csgraph import connected_components

    began = time.process_time()
    labels = connected_components(matrix(edges, nodes), directed=True, connection=kind)[1]
    first = np.full(labels.max() + 1, nodes, np.int64)
    np.minimum.at(first, labels, np.arange(nodes))
    return first[labels], time.process_time() - began


def matrix(edges: Ints, nodes: int) -> Any:
    """Return the adjacency matrix, compressed by row."""
    from scipy.sparse import coo_array

    ones = np.ones(len(edges), np.int32)  # parallel edges are summed
    return coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(nodes, nodes)).tocsr()
