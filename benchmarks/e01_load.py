"""E1: how long do 10M random keys (1M distinct) take, in one epoch, into an arrangement and a maintained count?

The clock runs from the insert of a NumPy array until the counts are in hand. Bar: 3 times `np.sort` of the same keys,
which any engine that keeps them sorted must do. DuckDB, NumPy and Pathway count the same keys.
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks import answers, data, peers_duckdb, peers_numpy, peers_pathway
from benchmarks.lines import Figures, Reference, Run, at_most
from benchmarks.measure import Clock, cpu_clock, least_cpu_seconds


def run(run: Run) -> None:
    """Load, three times afresh; compare."""
    rows, distinct = run.size(10_000_000), run.size(1_000_000)
    keys = data.repeated_keys(rows, distinct)
    cpu = cpu_clock("load")
    for _ in range(3):
        changes = load(keys, cpu)
    expected = peers_numpy.counts(keys, space=distinct)
    assert (answers.counts_after([changes], distinct) == expected).all()
    sorting = Reference("np.sort of the same keys", least_cpu_seconds(lambda: np.sort(keys)))
    found: Figures = {"rows": rows, "seconds": cpu.least, "rows_per_second": rows / cpu.least}
    run.report("load", "at most 3 times np.sort", [at_most("ratio", 3)], sorting, **found)
    if run.asks_peers():
        compare(run, keys, expected, found)


def load(keys: data.Ints, clock: Clock) -> kpg.Changes:
    """Arrange and count in a db of its own; the changes of the count."""
    with kpg.open() as db:
        relation = db.input("r", k=int)
        relation.arrange("k")
        counts = relation.count("k").output("counts", keep=False)
        with clock:
            relation.insert(keys)
            db.advance()
            changes = counts.take_changes()
        return changes


def compare(run: Run, keys: data.Ints, expected: data.Ints, found: Figures) -> None:
    """The same count afresh elsewhere."""
    seconds, _, table = peers_duckdb.count_by_key(keys)
    assert table.num_rows == (expected > 0).sum()
    duckdb = Reference(peers_duckdb.NAME, seconds)
    run.report("load, against DuckDB", "at most what DuckDB takes", [at_most("ratio", 1)], duckdb, **found)
    unique = Reference("np.unique", least_cpu_seconds(lambda: peers_numpy.count_by_sorting(keys)))
    run.report("load, against NumPy", reference=unique, **found)
    if run.asks_pathway():
        share = run.pathway_share(len(keys))
        rows, distinct = int(len(keys) * share), int(len(expected) * share)
        groups = len(np.unique(data.repeated_keys(rows, distinct)))
        for program, way in (("load_rows", "rows through its Python connector"), ("load_csv", "rows from a CSV file")):
            peer = peers_pathway.ask(program, rows=rows, distinct=distinct)
            assert peer.problem or peer.rows == groups
            case = f"load, against Pathway, {way}"
            run.report(case, "at least 50 times faster", [at_most("ratio", 1 / 50)], peer.load(rows, way), **found)
