"""E6: how many bytes does a row of a compacted (int64, int64) arrangement of 10M rows take, and each further query?

Measured from the arrays, and as growth of the process's resident memory after the inserted rows are freed. Two plain
columns of int64 take 16 bytes a row. A further query looks up one key in the shared arrangement.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.data import key_streams
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import array_bytes, collected_resident_bytes, settle
from kpg.bench.run import Figures, Run

QUERIES = 10


def run(run: Run) -> None:
    """Measure one arrangement, then the queries that share it."""
    rows = run.size(10_000_000)
    with kpg.open() as db:
        before = collected_resident_bytes()
        relation = db.input("r", k=int, v=int)
        arrangement = relation.arrange("k")
        insert_pairs(relation, rows)
        db.advance()
        settle(db)
        resident = (collected_resident_bytes() - before) / rows
        run.check(arrangement.rows == rows, "the row count of the arrangement")
        figures: Figures = {
            "rows": rows, "bytes_per_row": arrangement.nbytes / rows, "resident_bytes_per_row": resident,
        }  # fmt: skip
        limits = [at_most("bytes_per_row", 17), at_most("resident_bytes_per_row", 20)]
        run.report("arrangement", "at most 17 bytes a row by arrays, 20 by RSS", limits, **figures)
        run.check(holds_pairs(arrangement, rows), "the rows of the arrangement")
        share(run, db, arrangement, rows)


def share(run: Run, db: kpg.Database, arrangement: kpg.Arrangement, rows: int) -> None:
    """Measure what the second to the tenth query add, in percent of the arrangement."""
    queries, held, resident = [], [], []
    for number in range(QUERIES):
        key = db.input(f"key {number}", k=int)
        key.insert(np.array([number * 7 % rows]))
        queries.append(arrangement.join(key, on="k").output(f"look-up {number}"))
        db.advance()
        expected = [(number * 7 % rows, 3 * (number * 7 % rows))]
        run.check(queries[-1].rows() == expected, f"the answer of look-up {number}")
        settle(db)
        held.append(array_bytes(db))
        resident.append(collected_resident_bytes())
    one_percent = arrangement.nbytes / 100
    by_arrays, by_resident = np.diff(held) / one_percent, np.diff(resident) / one_percent
    run.report(
        "second to tenth query",
        "each at most 1% more",
        [at_most("most_percent", 1), at_most("mean_resident_percent", 1)],
        rows=rows,
        most_percent=float(by_arrays.max()),
        mean_resident_percent=float(by_resident.mean()),
        most_resident_percent=float(by_resident.max()),
    )


def insert_pairs(relation: kpg.Input, rows: int) -> None:
    """Insert pairs (k, 3 k), k distinct and in random order. The arrays are freed on return."""
    keys = key_streams.distinct_keys(rows)
    relation.insert(np.stack([keys, 3 * keys], axis=1))


def holds_pairs(arrangement: kpg.Arrangement, rows: int) -> bool:
    """Return whether an arrangement holds all pairs."""
    table = arrangement.scan()
    keys, values = table["k"].to_numpy(), table["v"].to_numpy()
    return np.array_equal(np.sort(keys), np.arange(rows)) and np.array_equal(values, 3 * keys)


EXPERIMENT = engine_experiment(
    "E6", "memory of an arrangement", "10M rows of two int64", lambda scale: int(1.4e9 * scale + 4e8), run
)
