"""The body of a recursion over multisets, round by round: for negative counts, as slow as it is plain.

    round 0        each variable has its source, or no rows
    round k + 1    each variable has its definition, evaluated in round k

With a negative count, a row may be less than the rows it follows from, and rules over sets say nothing. Then the rounds
of the loop decide, which this module computes as they are written. They end when no variable changes, and need not end
(TooManyRounds). Cost of a round: a sort of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kpg.columns.pause_points import pause
from kpg.columns.updates import Ints
from kpg.errors import TooManyRounds
from kpg.seminaive.counted_rounds import exact
from kpg.seminaive.insert_only import COMPARISONS


class Multiset(NamedTuple):
    """Rows, int64[lanes, n], each once, with counts other than 0."""

    rows: Ints
    counts: Ints


class Lane(NamedTuple):
    """A lane of the rows of a node; a constant if `lane` is None."""

    lane: int | None
    constant: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class GivenRows:
    """The rows of one collection from outside."""

    number: int


@dataclass(frozen=True, eq=False, slots=True)
class VariableRows:
    """The rows of a variable in the present round."""

    number: int


@dataclass(frozen=True, eq=False, slots=True)
class SummedRows:
    """The sum of some nodes, each with a sign."""

    parts: tuple[tuple[BodyNode, int], ...]
    lanes: int


@dataclass(frozen=True, eq=False, slots=True)
class PickedRows:
    """Some lanes of each row, and constants."""

    input: BodyNode
    columns: tuple[Lane, ...]


@dataclass(frozen=True, eq=False, slots=True)
class FilteredRows:
    """The rows that pass all comparisons."""

    input: BodyNode
    tests: tuple[tuple[str, Lane, Lane], ...]


@dataclass(frozen=True, eq=False, slots=True)
class MatchedRows:
    """Pairs of rows with equal keys; `columns` has the side and the lane of each lane."""

    left: BodyNode
    right: BodyNode
    on: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False, slots=True)
class PresentRows:
    """Some lanes of the rows: each value with a positive count once."""

    input: BodyNode
    lanes: tuple[int, ...]


BodyNode: TypeAlias = GivenRows | VariableRows | SummedRows | PickedRows | FilteredRows | MatchedRows | PresentRows


@dataclass(frozen=True, eq=False, slots=True)
class CountedBody:
    """The variables of a loop, with their sources and definitions, and the nodes whose fixed points are asked for."""

    name: str
    max_rounds: int
    widths: tuple[int, ...]  # the lanes of each variable
    sources: tuple[BodyNode | None, ...]
    definitions: tuple[BodyNode, ...]
    results: tuple[BodyNode, ...]

    def fixed_points(self, given: list[Multiset]) -> list[Ints]:
        """Return the rows of each result at the fixed point, int64[lanes, n]."""
        start = Round(given, [])
        values = [
            no_rows(width) if source is None else start.value(source)
            for width, source in zip(self.widths, self.sources, strict=True)
        ]
        for _ in range(self.max_rounds + 1):
            pause()
            present = Round(given, values)
            later = [present.value(definition) for definition in self.definitions]
            if all(map(are_equal, later, values)):
                return [present.value(result).rows for result in self.results]
            values = later
        raise TooManyRounds(
            f"{self.name} did not reach a fixed point within {self.max_rounds} rounds",
            detail="Some rows are there a negative number of times.",
        )


class Round:
    """The values of all nodes in one round."""

    def __init__(self, given: list[Multiset], variables: list[Multiset]) -> None:
        self.given = given
        self.variables = variables
        self._values: dict[BodyNode, Multiset] = {}

    def value(self, node: BodyNode) -> Multiset:
        """Return the rows of a node."""
        if node not in self._values:
            self._values[node] = self._compute(node)
        return self._values[node]

    def _compute(self, node: BodyNode) -> Multiset:
        match node:
            case GivenRows():
                return consolidated(self.given[node.number])
            case VariableRows():
                return self.variables[node.number]
            case SummedRows():
                parts = [(self.value(part), sign) for part, sign in node.parts]
                rows = np.concatenate([part.rows for part, _ in parts], axis=1)
                return consolidated(Multiset(rows, np.concatenate([sign * part.counts for part, sign in parts])))
            case PickedRows():
                rows, counts = self.value(node.input)
                return consolidated(Multiset(picked(rows, node.columns), counts))
            case FilteredRows():
                rows, counts = self.value(node.input)
                passing = np.ones(len(counts), np.bool_)
                for op, left, right in node.tests:
                    passing &= COMPARISONS[op](lane_of(rows, left), lane_of(rows, right))
                return Multiset(rows[:, passing], counts[passing])
            case MatchedRows():
                return matched(self.value(node.left), self.value(node.right), node)
            case PresentRows():
                rows, counts = self.value(node.input)
                rows, counts = consolidated(Multiset(rows[list(node.lanes)], counts))
                rows = rows[:, np.asarray(counts > 0, np.bool_)]
                return Multiset(rows, np.ones(rows.shape[1], np.int64))


def no_rows(lanes: int) -> Multiset:
    """Return no rows."""
    return Multiset(np.empty((lanes, 0), np.int64), np.empty(0, np.int64))


def are_equal(one: Multiset, other: Multiset) -> bool:
    """Return whether two consolidated multisets are equal."""
    return np.array_equal(one.rows, other.rows) and np.array_equal(one.counts, other.counts)


def lane_of(rows: Ints, lane: Lane) -> Ints:
    """Return one lane of rows."""
    return np.full(rows.shape[1], lane.constant) if lane.lane is None else rows[lane.lane]


def picked(rows: Ints, columns: tuple[Lane, ...]) -> Ints:
    """Return some lanes of rows, and constants."""
    return np.stack([lane_of(rows, lane) for lane in columns])


def consolidated(rows: Multiset) -> Multiset:
    """Return each row once, with the sum of its counts if that is not zero, in ascending order."""
    order = np.lexsort(rows.rows[::-1])
    data, counts = rows.rows[:, order], exact(rows.counts[order])
    if not len(counts):
        return Multiset(data, counts)
    first = np.flatnonzero(np.append(True, (data[:, 1:] != data[:, :-1]).any(axis=0)))
    sums = np.add.reduceat(counts, first)
    there = np.flatnonzero(sums != 0)
    return Multiset(data[:, first[there]], sums[there])


def matched(left: Multiset, right: Multiset, node: MatchedRows) -> Multiset:
    """Return the pairs of rows with equal keys."""
    keys = [np.concatenate([left.rows[one], right.rows[other]]) for one, other in node.on] or [
        np.zeros(len(left.counts) + len(right.counts), np.int64)
    ]
    numbers = numbers_of(np.stack(keys))
    own, others = numbers[: len(left.counts)], numbers[len(left.counts) :]
    order = np.argsort(others, kind="stable")
    low = np.searchsorted(others[order], own, side="left")
    matches = np.searchsorted(others[order], own, side="right") - low
    one = np.repeat(np.arange(len(own)), matches)
    other = order[np.arange(len(one)) - np.repeat(np.cumsum(matches) - matches - low, matches)]
    sides = (left.rows[:, one], right.rows[:, other])
    rows = np.stack([sides[side][lane] for side, lane in node.columns])
    return consolidated(Multiset(rows, exact(left.counts)[one] * exact(right.counts)[other]))


def numbers_of(keys: Ints) -> npt.NDArray[np.intp]:
    """Return a number for each column of keys, int64[lanes, n]; equal ones have equal numbers."""
    order = np.lexsort(keys[::-1])
    differs = (keys[:, order[1:]] != keys[:, order[:-1]]).any(axis=0)
    numbers = np.empty(len(order), np.intp)
    numbers[order] = np.append(0, np.cumsum(differs))[: len(order)]
    return numbers
