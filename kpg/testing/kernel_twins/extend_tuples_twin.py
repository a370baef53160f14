"""Twin of kpg.kernels.extend_tuples and kpg.kernels.intersect_extenders.

A tuple is (data, time, diff); the last lanes of its data hold the rounds of its initial time. An extender is a list of
updates (data, time, diff), independent of how they are batched, with the number of its key lanes and its flags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kpg.algebra.order import Time, join
from kpg.testing.kernel_twins.row_tuples import Row

TupleUpdate: TypeAlias = tuple[Row, Time, int]


@dataclass(frozen=True)
class ExtenderRows:
    """An extender: its rows, the lanes of a tuple that are its key, and its flags."""

    rows: Sequence[TupleUpdate]
    lanes: tuple[int, ...]
    strict: bool
    negative: bool = False


def visible_rows(extender: ExtenderRows, key: Row, initial: Time, floor: Time) -> list[TupleUpdate]:
    """Return the rest of each row with the key that is before the initial time, or at it unless strict."""
    visible = []
    for data, time, diff in extender.rows:
        joined = join(time + (0,) * (len(floor) - len(time)), floor)
        if data[: len(key)] == key and (joined < initial or (joined == initial and not extender.strict)):
            visible.append((data[len(key) :], joined, diff))
    return visible


def extend_tuples(
    tuples: Sequence[TupleUpdate], extenders: Sequence[ExtenderRows], new: int, floor: Time
) -> Counter[tuple[Row, Time]]:
    """Return the summed diff of each extended (data, time); new lanes are written before the rounds."""
    total: Counter[tuple[Row, Time]] = Counter()
    rounds = len(floor) - 1
    for data, time, diff in tuples:
        initial = (time[0], *data[len(data) - rounds :])
        histories = [
            visible_rows(extender, tuple(data[lane] for lane in extender.lanes), initial, floor)
            for extender in extenders
        ]
        values = {rest for history in histories for rest, _, _ in history} if new else {()}
        for value in values:
            products = [(time, diff)]
            for extender, history in zip(extenders, histories, strict=True):
                factor = [(at, -r if extender.negative else r) for rest, at, r in history if rest == value]
                if extender.negative:
                    factor.append((floor[:1] + (0,) * rounds, 1))
                products = [(join(at, other), d * r) for at, d in products for other, r in factor]
            if new and all(extender.negative for extender in extenders):
                continue
            for at, d in products:
                total[data[: len(data) - rounds] + value + data[len(data) - rounds :], at] += d
    return Counter({extended: number for extended, number in total.items() if number})
