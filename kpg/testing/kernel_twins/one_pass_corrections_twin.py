"""Twins of kpg.kernels.one_pass_corrections, kpg.kernels.new_keys and kpg.kernels.unchanged_minimum."""

from __future__ import annotations

from collections.abc import Sequence

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time, join, less_equal
from kpg.kernels.one_pass_corrections import FIRST, SUMS
from kpg.testing.kernel_twins.row_tuples import Row, Update


def new_keys(
    seeds: Sequence[Sequence[Time]], outputs: Sequence[Sequence[Update]], upper: Frontier
) -> tuple[list[int], list[int]]:
    """Return the numbers of the new keys and of the unclear ones, given each key's seeds and output rows."""
    new, unclear = [], []
    for key, (times, rows) in enumerate(zip(seeds, outputs, strict=True)):
        plain = len(times) == 1 and not upper.beyond(times[0])
        if plain and not rows:
            new.append(key)
        elif not plain or len(rows) > 1 or rows[0][2] != (1,) or not less_equal(rows[0][1], times[0]):
            unclear.append(key)
    return new, unclear


def keys_with_changed_minimum(
    time: Time, changes: Sequence[Sequence[Update]], outputs: Sequence[Sequence[Update]]
) -> list[int]:
    """Return the keys in which the least row may change, given each key's new rows (at one time) and its output."""
    changed = []
    for key, (new_rows, rows) in enumerate(zip(changes, outputs, strict=True)):
        if len(rows) == 1 and rows[0][2] == (1,) and less_equal(rows[0][1], time):
            if all(values > rows[0][0] or (values == rows[0][0] and diff > (0,)) for values, _, diff in new_rows):
                continue
        changed.append(key)
    return changed


def one_pass_corrections(
    kind: int,
    at_least: int,
    seeds: Sequence[Time],
    inputs: Sequence[Update],
    outputs: Sequence[Update],
    upper: Frontier,
) -> tuple[list[Update], list[Time]]:
    """Return the corrections of one key, sorted, and the minimal times beyond `upper` at which its output is wrong."""
    floor = tuple(min(lane) for lane in zip(*seeds, strict=True))
    ins, outs = history(kind, inputs, floor), history(FIRST, outputs, floor)
    generators = {*seeds, *[time for _, time, _ in (*ins, *outs)]}
    closure = set(seeds)
    while more := {join(time, other) for time in closure for other in generators} - closure:
        closure |= more
    corrections: list[Update] = []
    postponed: list[Time] = []
    for time in sorted(closure):
        want, have = target_rows(kind, at_least, group_at(ins, time)), group_at(outs + corrections, time)
        missing = {values: want.get(values, 0) - have.get(values, (0,))[0] for values in {*want, *have}}
        wrong: list[Update] = [(values, time, (diff,)) for values, diff in missing.items() if diff]
        if not upper.beyond(time):
            corrections += wrong
        elif wrong and not any(less_equal(other, time) for other in postponed):
            postponed.append(time)
    return sorted(corrections), postponed


def history(kind: int, updates: Sequence[Update], floor: Time) -> list[Update]:
    """Return the updates with times joined with the floor, consolidated; values only where the kind depends on them."""
    sums: dict[tuple[Row, Time], Row] = {}
    for values, time, diff in updates:
        key = (values if kind == FIRST else (), join(time, floor))
        before = sums.get(key, (0,) * len(diff))
        sums[key] = tuple(x + y for x, y in zip(before, diff, strict=True))
    return [(values, time, diff) for (values, time), diff in sums.items() if any(diff)]


def group_at(updates: Sequence[Update], time: Time) -> dict[Row, Row]:
    """Return the rows at a time with their summed diffs, zeros left out."""
    sums: dict[Row, Row] = {}
    for values, when, diff in updates:
        if less_equal(when, time):
            before = sums.get(values, (0,) * len(diff))
            sums[values] = tuple(x + y for x, y in zip(before, diff, strict=True))
    return {values: diff for values, diff in sums.items() if any(diff)}


def target_rows(kind: int, at_least: int, group: dict[Row, Row]) -> dict[Row, int]:
    """Return the rows that the output should hold for a group."""
    if kind == FIRST:
        return dict.fromkeys(sorted(v for v, diff in group.items() if diff[0] > 0)[:1], 1)
    total = tuple(sum(lane) for lane in zip(*group.values(), strict=True)) if group else (0,)
    if kind == SUMS:
        return {total: 1} if any(total) else {}
    return {(): 1} if total[0] >= at_least else {}
