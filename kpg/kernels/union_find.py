"""Union-find over numbered nodes: the components that pairs of nodes connect.

Preconditions: ends are numbers from 0 to n - 1, and parents[i] = i for all n nodes. Cost: nearly linear in the pairs.
Twin: kpg.testing.kernel_twins.union_find_twin.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpg.kernels.example import COLUMN, TABLE, Example
from kpg.kernels.jit import jit


@jit
def connect(ends, parents):
    """Connect the two ends of each pair (a column of `ends`); then `parents` is the least node of each component."""
    for pair in range(ends.shape[1]):
        first, second = ends[0, pair], ends[1, pair]
        while parents[first] != first:  # each node passed skips its parent: paths stay short
            parents[first] = parents[parents[first]]
            first = parents[first]
        while parents[second] != second:
            parents[second] = parents[parents[second]]
            second = parents[second]
        if first < second:
            parents[second] = first
        elif second < first:
            parents[first] = second
    for node in range(parents.shape[0]):  # a parent is less than its children, so it is final already
        parents[node] = parents[parents[node]]


def examples() -> Iterator[Example]:
    yield connect, (TABLE, COLUMN)
