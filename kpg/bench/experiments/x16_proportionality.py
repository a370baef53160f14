"""X16: does installing a query cost what its small side costs, however much is arranged on the other?

The clock runs from describing a query, with a private input of some keys, until its first answer is in hand as a
table; against 10M arranged keys, and in turn against 100,000.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from kpg.api.contracts import Arrangement, Database
from kpg.bench.clocks import Clock
from kpg.bench.data.graphs import Ints
from kpg.bench.experiment import Experiment, Printed, at_most
from kpg.bench.run import Run
from kpg.opening import open as open_database

KEYS = (1, 10, 100, 1_000, 10_000, 100_000)
INSTALLS = 60


def run(run: Run) -> None:
    """Install and release, on the large arrangement and on the small one, in turn."""
    large, small = run.size(10_000_000, least=200), run.size(100_000, least=100)
    names = itertools.count()
    with open_database() as db:
        shared = [arranged(db, rows, run) for rows in (large, small)]
        for number, keys in enumerate(KEYS):
            run.say("installing", number, len(KEYS))
            clocks = (Clock(), Clock())
            for each in range(run.rounds(INSTALLS)):
                random = np.random.default_rng((run.seed, each))
                for arrangement, rows, clock in zip(shared, (large, small), clocks, strict=True):
                    wanted = random.choice(rows, min(keys, small), replace=False)
                    install(run, db, arrangement, wanted, clock, names)
            medians = [float(np.median(clock.seconds)) for clock in clocks]
            run.latencies(f"{keys:,} keys against {large:,}", clocks[0].seconds)
            run.latencies(f"{keys:,} keys against {small:,}", clocks[1].seconds)
            if keys == 1_000:
                run.figure("times_of_small_for_1000_keys", medians[0] / medians[1])


def arranged(db: Database, rows: int, run: Run) -> Arrangement:
    """A relation of distinct keys k with v = 3 k, compacted."""
    run.say(f"arranging {rows:,} keys", 0, 0)
    relation = db.input(f"r{rows}", k=int, v=int)
    arrangement = relation.arrange("k")
    keys = np.random.default_rng(run.seed).permutation(rows)
    relation.insert(np.stack([keys, 3 * keys], axis=1))
    db.advance()
    db.advance()
    while db.idle(10_000_000):
        pass
    return arrangement


def install(run: Run, db: Database, arrangement: Arrangement, keys: Ints, clock: Clock, names: Iterator[int]) -> None:
    """A private input, a join, an answer; then let it all go."""
    name = f"query {next(names)}"
    with clock:
        query = db.input(name, k=int)
        query.insert(keys)
        answer = arrangement.join(query, on="k").output(f"answer of {name}")
        db.advance()
        table = answer.snapshot()
    found, values = table["k"].to_numpy(), table["v"].to_numpy()
    right = np.array_equal(np.sort(found), np.sort(keys)) and np.array_equal(values, 3 * found)
    run.check(right, "the join")
    answer.release()
    query.drop()


EXPERIMENT = Experiment(
    id="X16",
    title="join proportionality",
    paper="Shared Arrangements, figure 7f",
    claim="Installing and running a join takes time in proportion to the small side, not to the 10M keys arranged.",
    size="10M arranged keys, 1 to 100,000 keys asked for (the paper's size)",
    printed=(Printed("install, run and complete", "milliseconds, in proportion to the small collection"),),
    memory=lambda scale: int(1.2e9 * scale + 3e8),
    run=run,
    bars=(at_most("times_of_small_for_1000_keys", 2),),
)
