"""E5: how soon does a new query answer, that joins 1, 1,000 or 100,000 keys with an arrangement of 10M?

The clock runs from describing the query, with a private input of the keys, until its first answer is in hand as a
table. It must hardly depend on the size of what is shared: the same on 100,000 arranged keys is the reference.
"""

from __future__ import annotations

import itertools

import numpy as np

import kpg
from benchmarks import data
from benchmarks.lines import Bar, Reference, Run, at_most
from benchmarks.measure import Clock, settle, wall_clock

NUMBERS = itertools.count()
CASES: tuple[tuple[str, int, int, str, list[Bar]], ...] = (
    ("1 key", 1, 300, "p50 at most 2 ms; at most 1.5 times", [at_most("p50_ms", 2), at_most("ratio", 1.5)]),
    ("1k keys", 1_000, 100, "at most 2 times", [at_most("ratio", 2)]),
    ("100k keys", 100_000, 30, "p50 at most 40 ms; at most 5 times", [at_most("p50_ms", 40), at_most("ratio", 5)]),
)


def run(run: Run) -> None:
    """Install and release, on the large arrangement and on the small one, in turn."""
    large, small = run.size(10_000_000), run.size(100_000)
    with kpg.open() as db:
        shared = [arranged(db, rows) for rows in (large, small)]
        for case, keys, installs, bar, bars in CASES:
            keys, clocks = keys if keys <= 1_000 else run.size(keys), (wall_clock(case), wall_clock())
            for each in range(run.times(installs)):
                for (arrangement, rows), clock in zip(shared, clocks, strict=True):
                    wanted = np.random.default_rng(each).choice(rows, min(keys, rows), replace=False)
                    install(db, arrangement, wanted, clock)
            reference = Reference(f"the same on {small} arranged keys", clocks[1].p50_ms / 1e3)
            bar += " of the same on 100k arranged keys" if "times" in bar else ""
            run.report(f"install, {case}", bar, bars, reference, latency=clocks[0], rows=keys, state_rows=large)


def arranged(db: kpg.Database, rows: int) -> tuple[kpg.Arrangement, int]:
    """A relation of distinct keys k with v = 3 k, in random order."""
    relation = db.input(f"r{rows}", k=int, v=int)
    arrangement = relation.arrange("k")
    keys = data.distinct_keys(rows)
    relation.insert(np.stack([keys, 3 * keys], axis=1))
    db.advance()
    settle(db)
    return arrangement, rows


def install(db: kpg.Database, arrangement: kpg.Arrangement, keys: data.Ints, clock: Clock) -> None:
    """A private input, a join, an answer; then let it all go."""
    name = f"query {next(NUMBERS)}"
    with clock:
        query = db.input(name, k=int)
        query.insert(keys)
        answer = arrangement.join(query, on="k").output(f"answer of {name}")
        db.advance()
        table = answer.snapshot()
    found, values = table["k"].to_numpy(), table["v"].to_numpy()
    assert len(found) == len(keys) and (np.sort(found) == np.sort(keys)).all() and (values == 3 * found).all()
    answer.release()
    query.drop()
