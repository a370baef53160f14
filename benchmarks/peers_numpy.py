"""Recomputation in NumPy and SciPy: what every answer is checked against, and what it costs to compute it afresh."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra

from benchmarks.data import Ints


def counts(keys: Ints, removed: Ints | None = None, *, space: int) -> Ints:
    """How often each key below `space` is there."""
    found = np.bincount(keys, minlength=space)
    return found if removed is None else found - np.bincount(removed, minlength=space)


def count_by_sorting(keys: Ints) -> tuple[Ints, Ints]:
    """Keys and how often each is there, by np.unique: no bound on the keys is needed."""
    values, numbers = np.unique(keys, return_counts=True)
    return values, numbers


def count_joined(left: Ints, right: Ints) -> int:
    """How many pairs of rows have equal keys, by sorting both and searching one in the other."""
    ours, theirs = np.sort(left), np.sort(right)
    found = np.searchsorted(theirs, ours, side="right") - np.searchsorted(theirs, ours, side="left")
    return int(found.sum())


def graph(edges: Ints, nodes: int) -> coo_array:
    """The digraph as a sparse matrix, compressed by row."""
    ones = np.ones(len(edges), np.int8)
    return coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(nodes, nodes)).tocsr()


def reached(edges: Ints, nodes: int, root: int) -> Ints:
    """The nodes that a root reaches, sorted; itself too."""
    order = breadth_first_order(graph(edges, nodes), root, directed=True, return_predecessors=False)
    return np.sort(order).astype(np.int64)


def distances(edges: Ints, nodes: int, root: int) -> Ints:
    """How many edges each node is away from a root; -1 if it is not reached."""
    far = dijkstra(graph(edges, nodes), directed=True, indices=root, unweighted=True)
    return np.where(np.isinf(far), -1, far).astype(np.int64)


def weak_components(edges: Ints, nodes: int) -> Ints:
    """The least node of each node's component, direction aside."""
    return _least(connected_components(graph(edges, nodes), directed=True, connection="weak")[1])


def strong_components(edges: Ints, nodes: int) -> Ints:
    """The least node of each node's strong component."""
    return _least(connected_components(graph(edges, nodes), directed=True, connection="strong")[1])


def _least(labels: Ints) -> Ints:
    first = np.full(labels.max() + 1, len(labels), np.int64)
    np.minimum.at(first, labels, np.arange(len(labels)))
    return first[labels]
