"""Answers computed another way, for experiments to be checked against: NumPy and sparse matrices, nothing of kpg.

Cost: linear in the answer for closures; the points-to analysis multiplies matrices until nothing changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kpg.bench.data.graphs import Ints


def closure(starts: Ints, edges: Ints, nodes: int) -> Ints:
    """Sorted codes  node * nodes + source  of what each start (source, node) leads to along edges; semi-naive."""
    order = np.argsort(edges[:, 0], kind="stable")
    targets = edges[order, 1]
    first = np.searchsorted(edges[order, 0], np.arange(nodes + 1))
    fresh = np.unique(starts[:, 1] * nodes + starts[:, 0])
    known = [fresh]
    seen = fresh
    while len(fresh):
        at, source = fresh // nodes, fresh % nodes
        counts = first[at + 1] - first[at]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found = np.unique(targets[np.repeat(first[at], counts) + within] * nodes + np.repeat(source, counts))
        place = np.minimum(np.searchsorted(seen, found), len(seen) - 1)
        fresh = found[seen[place] != found]
        seen = np.union1d(seen, fresh)
        known.append(fresh)
    return seen


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
