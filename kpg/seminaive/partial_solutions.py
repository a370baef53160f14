"""Partial solutions of a rule: the values of its variables after some of its literals, and what the next steps need.

A value is an id of `ValueIds`. Solutions are columns of ids, so that a step joins a million of them in a few calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kpg.columns.pause_points import at_most_per_pause
from kpg.columns.updates import Ints
from kpg.seminaive.recursion_rules import EvaluationOrder, Term, variables

ROW = "#row"  # a pseudo-variable, bound to the position of the row that a solution started from
LEVEL = "#level"  # a pseudo-variable, bound to the greatest level of the derived rows that a solution uses
MAX_SLICE_ROWS = 1 << 20  # partial solutions that one step extends; bounds memory


class AtomProbe(NamedTuple):
    """The lookup of an atom: the index columns, the terms of the key, and the index column of each new variable."""

    columns: tuple[int, ...]
    keys: tuple[Term, ...]
    provides: dict[str, int]


@dataclass(slots=True)
class PartialSolutions:
    """Solutions of the first literals of a rule: the ids of each variable that later steps need."""

    size: int
    ids: dict[str, Ints]

    def take(self, rows: Ints) -> PartialSolutions:
        """Return the solutions at some positions."""
        return PartialSolutions(len(rows), {name: column[rows] for name, column in self.ids.items()})


def bounded_parts(low: Ints, high: Ints) -> Iterator[tuple[slice, int]]:
    """Cut rows into slices with at most `MAX_SLICE_ROWS` matches, or one row; yield each slice and its match count."""
    matches = high - low
    total = int(matches.sum())
    most = at_most_per_pause(MAX_SLICE_ROWS)
    if total <= most:
        if total:
            yield slice(None), total
        return
    ends = np.cumsum(matches)
    start, matches_before = 0, 0
    while start < len(ends):
        stop = max(start + 1, int(np.searchsorted(ends, matches_before + most, side="right")))
        yield slice(start, stop), int(ends[stop - 1]) - matches_before
        start, matches_before = stop, int(ends[stop - 1])


def needed_variables(order: EvaluationOrder, step: int) -> frozenset[str]:
    """Return the variables that the steps from `step` on, or the head, read."""
    return frozenset(variables(order.head)).union(*(variables(literal) for literal in order.steps[step:]))
