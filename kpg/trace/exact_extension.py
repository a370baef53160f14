"""Extend tuples where products of diffs may leave 64 bits: the meaning of kpg.kernels.extend_tuples with Python ints.

    extend_exactly  ==  extend_tuples, up to the order of updates and to sums of equal ones

The batches are already searched: `ranges` holds the rows of each tuple's key in each batch.
Cost: a few microseconds for each row that is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kpg.algebra.order import Time, join
from kpg.columns.exact_diffs import shrink_exact
from kpg.columns.updates import Ints, Updates, spread
from kpg.trace.batch import Batch

Factor: TypeAlias = tuple[Time, int]  # a time and a diff, to be joined and multiplied
Row: TypeAlias = tuple[tuple[int, ...], Time, int]  # the lanes after the key, the time joined with the floor, the diff


@dataclass(frozen=True, slots=True)
class LocatedExtender:
    """An extender with its batches and, for each of them, the first row and the end of each tuple's key."""

    key_lanes: int
    strict: bool
    negative: bool
    batches: Sequence[Batch]
    ranges: Ints  # int64[2 * batches, tuples]

    def rows(self, number: int, bounds: tuple[int | None, int | None], initial: Time, floor: Time) -> Iterator[Row]:
        """Yield the rows of a tuple that its initial time may see; `bounds` are those of the new lane."""
        low, high = bounds
        for index, batch in enumerate(self.batches):
            updates = batch.updates
            for row in range(*self.ranges[2 * index : 2 * index + 2, number].tolist()):
                lanes = tuple(updates.data[self.key_lanes :, row].tolist())
                if (low is not None and lanes[0] < low) or (high is not None and lanes[0] >= high):
                    continue
                time = tuple(updates.times[:, row if updates.times.shape[1] > 1 else 0].tolist())
                time = join(time + (0,) * (len(floor) - len(time)), floor)
                if time < initial or (time == initial and not self.strict):
                    yield lanes, time, int(updates.diffs[0, row if updates.diffs.shape[1] > 1 else 0])


def extend_exactly(
    tuples: Updates,
    numbers: range,
    extenders: Sequence[LocatedExtender],
    new: int,
    bound_lanes: tuple[int, int],
    projection: Ints,
    floor: Time,
) -> Updates | None:
    """Return the extensions of the tuples of some numbers; None if there are none."""
    depth = len(floor)
    times, diffs = spread(tuples.times, len(tuples)), spread(tuples.diffs, len(tuples))
    out: list[Row] = []
    for number in numbers:
        data, time = tuple(tuples.data[:, number].tolist()), tuple(times[:, number].tolist())
        initial = (time[0], *data[len(data) - depth + 1 :])
        low, high = (data[lane] if lane >= 0 else None for lane in bound_lanes)
        histories = [list(extender.rows(number, (low, high), initial, floor)) for extender in extenders]
        start = (time, int(diffs[0, number]))
        for lanes, products in _extensions(extenders, histories, new, start):
            projected = tuple(lanes[lane] if side else data[lane] for side, lane in projection.tolist())
            out += [(projected, at, diff) for at, diff in products if diff]
    return _updates(out, projection.shape[0], depth) if out else None


def _extensions(
    extenders: Sequence[LocatedExtender], histories: list[list[Row]], new: int, start: Factor
) -> Iterator[tuple[tuple[int, ...], list[Factor]]]:
    """Yield the new lanes of each extension of a tuple, and its times and diffs."""
    if not new:
        yield (), _multiply([start], extenders, histories)
        return
    positive = [number for number, extender in enumerate(extenders) if not extender.negative]
    proposer = min(positive, key=lambda number: len(histories[number]))
    others = [number for number in range(len(extenders)) if number != proposer]
    time, diff = start
    for lanes, at, factor in histories[proposer]:
        matching = [[row for row in histories[number] if row[0][0] == lanes[0]] for number in others]
        yield lanes, _multiply([(join(time, at), diff * factor)], [extenders[n] for n in others], matching)


def _multiply(products: list[Factor], extenders: Sequence[LocatedExtender], histories: list[list[Row]]) -> list[Factor]:
    """Multiply times and diffs by the history of each extender; a negative one stands for 1 minus its history."""
    for extender, history in zip(extenders, histories, strict=True):
        sign = -1 if extender.negative else 1
        multiplied = [(join(at, time), diff * sign * factor) for at, diff in products for _, time, factor in history]
        products = products + multiplied if extender.negative else multiplied
    return products


def _updates(rows: list[Row], lanes: int, depth: int) -> Updates:
    data = np.array([row[0] for row in rows], np.int64).reshape(len(rows), lanes)
    times = np.array([row[1] for row in rows], np.int64).reshape(len(rows), depth)
    diffs = np.array([row[2] for row in rows], object).reshape(1, len(rows))
    return Updates(np.ascontiguousarray(data.T), np.ascontiguousarray(times.T), shrink_exact(diffs))
