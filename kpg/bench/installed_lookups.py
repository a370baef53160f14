"""Queries that join a few keys with a large shared arrangement: what E5 and X16 install.

The arranged relation has distinct keys k with v = 3 k, in random order, merged into one batch.
"""

from __future__ import annotations

import numpy as np

from kpg.api.contracts import Arrangement, Database
from kpg.bench.data.graphs import Ints
from kpg.bench.measure import Stopwatch, settle
from kpg.bench.run import Run

FACTOR = 3


def arranged(db: Database, rows: int, seed: int) -> Arrangement:
    """Load and arrange a relation of distinct keys."""
    relation = db.input(f"r{rows}", k=int, v=int)
    arrangement = relation.arrange("k")
    keys = np.random.default_rng(seed).permutation(rows)
    relation.insert(np.stack([keys, FACTOR * keys], axis=1))
    db.advance()
    settle(db)
    return arrangement


def install(run: Run, db: Database, arrangement: Arrangement, keys: Ints, stopwatch: Stopwatch, name: str) -> None:
    """Install a join with a private input of some keys, check its first answer, and release it.

    The clock runs from describing the query until its first answer is in hand as a table.
    """
    with stopwatch:
        query = db.input(name, k=int)
        query.insert(keys)
        answer = arrangement.join(query, on="k").output(f"answer of {name}")
        db.advance()
        table = answer.snapshot()
    joined, values = table["k"].to_numpy(), table["v"].to_numpy()
    correct = np.array_equal(np.sort(joined), np.sort(keys)) and np.array_equal(values, FACTOR * joined)
    run.check(correct, "the join")
    answer.release()
    query.drop()
