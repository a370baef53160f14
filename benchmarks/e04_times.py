"""E4: what do a million logical times cost, if they come in one physical batch?

A million updates at a million distinct times, on a million keys and on ten, against the same updates at one time. The
answer holds the count of every key at every time, so on ten keys it has two million changes where one time has ten.
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks import data
from benchmarks.answers import columns
from benchmarks.lines import Figures, Reference, Run, at_most
from benchmarks.measure import Clock, cpu_clock
from kpg.columns.updates import spread


def run(run: Run) -> None:
    """Many keys, few keys."""
    rows = run.size(1_000_000)
    for case, distinct in (("1M keys", rows), ("10 keys", 10)):
        keys = data.repeated_keys(rows, distinct)
        many, one = cpu_clock(f"1M times, {case}"), cpu_clock(f"one time, {case}")
        for _ in range(3):
            history = load(keys, np.arange(rows), many)
            at_once = load(keys, np.zeros(rows, np.int64), one)
        check(history, keys)
        check_at_once(at_once, keys)
        reference = Reference("the same updates at one time", one.least)
        found: Figures = {"rows": rows, "seconds": many.least, "rows_per_second": rows / many.least}
        bar, bars = "at least 1/4 of the rate of the same updates at one time", [at_most("ratio", 4)]
        run.report(f"1M times, {case}", bar, bars, reference, changes=len(history), **found)


def load(keys: data.Ints, times: data.Ints, clock: Clock) -> kpg.Changes:
    """All updates, then one advance beyond all times."""
    with kpg.open() as db:
        relation = db.input("r", k=int)
        relation.arrange("k")
        counts = relation.count("k").output("counts", keep=False)
        with clock:
            relation.update_at(keys, times)
            db.advance_to(len(keys))
            changes = counts.take_changes()
        return changes


def check(history: kpg.Changes, keys: data.Ints) -> None:
    """At each time one key has one more: its old count goes, if it had one, and its new count comes."""
    (found, counts), diffs = columns(history)
    times = spread(history.updates.times, len(history))[0]
    order = np.lexsort((np.arange(len(keys)), keys))
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    nth = np.empty(len(keys), np.int64)  # how often the key of each update has come, this time included
    nth[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys)))) + 1
    again = np.flatnonzero(nth > 1)
    comes = np.stack([np.arange(len(keys)), keys, nth, np.ones_like(keys)])
    goes = np.stack([again, keys[again], nth[again] - 1, -np.ones_like(again)])
    expected = np.concatenate([comes, goes], axis=1)
    made = np.stack([times, found, counts, diffs])
    assert (made[:, np.lexsort(made[::-1])] == expected[:, np.lexsort(expected[::-1])]).all()


def check_at_once(changes: kpg.Changes, keys: data.Ints) -> None:
    """Each key once, with its count."""
    (found, counts), diffs = columns(changes)
    values, numbers = np.unique(keys, return_counts=True)
    order = np.argsort(found)
    assert (diffs == 1).all() and (found[order] == values).all() and (counts[order] == numbers).all()
