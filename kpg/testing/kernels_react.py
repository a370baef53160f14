"""Plain-Python twins of kpg.kernels.new_keys, unmoved and react: same names, obvious bodies, no cleverness."""

from __future__ import annotations

from collections.abc import Sequence

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, join, less_equal
from kpg.kernels.one_pass_corrections import FIRST, SUMS

Row = tuple[int, ...]
Update = tuple[Row, Time, Row]  # values, time, diff


def unseen(
    seeds: Sequence[Sequence[Time]], outputs: Sequence[Sequence[Update]], upper: Frontier
) -> tuple[list[int], list[int]]:
    """The numbers of keys that are fresh and of those that are unclear, from each key's seeds and output rows."""
    fresh, unclear = [], []
    for key, (mine, rows) in enumerate(zip(seeds, outputs, strict=True)):
        plain = len(mine) == 1 and not upper.beyond(mine[0])
        if plain and not rows:
            fresh.append(key)
        elif not plain or len(rows) > 1 or rows[0][2] != (1,) or not less_equal(rows[0][1], mine[0]):
            unclear.append(key)
    return fresh, unclear


def moved(time: Time, news: Sequence[Sequence[Update]], outputs: Sequence[Sequence[Update]]) -> list[int]:
    """The numbers of keys whose least row may be another, from each key's new rows of one time and output rows."""
    found = []
    for key, (mine, rows) in enumerate(zip(news, outputs, strict=True)):
        if len(rows) == 1 and rows[0][2] == (1,) and less_equal(rows[0][1], time):
            if all(values > rows[0][0] or (values == rows[0][0] and diff > (0,)) for values, _, diff in mine):
                continue
        found.append(key)
    return found


def react(
    kind: int,
    at_least: int,
    seeds: Sequence[Time],
    inputs: Sequence[Update],
    outputs: Sequence[Update],
    upper: Frontier,
) -> tuple[list[Update], list[Time]]:
    """The corrections of one key, sorted, and the times put off: the minimal ones at which the output is wrong."""
    floor = tuple(min(lane) for lane in zip(*seeds, strict=True))
    ins, outs = history(kind, inputs, floor), history(FIRST, outputs, floor)
    generators = {*seeds, *[time for _, time, _ in (*ins, *outs)]}
    closure = set(seeds)
    while more := {join(one, other) for one in closure for other in generators} - closure:
        closure |= more
    made: list[Update] = []
    late: list[Time] = []
    for time in sorted(closure):
        want, have = wanted(kind, at_least, at(ins, time)), at(outs + made, time)
        fixes = {values: want.get(values, 0) - have.get(values, (0,))[0] for values in {*want, *have}}
        wrong: list[Update] = [(values, time, (diff,)) for values, diff in fixes.items() if diff]
        if not upper.beyond(time):
            made += wrong
        elif wrong and not any(less_equal(other, time) for other in late):
            late.append(time)
    return sorted(made), late


def history(kind: int, updates: Sequence[Update], floor: Time) -> list[Update]:
    """The updates at times joined with the floor, equal ones summed, zeros dropped; values only where they matter."""
    sums: dict[tuple[Row, Time], Row] = {}
    for values, time, diff in updates:
        key = (values if kind == FIRST else (), join(time, floor))
        before = sums.get(key, (0,) * len(diff))
        sums[key] = tuple(x + y for x, y in zip(before, diff, strict=True))
    return [(values, time, diff) for (values, time), diff in sums.items() if any(diff)]


def at(updates: Sequence[Update], time: Time) -> dict[Row, Row]:
    """The rows at a time with their summed diffs, zeros left out."""
    sums: dict[Row, Row] = {}
    for values, when, diff in updates:
        if less_equal(when, time):
            before = sums.get(values, (0,) * len(diff))
            sums[values] = tuple(x + y for x, y in zip(before, diff, strict=True))
    return {values: diff for values, diff in sums.items() if any(diff)}


def wanted(kind: int, at_least: int, group: dict[Row, Row]) -> dict[Row, int]:
    """What the output should hold for a group."""
    if kind == FIRST:
        return dict.fromkeys(sorted(v for v, diff in group.items() if diff[0] > 0)[:1], 1)
    total = tuple(sum(lane) for lane in zip(*group.values(), strict=True)) if group else (0,)
    if kind == SUMS:
        return {total: 1} if any(total) else {}
    return {(): 1} if total[0] >= at_least else {}
