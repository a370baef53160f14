"""Answers computed another way, for experiments to be checked against: NumPy and sparse matrices, nothing of kpg.

Cost: linear in the answer for closures; the points-to analysis multiplies matrices until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kpg.bench.data.graphs import Ints


class Onward:
    """The targets of nodes, for whole columns of nodes."""

    def __init__(self, edges: Ints, nodes: int) -> None:
        order = np.argsort(edges[:, 0], kind="stable")
        self.targets = edges[order, 1]
        self.first = np.searchsorted(edges[order, 0], np.arange(nodes + 1))

    def step(self, at: Ints, beside: Ints) -> tuple[Ints, Ints]:
        """For each edge from a node of `at`: its target, and what stood beside the node."""
        counts = self.first[at + 1] - self.first[at]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.targets[np.repeat(self.first[at], counts) + within], np.repeat(beside, counts)


def closure(starts: Ints, edges: Ints, nodes: int) -> Ints:
    """Sorted codes  node * nodes + source  of what each start (source, node) leads to along edges; semi-naive."""
    onward = Onward(edges, nodes)

    def step(fresh: Ints) -> Ints:
        target, source = onward.step(fresh // nodes, fresh % nodes)
        return target * nodes + source

    return fixed_point(starts[:, 1] * nodes + starts[:, 0], step)


def same_generation(edges: Ints, nodes: int) -> Ints:
    """Sorted codes  x * nodes + y  of different nodes with a common ancestor as many steps away; semi-naive."""
    onward = Onward(edges, nodes)
    parents = np.unique(edges[:, 0])

    def children(a: Ints, b: Ints) -> Ints:
        x, beside = onward.step(a, b)
        y, again = onward.step(beside, x)
        return again * nodes + y

    start = children(parents, parents)
    start = start[start // nodes != start % nodes]
    return fixed_point(start, lambda fresh: children(fresh // nodes, fresh % nodes))


def fixed_point(start: Ints, step: Callable[[Ints], Ints]) -> Ints:
    """All that some numbers lead to, sorted, each once; only what is new is looked at again."""
    fresh = np.unique(start)
    runs: list[Ints] = []  # sorted, disjoint, each at least twice as long as the next
    while len(fresh):
        runs.append(fresh)
        while len(runs) > 1 and len(runs[-2]) < 2 * len(runs[-1]):
            runs[-2:] = [np.sort(np.concatenate(runs[-2:]))]
        fresh = np.unique(step(fresh))
        for run in runs:
            fresh = fresh[run[np.minimum(np.searchsorted(run, fresh), len(run) - 1)] != fresh]
    return np.sort(np.concatenate(runs)) if runs else fresh


def points_to(assign: Ints, deref: Ints, nodes: int) -> tuple[Any, Any]:
    """Value flows and memory aliases as sorted codes  x * nodes + y, by multiplying sparse matrices."""
    a, d = matrix(assign, nodes), matrix(deref, nodes)
    touched = np.unique(np.concatenate([assign, deref]))
    flow = truth(a + matrix(np.stack([touched, touched], axis=1), nodes))
    alias = truth(a * 0)
    while True:
        before = flow.nnz, alias.nnz
        flow = truth(flow + a @ alias + flow @ flow)
        value_alias = truth(flow.T @ flow + flow.T @ alias @ flow)
        alias = truth(d.T @ value_alias @ d)
        if (flow.nnz, alias.nnz) == before:
            return codes(flow, nodes), codes(alias, nodes)


def matrix(edges: Ints, nodes: int) -> Any:
    """Edges as a sparse matrix of zeros and ones."""
    from scipy.sparse import coo_array

    return truth(coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(nodes, nodes)).tocsr())


def truth(counts: Any) -> Any:
    """The same places, each with a one."""
    counts = counts.tocsr()
    counts.eliminate_zeros()
    counts.data[:] = 1
    return counts


def codes(found: Any, nodes: int) -> Ints:
    """The places of a matrix as sorted numbers."""
    at = found.tocoo()
    return np.sort(at.row.astype(np.int64) * nodes + at.col)
