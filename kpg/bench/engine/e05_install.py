"""E5: how soon does a new query answer that joins 1, 1,000 or 100,000 keys with an arrangement of 10M?

The clock runs from describing the query, with a private input of the keys, until its first answer is in hand as a
table. The latency must hardly depend on the size of the shared arrangement: the reference is the same query on 100,000
arranged keys.
"""

from __future__ import annotations

import itertools

import numpy as np

import kpg
from kpg.bench.experiment import Limit, at_most, engine_experiment
from kpg.bench.installed_lookups import arranged, install
from kpg.bench.measure import wall_stopwatch
from kpg.bench.run import Reference, Run

SEED = 2
CASES: tuple[tuple[str, int, int, str, list[Limit]], ...] = (
    ("1 key", 1, 300, "p50 at most 0.3 ms; at most 1.5 times", [at_most("p50_ms", 0.3), at_most("ratio", 1.5)]),
    ("1k keys", 1_000, 100, "p50 at most 1.2 ms; at most 2 times", [at_most("p50_ms", 1.2), at_most("ratio", 2)]),
    ("100k keys", 100_000, 30, "p50 at most 40 ms; at most 5 times", [at_most("p50_ms", 40), at_most("ratio", 5)]),
)


def run(run: Run) -> None:
    """Install and release queries, on the large arrangement and on the small one, in turn."""
    sizes = large, small = run.size(10_000_000), run.size(100_000)
    numbers = itertools.count()
    with kpg.open() as db:
        arrangements = [arranged(db, rows, SEED) for rows in sizes]
        for case, keys, installs, bar, limits in CASES:
            keys = keys if keys <= 1_000 else run.size(keys)
            stopwatches = (wall_stopwatch(case), wall_stopwatch())
            for round_number in range(run.fixed_rounds(installs)):
                for arrangement, rows, stopwatch in zip(arrangements, sizes, stopwatches, strict=True):
                    wanted = np.random.default_rng(round_number).choice(rows, min(keys, rows), replace=False)
                    install(run, db, arrangement, wanted, stopwatch, f"query {next(numbers)}")
            reference = Reference(f"the same on {small} arranged keys", stopwatches[1].p50_ms / 1e3)
            bar += " of the same on 100k arranged keys" if "times" in bar else ""
            run.report(f"install, {case}", bar, limits, reference, latency=stopwatches[0], rows=keys, state_rows=large)


EXPERIMENT = engine_experiment(
    "E5",
    "install a query on a shared arrangement",
    "1, 1k and 100k keys joined with 10M arranged keys",
    lambda scale: int(1.4e9 * scale + 4e8),
    run,
)
