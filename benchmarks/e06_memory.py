"""E6: how many bytes does a row of a compacted (int64, int64) arrangement of 10M rows take, and each further query?

Counted from the arrays, and as growth of what the process holds of the machine's memory, after the rows that were
handed in are gone. Two plain columns of int64 take 16. A further query looks up one key in the shared arrangement.
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks import data
from benchmarks.lines import Figures, Run, at_most
from benchmarks.measure import resident_bytes, settle
from kpg.api.embedded_database import EmbeddedDatabase


def run(run: Run) -> None:
    """One arrangement, then ten queries."""
    rows = run.size(10_000_000)
    with kpg.open() as db:
        before = resident_bytes()
        relation = db.input("r", k=int, v=int)
        arrangement = relation.arrange("k")
        insert_pairs(relation, rows)
        db.advance()
        settle(db)
        resident = (resident_bytes() - before) / rows
        assert arrangement.rows == rows
        found: Figures = {"rows": rows, "bytes_per_row": arrangement.nbytes / rows, "resident_bytes_per_row": resident}
        bars = [at_most("bytes_per_row", 17), at_most("resident_bytes_per_row", 20)]
        run.report("arrangement", "at most 17 bytes a row by arrays, 20 by RSS", bars, **found)
        check(arrangement, rows)
        share(run, db, arrangement, rows)


def share(run: Run, db: kpg.Database, arrangement: kpg.Arrangement, rows: int) -> None:
    """What the second to the tenth query add, in parts of a hundred of the arrangement."""
    assert isinstance(db, EmbeddedDatabase)
    queries, held, resident = [], [], []
    for each in range(10):
        key = db.input(f"key {each}", k=int)
        key.insert(np.array([each * 7 % rows]))
        queries.append(arrangement.join(key, on="k").output(f"look-up {each}"))
        db.advance()
        assert queries[-1].rows() == [(each * 7 % rows, 3 * (each * 7 % rows))]
        settle(db)
        held.append(sum(spine.nbytes for spine in db.spines()))
        resident.append(resident_bytes())
    whole = arrangement.nbytes / 100
    by_arrays, by_resident = np.diff(held) / whole, np.diff(resident) / whole
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
    """Pairs (k, 3 k), k distinct in random order, which nobody holds afterwards."""
    keys = data.distinct_keys(rows)
    relation.insert(np.stack([keys, 3 * keys], axis=1))


def check(arrangement: kpg.Arrangement, rows: int) -> None:
    """All rows are there."""
    table = arrangement.scan()
    keys, values = table["k"].to_numpy(), table["v"].to_numpy()
    assert (np.sort(keys) == np.arange(rows)).all() and (values == 3 * keys).all()
