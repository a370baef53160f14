"""Hypothesis strategies for inputs that find bugs: few keys, diffs of ±1 that cancel, and incomparable times.

Other strategies choose what must not change an answer: the order in which sources step, the cuts of updates into
physical batches, and the times that readers have advanced to.
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
    """Generate times of `depth` coordinates, each from 0 to `largest`."""
    return st.tuples(*[st.integers(0, largest)] * depth)


def depths(most: int = 3) -> st.SearchStrategy[int]:
    """Generate depths of times: 1 outside loops, 2 in one, 3 in two (where joins of two times are not enough)."""
    return st.integers(1, most)


def rows(arity: int, largest: int = 2) -> st.SearchStrategy[tuple[int, ...]]:
    """Generate rows of small ints, so that keys collide and rows repeat."""
    return st.tuples(*[st.integers(0, largest)] * arity)


SMALL_DIFFS = st.sampled_from([1, -1])


def huge_diffs() -> st.SearchStrategy[int]:
    """Generate diffs whose sums and products leave 64 bits and come back: powers of two, their neighbours, and ±1."""
    magnitudes = [1, 2**31, 2**32, 2**62 - 1, 2**62, 2**63 - 1]
    return st.sampled_from([sign * magnitude for magnitude in magnitudes for sign in (1, -1)])


def updates(
    data: st.SearchStrategy[Any],
    depth: int,
    *,
    max_size: int = 12,
    largest: int = 2,
    diffs: st.SearchStrategy[int] = SMALL_DIFFS,
) -> st.SearchStrategy[list[Update[Any]]]:
    """Generate updates to the given data, at any times in any order, with diffs of ±1: counts may go negative."""
    return st.lists(st.tuples(data, times(depth, largest), diffs), max_size=max_size)


@st.composite
def histories(
    draw: st.DrawFn, data: st.SearchStrategy[Any], depth: int, *, max_size: int = 12, largest: int = 2
) -> list[Update[Any]]:
    """Generate updates under which no count is ever negative: a row is removed only at or after an insertion."""
    history: list[Update[Any]] = []
    for row, time, removed in draw(st.lists(st.tuples(data, times(depth, largest), st.booleans()), max_size=max_size)):
        history.append((row, time, 1))
        if removed:
            later = draw(times(depth, largest))
            history.append((row, tuple(a + b for a, b in zip(time, later, strict=True)), -1))
    return draw(st.permutations(history))


def schedules(*sizes: int) -> st.SearchStrategy[list[int]]:
    """Generate interleavings of sources, as the source of each step; source i takes sizes[i] steps."""
    return st.permutations([source for source, size in enumerate(sizes) for _ in range(size)])


def interleavings(*sequences: Sequence[Item]) -> st.SearchStrategy[list[tuple[int, Item]]]:
    """Generate interleavings of several sequences: each item with the number of its sequence, which keeps its order."""

    def interleave(schedule: list[int]) -> list[tuple[int, Item]]:
        sources = [iter(sequence) for sequence in sequences]
        return [(source, next(sources[source])) for source in schedule]

    return schedules(*map(len, sequences)).map(interleave)


@st.composite
def batch_cuts(draw: st.DrawFn, items: Sequence[Item]) -> list[list[Item]]:
    """Generate cuts of the items into consecutive pieces, some empty: the batches in which updates may arrive."""
    cuts = sorted(draw(st.lists(st.integers(0, len(items)), max_size=4)))
    return [list(items[start:end]) for start, end in pairwise([0, *cuts, len(items)])]


@st.composite
def sealed_batches(
    draw: st.DrawFn, stream: Sequence[Update[Item]], depth: int
) -> list[tuple[Frontier, Frontier, list[Update[Item]]]]:
    """Generate cuts of the updates into (lower, upper, updates): each upper is the next lower, the last is empty."""
    bounds = [*draw(advances(depth)), Frontier()]
    return [
        (lower, upper, [update for update in stream if lower.beyond(update[1]) and not upper.beyond(update[1])])
        for lower, upper in pairwise(bounds)
    ]


def frontiers(depth: int, largest: int = 3, *, min_size: int = 0) -> st.SearchStrategy[Frontier]:
    """Generate antichains of times; with min_size=0 also the empty one."""
    return st.lists(times(depth, largest), min_size=min_size, max_size=4).map(Frontier)


@st.composite
def advances(draw: st.DrawFn, depth: int, largest: int = 3) -> list[Frontier]:
    """Generate frontiers that start at the first time and only advance, never to the empty frontier."""
    chain = [Frontier.start(depth)]
    for bound in draw(st.lists(frontiers(depth, largest, min_size=1), max_size=4)):
        chain.append(chain[-1].join(bound))
    return chain


@st.composite
def uppers(draw: st.DrawFn, depth: int) -> list[Frontier]:
    """Generate frontiers that advance, by any antichain, from the start to the closed frontier."""
    chain = [Frontier.start(depth)]
    for step in draw(st.lists(st.lists(times(depth, 4), min_size=1, max_size=3), max_size=6)):
        chain.append(chain[-1].join(Frontier(step)))
    return [*chain, CLOSED]


def sinces(upper: Frontier, depth: int, largest: int = 3) -> st.SearchStrategy[Frontier]:
    """Generate frontiers at or before `upper`, never empty: the possible sinces of a trace that is sealed up to it."""
    return frontiers(depth, largest, min_size=1).map(upper.meet)
