"""Graph algorithms on one thread with an array for each property of a node, which needs nodes 0 .. n - 1.

    forward(...) gives starts int64[nodes + 1] and ends int64[edges]:
    the targets of node u are ends[starts[u] : starts[u + 1]]

The kernels are compiled on first call, not with those of the engine, because only experiments need them. They share no
code with the engine (`components` repeats kpg/kernels/union_find.py), because experiments check its answers with them.
"""

from __future__ import annotations

import numpy as np

from kpg.kernels.jit import jit


def forward(sources, targets, nodes):
    """Return the graph, packed by source."""
    order = np.argsort(sources, kind="stable")
    starts = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(sources, minlength=nodes), out=starts[1:])
    return starts, np.ascontiguousarray(targets[order])


@jit
def distances(starts, ends, nodes, root):
    """Return the number of edges from the root to each node; -1 if it is not reached."""
    distance = np.full(nodes, -1, np.int64)
    queue = np.empty(nodes, np.int64)
    queue[0], distance[root] = root, 0
    first, last = 0, 1
    while first < last:
        node = queue[first]
        first += 1
        for at in range(starts[node], starts[node + 1]):
            other = ends[at]
            if distance[other] < 0:
                distance[other] = distance[node] + 1
                queue[last] = other
                last += 1
    return distance


@jit
def components(sources, targets, nodes):
    """Return the least node of each node's component, by union-find."""
    parent = np.arange(nodes)
    for edge in range(len(sources)):
        a, b = sources[edge], targets[edge]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a < b:
            parent[b] = a
        elif b < a:
            parent[a] = b
    for node in range(nodes):
        parent[node] = parent[parent[node]]
    return parent
