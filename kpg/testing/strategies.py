"""Inputs that find mistakes: few keys and diffs of ±1, so that things cancel; times that are often incomparable.

The strategies also choose the adversaries: the order in which sources step, how updates are cut into physical
batches, and how far readers have advanced. None of these may change an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

from hypothesis import strategies as st

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import Time
from kpg.testing.model import Update

Item = TypeVar("Item")


def times(depth: int, largest: int = 2) -> st.SearchStrategy[Time]:
    """Times of `depth` coordinates, each from 0 to `largest`."""
    return st.tuples(*[st.integers(0, largest)] * depth)


def depths(most: int = 3) -> st.SearchStrategy[int]:
    """How many coordinates: outside loops, in one, in two (where pairs of times are not enough)."""
    return st.integers(1, most)


def rows(arity: int, largest: int = 2) -> st.SearchStrategy[tuple[int, ...]]:
    """Rows of small ints, so that keys meet and rows repeat."""
    return st.tuples(*[st.integers(0, largest)] * arity)


def updates(
    data: st.SearchStrategy[Any], depth: int, *, max_size: int = 12, largest: int = 2
) -> st.SearchStrategy[list[Update[Any]]]:
    """Some updates to the given data, at any times in any order, with diffs of ±1: collections may go negative."""
    return st.lists(st.tuples(data, times(depth, largest), st.sampled_from([1, -1])), max_size=max_size)


@st.composite
def histories(
    draw: st.DrawFn, data: st.SearchStrategy[Any], depth: int, *, max_size: int = 12, largest: int = 2
) -> list[Update[Any]]:
    """Updates under which no count is ever negative: a row is only removed at or after a time it was inserted."""
    made: list[Update[Any]] = []
    for row, time, removed in draw(st.lists(st.tuples(data, times(depth, largest), st.booleans()), max_size=max_size)):
        made.append((row, time, 1))
        if removed:
            later = draw(times(depth, largest))
            made.append((row, tuple(a + b for a, b in zip(time, later, strict=True)), -1))
    return draw(st.permutations(made))


def schedules(*sizes: int) -> st.SearchStrategy[list[int]]:
    """Which source steps next, when source i has sizes[i] steps to make: every interleaving."""
    return st.permutations([source for source, size in enumerate(sizes) for _ in range(size)])


def interleavings(*sequences: Sequence[Item]) -> st.SearchStrategy[list[tuple[int, Item]]]:
    """The items of several sequences in one order, each tagged with its sequence, whose own order is kept."""

    def played(schedule: list[int]) -> list[tuple[int, Item]]:
        sources = [iter(sequence) for sequence in sequences]
        return [(source, next(sources[source])) for source in schedule]

    return schedules(*map(len, sequences)).map(played)


@st.composite
def batch_cuts(draw: st.DrawFn, items: Sequence[Item]) -> list[list[Item]]:
    """The items cut into consecutive pieces, some of them empty: how updates may arrive."""
    cuts = sorted(draw(st.lists(st.integers(0, len(items)), max_size=4)))
    return [list(items[start:end]) for start, end in pairwise([0, *cuts, len(items)])]


@st.composite
def sealed_batches(
    draw: st.DrawFn, stream: Sequence[Update[Item]], depth: int
) -> list[tuple[Frontier, Frontier, list[Update[Item]]]]:
    """The updates as (lower, upper, updates in between): each upper is the next lower, the last one empty."""
    bounds = [*draw(advances(depth)), Frontier()]
    return [
        (lower, upper, [update for update in stream if lower.beyond(update[1]) and not upper.beyond(update[1])])
        for lower, upper in pairwise(bounds)
    ]


def frontiers(depth: int, largest: int = 3, *, min_size: int = 0) -> st.SearchStrategy[Frontier]:
    """Antichains of times; with min_size=0 also the empty one."""
    return st.lists(times(depth, largest), min_size=min_size, max_size=4).map(Frontier)


@st.composite
def advances(draw: st.DrawFn, depth: int, largest: int = 3) -> list[Frontier]:
    """A frontier that starts at the first time and only advances, never to the empty frontier."""
    made = [Frontier.start(depth)]
    for bound in draw(st.lists(frontiers(depth, largest, min_size=1), max_size=4)):
        made.append(made[-1].join(bound))
    return made


@st.composite
def uppers(draw: st.DrawFn, depth: int) -> list[Frontier]:
    """Frontiers that advance, by any antichain, from the start until all is closed."""
    chain = [Frontier.start(depth)]
    for step in draw(st.lists(st.lists(times(depth, 4), min_size=1, max_size=3), max_size=6)):
        chain.append(chain[-1].join(Frontier(step)))
    return [*chain, CLOSED]


def sinces(upper: Frontier, depth: int, largest: int = 3) -> st.SearchStrategy[Frontier]:
    """Frontiers at or before `upper`: how far a trace sealed up to there may have been compacted, never empty."""
    return frontiers(depth, largest, min_size=1).map(upper.meet)
