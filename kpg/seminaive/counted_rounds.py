"""Least values round by round, where counts may be negative: as slow as it is plain.

    candidates of a round  =  starts  +  { (v, value(u) + weight) : an edge from u to v }, with the counts of edges
    values of the round    =  for each node the least candidate with a positive count

A loop begins with its starts or with nothing, and a round may keep the values of the round before, instead of the
starts or beside them (`RoundRules`). With negative counts the fixed point depends on it.

The rounds end when values no longer change. A negative count cancels the candidates of other edges, so values may go up
and down from round to round, and need not end (TooManyRounds). Cost of a round: a sort of all edges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from kpg.columns.pause_points import pause
from kpg.columns.updates import Ints
from kpg.errors import Overflow, TooManyRounds
from kpg.kernels import neighbour_lists as lists
from kpg.seminaive.graph_lists import GraphLists

if TYPE_CHECKING:
    from kpg.seminaive.least_values import LeastValueSpec


NEGATIVE_COUNTS = "Some edges are there a negative number of times."
MAX_EXACT_COUNT = 1 << 20  # products of two greater counts, summed up, may leave 64 bits


class CountedEdges(NamedTuple):
    """Edges with counts of either sign; starts are edges from node 0, and their weights are values."""

    sources: Ints
    targets: Ints
    weights: Ints
    counts: Ints


class RoundRules(NamedTuple):
    """The rows that a loop begins with, and those that each round has besides the ones that follow from edges."""

    begins_with_starts: bool = False  # round 0 has the starts as they are, not only the least of them; else nothing
    has_starts: bool = True
    keeps_values: bool = False  # the values of the round before


class CountedValues(NamedTuple):
    """Nodes in ascending order, with values and counts."""

    nodes: Ints
    values: Ints
    counts: Ints


def counted_entries(graph: GraphLists, kind: int) -> CountedEdges:
    """Return all entries of a kind, START or IN, with their counts, and the negative ones."""
    entries = graph.starts if kind == lists.START else graph.incoming
    owners, slots = graph.entries(entries)
    if kind == lists.START:
        weights = graph.start_values[slots]
    else:
        weights = entries.weights[slots] if graph.weighted else np.full(len(slots), graph.step)
    counts = np.ones(len(slots), np.int64) if kind == lists.START and graph.own_starts else entries.counts[slots]
    sources = np.zeros(len(slots), np.int64) if kind == lists.START else entries.nodes[slots].astype(np.int64)
    columns = np.stack([sources, owners, weights, counts])
    missing = [(*name[1:], count) for name, count in graph.unpaid.items() if name[0] == kind]
    if missing:
        columns = np.concatenate([columns, np.array(missing, np.int64).T], axis=1)
        if kind == lists.IN and not graph.weighted:
            columns[2] = graph.step
    if kind == lists.IN and graph.both_ways:  # an edge from a node to itself counts in both directions
        columns[3, columns[0] == columns[1]] *= 2
    return CountedEdges(*columns)


def counted_rounds(
    starts: CountedEdges, edges: CountedEdges, node_count: int, spec: LeastValueSpec
) -> tuple[npt.NDArray[np.bool_], Ints]:
    """Return which nodes have a value, and the values."""
    rules = spec.rounds
    given = CountedValues(starts.targets, starts.weights, starts.counts)
    nothing = CountedValues(*[column[:0] for column in given])
    values = consolidated(given) if rules.begins_with_starts else nothing
    for _ in range(spec.max_rounds + 1):
        pause()
        candidates = [followed(values, edges, spec.name)]
        candidates += [given] if rules.has_starts else []
        candidates += [values] if rules.keeps_values else []
        now = least_present(CountedValues(*map(np.concatenate, zip(*candidates, strict=True))))
        if all(map(np.array_equal, now, values)):
            reached, least = np.zeros(node_count, np.bool_), np.zeros(node_count, np.int64)
            reached[now.nodes], least[now.nodes] = True, now.values
            return reached, least
        values = now
    raise TooManyRounds(
        f"{spec.name} did not reach a fixed point within {spec.max_rounds} rounds",
        detail=NEGATIVE_COUNTS,
    )


def followed(values: CountedValues, edges: CountedEdges, name: str) -> CountedValues:
    """Return the values that follow from others along all edges."""
    low = np.searchsorted(values.nodes, edges.sources, side="left")
    matches = np.searchsorted(values.nodes, edges.sources, side="right") - low
    by_edge = np.repeat(np.arange(len(matches)), matches)
    of_value = np.arange(len(by_edge)) - np.repeat(np.cumsum(matches) - matches - low, matches)
    before, weights = values.values[of_value], edges.weights[by_edge]
    sums = before + weights
    if ((sums < before) != (weights < 0)).any():
        raise Overflow(f"a value of {name} leaves 64 bits", detail=NEGATIVE_COUNTS)
    return CountedValues(edges.targets[by_edge], sums, exact(values.counts)[of_value] * exact(edges.counts)[by_edge])


def exact(counts: Ints) -> Ints:
    """Return counts of which products and sums are exact."""
    if len(counts) and max(int(counts.max()), -int(counts.min())) > MAX_EXACT_COUNT:
        return counts.astype(object)
    return counts


def consolidated(rows: CountedValues) -> CountedValues:
    """Return each node and value once, with its count if that is not zero, in ascending order."""
    order = np.lexsort((rows.values, rows.nodes))
    nodes, values, counts = rows.nodes[order], rows.values[order], exact(rows.counts[order])
    first = np.flatnonzero(np.append(True, (nodes[1:] != nodes[:-1]) | (values[1:] != values[:-1]))[: len(nodes)])
    sums = np.add.reduceat(counts, first) if len(first) else counts
    there = np.flatnonzero(sums != 0)
    return CountedValues(nodes[first[there]], values[first[there]], sums[there])


def least_present(candidates: CountedValues) -> CountedValues:
    """Return the least value with a positive count of each node, once."""
    rows = consolidated(candidates)
    present = np.flatnonzero(rows.counts > 0)
    nodes, values = rows.nodes[present], rows.values[present]
    first = np.flatnonzero(np.append(True, nodes[1:] != nodes[:-1])[: len(nodes)])
    return CountedValues(nodes[first], values[first], np.ones(len(first), np.int64))
