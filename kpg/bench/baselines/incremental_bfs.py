"""Distances from a root, maintained by a hand-written program while edges are inserted and removed.

One thread, arrays. The edges of each node are a linked list in slots of one array, so inserting or removing an edge
costs the degree of its node. An insertion relaxes from its target. A removal first deletes the distances of all nodes
that depend on the edge alone, level by level, and then recomputes them from their remaining neighbours (Ramalingam and
Reps).
"""

from __future__ import annotations

import numpy as np

from kpg.kernels.jit import jit

FAR = 1 << 60


class ChangingDistances:
    """The state: both directions of the graph, the distances, and scratch space."""

    def __init__(self, nodes, edges, root, insertions):
        most = len(edges) + insertions
        self.first = np.full((2, nodes), -1, np.int64)  # slot of each node's first edge, outgoing and incoming
        self.following = np.empty((2, most), np.int64)
        self.ends = np.empty((2, most), np.int64)  # sources and targets
        self.far = np.full(nodes, FAR, np.int64)
        self.scratch = np.empty((3, nodes), np.int64)
        self.root = root
        self.far[root] = 0
        self.used = _insert(edges, 0, self.first, self.following, self.ends, self.far, self.scratch)

    def apply(self, inserts, removals):
        """Insert edges, then remove edges, and update the distances."""
        self.used = _insert(inserts, self.used, self.first, self.following, self.ends, self.far, self.scratch)
        _remove(removals, self.root, self.first, self.following, self.ends, self.far, self.scratch)


@jit
def _insert(edges, used, first, following, ends, far, scratch):
    for row in range(len(edges)):
        for side in range(2):
            node = edges[row, side]
            ends[side, used] = node
            following[side, used], first[side, node] = first[side, node], used
        used += 1
        a, b = edges[row, 0], edges[row, 1]
        if far[a] + 1 < far[b]:
            far[b] = far[a] + 1
            _spread(b, first, following, ends, far, scratch)
    return used


@jit
def _spread(start, first, following, ends, far, scratch):
    """Relax from a node in the order of distance, so that no node occurs twice."""
    at, last = 0, 1
    scratch[0, 0] = start
    while at < last:
        node = scratch[0, at]
        at += 1
        edge = first[0, node]
        while edge >= 0:
            other = ends[1, edge]
            if far[node] + 1 < far[other]:
                far[other] = far[node] + 1
                scratch[0, last] = other
                last += 1
            edge = following[0, edge]


@jit
def _held(node, first, following, ends, far):
    """Return whether some edge still justifies a node's distance."""
    edge = first[1, node]
    while edge >= 0:
        if far[ends[0, edge]] + 1 == far[node]:
            return True
        edge = following[1, edge]
    return False


@jit
def _remove(removals, root, first, following, ends, far, scratch):
    for row in range(len(removals)):
        a, b = removals[row, 0], removals[row, 1]
        edge = first[0, a]
        while edge >= 0 and ends[1, edge] != b:
            edge = following[0, edge]
        if edge < 0:
            continue
        for side in range(2):
            node, at, before = removals[row, side], first[side, removals[row, side]], -1
            while at != edge:
                before, at = at, following[side, at]
            if before < 0:
                first[side, node] = following[side, edge]
            else:
                following[side, before] = following[side, edge]
        if b != root and far[b] < FAR and far[a] + 1 == far[b] and not _held(b, first, following, ends, far):
            _fall(b, root, first, following, ends, far, scratch)


@jit
def _fall(start, root, first, following, ends, far, scratch):
    """Delete the distances that no edge justifies any more, level by level, then recompute them."""
    fallen, at = 1, 0
    scratch[1, 0], scratch[2, 0], far[start] = start, far[start], FAR
    while at < fallen:
        node, was = scratch[1, at], scratch[2, at]
        at += 1
        edge = first[0, node]
        while edge >= 0:
            other = ends[1, edge]
            if other != root and far[other] == was + 1 and not _held(other, first, following, ends, far):
                scratch[1, fallen], scratch[2, fallen], far[other] = other, far[other], FAR
                fallen += 1
            edge = following[0, edge]
    for index in range(fallen):
        node = scratch[1, index]
        edge = first[1, node]
        while edge >= 0:
            if far[ends[0, edge]] + 1 < far[node]:
                far[node] = far[ends[0, edge]] + 1
            edge = following[1, edge]
        if far[node] < FAR:
            _spread(node, first, following, ends, far, scratch)
