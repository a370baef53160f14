"""Plain-Python twins of the kernels behind delta queries and worst-case optimal joins.

A tuple is (data, time, diff) whose last lanes hold the rounds of its initial time. An extender is a list of updates
(data, time, diff), however they are batched, with the number of its key lanes and how it counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kpg.algebra.order import Time, join

Row = tuple[int, ...]
Update = tuple[Row, Time, int]


@dataclass(frozen=True)
class ExtenderRows:
    """An extender: what it holds, which lanes of a tuple are its key, and how its rows count."""

    rows: Sequence[Update]
    lanes: tuple[int, ...]
    strict: bool
    negative: bool = False


def counted(side: ExtenderRows, key: Row, initial: Time, floor: Time) -> list[Update]:
    """The rest of each row with a key, where the row is before the initial time, or at it if that counts."""
    found = []
    for data, time, diff in side.rows:
        known = join(time + (0,) * (len(floor) - len(time)), floor)
        if data[: len(key)] == key and (known < initial or (known == initial and not side.strict)):
            found.append((data[len(key) :], known, diff))
    return found


def extend(tuples: Sequence[Update], sides: Sequence[ExtenderRows], new: int, floor: Time) -> Counter[tuple[Row, Time]]:
    """What tuples are extended to: new lanes before the rounds; the sum of the diffs of each (data, time)."""
    total: Counter[tuple[Row, Time]] = Counter()
    rounds = len(floor) - 1
    for data, time, diff in tuples:
        initial = (time[0], *data[len(data) - rounds :])
        histories = [counted(side, tuple(data[lane] for lane in side.lanes), initial, floor) for side in sides]
        values = {rest for found in histories for rest, _, _ in found} if new else {()}
        for value in values:
            ways = [(time, diff)]
            for side, history in zip(sides, histories, strict=True):
                factor = [(known, -r if side.negative else r) for rest, known, r in history if rest == value]
                if side.negative:
                    factor.append((floor[:1] + (0,) * rounds, 1))
                ways = [(join(at, known), d * r) for at, d in ways for known, r in factor]
            if new and all(side.negative for side in sides):
                continue
            for at, d in ways:
                total[data[: len(data) - rounds] + value + data[len(data) - rounds :], at] += d
    return Counter({what: number for what, number in total.items() if number})
