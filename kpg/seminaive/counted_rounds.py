"""Least values round by round, where counts may be negative: as slow as it is plain.

    candidates of a round  =  starts  +  { (v, value(u) + weight) : an edge from u to v }, with the counts of edges
    values of the round    =  for each node the least candidate with a positive count

The rounds end when values no longer change. A negative count cancels the candidates of other edges, so values may go up
and down from round to round, and need not end (TooManyRounds). Cost of a round: a sort of all edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kpg.columns.pause_points import pause
from kpg.columns.updates import Ints
from kpg.errors import Overflow, TooManyRounds

if TYPE_CHECKING:
    from kpg.seminaive.least_values import LeastValueSpec


NEGATIVE_COUNTS = "Some edges are there a negative number of times."
MAX_SUMMED_COUNT = 1 << 31  # sums of greater counts may leave 64 bits


class CountedEdges(NamedTuple):
    """Edges with counts of either sign; starts are edges from node 0, and their weights are values."""

    sources: Ints
    targets: Ints
    weights: Ints
    counts: Ints


def counted_rounds(
    starts: CountedEdges, edges: CountedEdges, node_count: int, spec: LeastValueSpec
) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Return which nodes have a value, and the values."""
    reached, values = np.zeros(node_count, np.bool_), np.zeros(node_count, np.int64)
    for _ in range(spec.max_rounds + 1):
        pause()
        active = np.flatnonzero(reached[edges.sources])
        targets = np.concatenate([starts.targets, edges.targets[active]])
        before, weights = values[edges.sources[active]], edges.weights[active]
        sums = before + weights
        if ((sums < before) != (weights < 0)).any():
            raise Overflow(f"a value of {spec.name} leaves 64 bits", detail=NEGATIVE_COUNTS)
        given = np.concatenate([starts.weights, sums])
        counts = np.concatenate([starts.counts, edges.counts[active]])
        now, least = least_present(targets, given, counts, node_count)
        if np.array_equal(now, reached) and np.array_equal(least, values):
            return reached, values
        reached, values = now, least
    raise TooManyRounds(
        f"{spec.name} did not reach a fixed point within {spec.max_rounds} rounds",
        detail=NEGATIVE_COUNTS,
    )


def least_present(targets: Ints, values: Ints, counts: Ints, node_count: int) -> tuple[Any, Ints]:
    """Return which nodes have a candidate with a positive count, and the least value of such."""
    order = np.lexsort((values, targets))
    targets, values, counts = targets[order], values[order], counts[order]
    first = np.flatnonzero(np.append(True, (targets[1:] != targets[:-1]) | (values[1:] != values[:-1]))[: len(targets)])
    if len(counts) and max(int(counts.max()), -int(counts.min())) > MAX_SUMMED_COUNT:
        counts = counts.astype(object)
    present = (np.add.reduceat(counts, first) > 0).astype(np.bool_) if len(first) else np.empty(0, np.bool_)
    targets, values = targets[first[present]], values[first[present]]
    reached, least = np.zeros(node_count, np.bool_), np.zeros(node_count, np.int64)
    reached[targets] = True
    least[targets[::-1]] = values[::-1]  # the least value of a node comes first, and is written last
    return reached, least
