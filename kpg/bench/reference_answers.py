"""Expected answers, computed without kpg: NumPy and sparse matrices.

Cost: linear in the answer for closures; the points-to analysis multiplies matrices until a fixed point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kpg.bench.data.graphs import Ints


class Successors:
    """The targets of edges by source, for whole columns of nodes."""

    def __init__(self, edges: Ints, nodes: int) -> None:
        order = np.argsort(edges[:, 0], kind="stable")
        self.targets = edges[order, 1]
        self.first = np.searchsorted(edges[order, 0], np.arange(nodes + 1))

    def step(self, nodes: Ints, companions: Ints) -> tuple[Ints, Ints]:
        """Return, for each edge from one of `nodes`, its target and the companion of the node."""
        counts = self.first[nodes + 1] - self.first[nodes]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.targets[np.repeat(self.first[nodes], counts) + within], np.repeat(companions, counts)


def closure(starts: Ints, edges: Ints, nodes: int) -> Ints:
    """Return sorted codes  node * nodes + source  of the nodes that each start (source, node) reaches; semi-naive."""
    successors = Successors(edges, nodes)

    def step(fresh: Ints) -> Ints:
        target, source = successors.step(fresh // nodes, fresh % nodes)
        return target * nodes + source

    return fixed_point(starts[:, 1] * nodes + starts[:, 0], step)


def same_generation(edges: Ints, nodes: int, skip: Ints | None = None) -> Ints:
    """Return sorted codes  x * nodes + y  of different nodes with a common ancestor equally far away; semi-naive.

    A pair with its first node in `skip` has no descendants in the answer.
    """
    successors = Successors(edges, nodes)
    parents = np.unique(edges[:, 0])

    def children(a: Ints, b: Ints) -> Ints:
        x, partner = successors.step(a, b)
        y, x_again = successors.step(partner, x)
        return x_again * nodes + y

    def step(fresh: Ints) -> Ints:
        kept = fresh if skip is None else fresh[~np.isin(fresh // nodes, skip)]
        return children(kept // nodes, kept % nodes)

    start = children(parents, parents)
    start = start[start // nodes != start % nodes]
    return fixed_point(start, step)


def fixed_point(start: Ints, step: Callable[[Ints], Ints]) -> Ints:
    """Return all numbers that `step` derives from some numbers, sorted, each once; semi-naive."""
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
    """Return value flows and memory aliases as sorted codes  x * nodes + y, by multiplying sparse matrices."""
    a, d = matrix(assign, nodes), matrix(deref, nodes)
    ends = np.unique(np.concatenate([assign, deref]))
    flow = ones(a + matrix(np.stack([ends, ends], axis=1), nodes))
    alias = ones(a * 0)
    while True:
        before = flow.nnz, alias.nnz
        flow = ones(flow + a @ alias + flow @ flow)
        value_alias = ones(flow.T @ flow + flow.T @ alias @ flow)
        alias = ones(d.T @ value_alias @ d)
        if (flow.nnz, alias.nnz) == before:
            return codes(flow, nodes), codes(alias, nodes)


def context_sensitive_points_to(assign: Ints, deref: Ints, nodes: int) -> tuple[Ints, Ints, Ints]:
    """Return value flows, value aliases and memory aliases of CSPA as sorted codes, by multiplying sparse matrices."""
    a, d = matrix(assign, nodes), matrix(deref, nodes)
    ends = np.unique(assign)
    same = matrix(np.stack([ends, ends], axis=1), nodes)
    flow, memory, value = ones(a + same), same, ones(a * 0)
    while True:
        before = flow.nnz, memory.nnz, value.nnz
        flow = ones(flow + a @ memory + flow @ flow)
        value = ones(flow.T @ flow + flow.T @ memory @ flow)
        memory = ones(same + d.T @ value @ d)
        if (flow.nnz, memory.nnz, value.nnz) == before:
            return codes(flow, nodes), codes(value, nodes), codes(memory, nodes)


def matrix(edges: Ints, nodes: int) -> Any:
    """Return edges as a sparse matrix of zeros and ones."""
    from scipy.sparse import coo_array

    return ones(coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(nodes, nodes)).tocsr())


def ones(counts: Any) -> Any:
    """Return a sparse matrix with a one wherever `counts` is not zero."""
    counts = counts.tocsr()
    counts.eliminate_zeros()
    counts.data[:] = 1
    return counts


def codes(relation: Any, nodes: int) -> Ints:
    """Return the positions of a matrix's ones as sorted numbers."""
    pairs = relation.tocoo()
    return np.sort(pairs.row.astype(np.int64) * nodes + pairs.col)
