"""E4: what do a million logical times cost in one physical batch?

A million updates at a million distinct times, on a million keys and on ten, against the same updates at one time. The
answer holds the count of every key at every time: on ten keys it has two million changes, at one time it has ten.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.data import key_streams
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import Stopwatch, cpu_stopwatch
from kpg.bench.output_values import columns
from kpg.bench.run import Figures, Reference, Run
from kpg.columns.updates import spread

REPEATS = 3


def run(run: Run) -> None:
    """Measure many keys, then few."""
    rows = run.size(1_000_000)
    for case, distinct in (("1M keys", rows), ("10 keys", 10)):
        keys = key_streams.repeated_keys(rows, distinct)
        many, one = cpu_stopwatch(f"1M times, {case}"), cpu_stopwatch(f"one time, {case}")
        for _ in range(REPEATS):
            history = load(keys, np.arange(rows), many)
            at_one_time = load(keys, np.zeros(rows, np.int64), one)
        run.check(is_history(history, keys), f"the counts at every time, {case}")
        run.check(is_counts(at_one_time, keys), f"the counts at one time, {case}")
        reference = Reference("the same updates at one time", one.least)
        figures: Figures = {"rows": rows, "seconds": many.least, "rows_per_second": rows / many.least}
        bar, limits = "at least 1/4 of the rate of the same updates at one time", [at_most("ratio", 4)]
        run.report(f"1M times, {case}", bar, limits, reference, changes=len(history), **figures)


def load(keys: Ints, times: Ints, stopwatch: Stopwatch) -> kpg.Changes:
    """Insert all updates, then advance once beyond all times."""
    with kpg.open() as db:
        relation = db.input("r", k=int)
        relation.arrange("k")
        counts = relation.count("k").output("counts", keep=False)
        with stopwatch:
            relation.update_at(keys, times)
            db.advance_to(len(keys))
            changes = counts.take_changes()
        return changes


def is_history(history: kpg.Changes, keys: Ints) -> bool:
    """Return whether, at each time, the old count of one key goes, if it had one, and its new count comes."""
    (changed, counts), diffs = columns(history)
    times = spread(history.updates.times, len(history))[0]
    order = np.lexsort((np.arange(len(keys)), keys))
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    occurrence = np.empty(len(keys), np.int64)  # of each update's key up to this update, counted from 1
    occurrence[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys)))) + 1
    again = np.flatnonzero(occurrence > 1)
    insertions = np.stack([np.arange(len(keys)), keys, occurrence, np.ones_like(keys)])
    removals = np.stack([again, keys[again], occurrence[again] - 1, -np.ones_like(again)])
    expected = np.concatenate([insertions, removals], axis=1)
    rows = np.stack([times, changed, counts, diffs])
    return np.array_equal(rows[:, np.lexsort(rows[::-1])], expected[:, np.lexsort(expected[::-1])])


def is_counts(changes: kpg.Changes, keys: Ints) -> bool:
    """Return whether each key occurs once, with its count."""
    (changed, counts), diffs = columns(changes)
    values, numbers = np.unique(keys, return_counts=True)
    order = np.argsort(changed)
    same = np.array_equal(changed[order], values) and np.array_equal(counts[order], numbers)
    return bool((diffs == 1).all()) and same


EXPERIMENT = engine_experiment(
    "E4",
    "a million logical times in one batch",
    "1M updates at 1M times, on 1M keys and on 10",
    lambda scale: int(1e9 * scale + 4e8),
    run,
)
