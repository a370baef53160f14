"""X16: is the cost of installing a join proportional to its small side, not to the arranged side?

The clock runs from describing a query, with a private input of some keys, until its first answer is in hand as a
table; against 10M arranged keys, and in turn against 100,000.
"""

from __future__ import annotations

import itertools

import numpy as np

from kpg.bench.experiment import Experiment, PaperFigure, at_most
from kpg.bench.installed_lookups import arranged, install
from kpg.bench.measure import Stopwatch
from kpg.bench.run import Run
from kpg.opening import open as open_database

KEYS = (1, 10, 100, 1_000, 10_000, 100_000)
INSTALLS = 60


def run(run: Run) -> None:
    """Install and release queries, on the large arrangement and on the small one, in turn."""
    large, small = run.size(10_000_000, least=200), run.size(100_000, least=100)
    names = itertools.count()
    with open_database() as db:
        arrangements = [arranged(db, rows, run.seed) for rows in (large, small)]
        for number, keys in enumerate(KEYS):
            run.progress("installing", number, len(KEYS))
            stopwatches = (Stopwatch(f"{keys:,} keys"), Stopwatch())
            for round_number in range(run.scaled_rounds(INSTALLS)):
                random = np.random.default_rng((run.seed, round_number))
                for arrangement, rows, stopwatch in zip(arrangements, (large, small), stopwatches, strict=True):
                    wanted = random.choice(rows, min(keys, small), replace=False)
                    install(run, db, arrangement, wanted, stopwatch, f"query {next(names)}")
            medians = [float(np.median(stopwatch.seconds)) for stopwatch in stopwatches]
            run.latencies(f"{keys:,} keys against {large:,}", stopwatches[0].seconds)
            run.latencies(f"{keys:,} keys against {small:,}", stopwatches[1].seconds)
            if keys == 1_000:
                run.figure("times_of_small_for_1000_keys", medians[0] / medians[1])


EXPERIMENT = Experiment(
    id="X16",
    title="join proportionality",
    paper="Shared Arrangements, figure 7f",
    claim="Installing and running a join takes time in proportion to the small side, not to the 10M keys arranged.",
    size="10M arranged keys, 1 to 100,000 keys asked for (the paper's size)",
    printed=(PaperFigure("install, run and complete", "milliseconds, in proportion to the small collection"),),
    memory=lambda scale: int(1.2e9 * scale + 3e8),
    run=run,
    limits=(at_most("times_of_small_for_1000_keys", 2),),
)
