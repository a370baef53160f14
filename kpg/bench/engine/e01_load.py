"""E1: how long does it take to load 10M random keys (1M distinct), in one epoch, into an arrangement and a count?

The clock runs from the insertion of a NumPy array until the counts are in hand. The bar is 3 times `np.sort` of the
same keys, because every engine that keeps keys sorted must sort them. The keys are dense: all integers below 1M, which
kpg counts by table. The same load with 62-bit random keys, which it must sort, has a row of its own. DuckDB, NumPy and
Pathway count the dense keys.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.data import key_streams
from kpg.bench.data.graphs import Ints
from kpg.bench.engine.counted_keys import CountedKeys
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import Stopwatch, cpu_stopwatch, least_cpu_seconds
from kpg.bench.output_values import counts_after
from kpg.bench.peers import duckdb_recompute, numpy_recompute, pathway_process
from kpg.bench.run import Figures, Reference, Run

REPEATS = 3
PATHWAY_INPUTS = {
    "load_columns": "rows as columns, a pandas frame",
    "load_rows": "rows through its Python connector",
    "load_csv": "rows from a CSV file",
}


def run(run: Run) -> None:
    """Load dense and 62-bit keys, then compare the dense load."""
    rows, distinct = run.size(10_000_000), run.size(1_000_000)
    keys = key_streams.repeated_keys(rows, distinct)
    figures = measure(run, "load", keys, distinct)
    names = key_streams.wide_names(distinct)
    measure(run, "load, 62-bit keys", key_streams.wide(keys, names), distinct, names)
    compare(run, keys, distinct, figures)


def measure(run: Run, case: str, keys: Ints, distinct: int, names: Ints | None = None) -> Figures:
    """Load keys several times into a new db, and check the counts of the last."""
    cpu = cpu_stopwatch(case)
    for _ in range(REPEATS):
        changes = load(keys, cpu)
    dense = keys if names is None else key_streams.DenseKeys(names).of(keys)
    expected = numpy_recompute.counts(dense, space=distinct)
    run.check((counts_after([changes], distinct, names) == expected).all(), f"the counts, {case}")
    sorting = Reference("np.sort of the same keys", least_cpu_seconds(lambda: np.sort(keys)))
    figures: Figures = {"rows": len(keys), "seconds": cpu.least, "rows_per_second": len(keys) / cpu.least}
    run.report(case, "at most 3 times np.sort", [at_most("ratio", 3)], sorting, **figures)
    return figures


def load(keys: Ints, stopwatch: Stopwatch) -> kpg.Changes:
    """Arrange and count keys in a new db; return the changes of the count."""
    with kpg.open() as db:
        counted = CountedKeys(db)
        with stopwatch:
            counted.load(keys)
        return counted.seen[0]


def compare(run: Run, keys: Ints, distinct: int, figures: Figures) -> None:
    """Compare the load with a recomputation of the counts by other systems."""
    groups = len(np.unique(keys))
    duckdb = run.ask("duckdb", lambda: duckdb_recompute.count_by_key(keys))
    if duckdb is not None:
        seconds, _, table = duckdb
        run.check(table.num_rows == groups, "DuckDB has the same groups")
        reference = Reference(duckdb_recompute.name(), seconds)
        run.report("load, against DuckDB", "at most what DuckDB takes", [at_most("ratio", 1)], reference, **figures)
    if run.peers:
        unique = Reference("np.unique", least_cpu_seconds(lambda: numpy_recompute.count_by_sorting(keys)))
        run.report("load, against NumPy", reference=unique, **figures)
    if run.wants_pathway:
        share = run.pathway_share(len(keys))
        rows = int(len(keys) * share)
        fewer_keys = key_streams.repeated_keys(rows, int(distinct * share))
        for program, way in PATHWAY_INPUTS.items():
            answer = pathway_process.ask(program, keys=fewer_keys)
            run.check(answer.problem or answer.rows == len(np.unique(fewer_keys)), f"Pathway counts {way}")
            bar, limits = "at least 50 times faster", [at_most("ratio", 1 / 50)]
            run.report(f"load, against Pathway, {way}", bar, limits, answer.load(rows, way), **figures)


EXPERIMENT = engine_experiment(
    "E1",
    "load into an arrangement and a count",
    "10M random keys, 1M distinct: dense, and of 62 bits",
    lambda scale: int(2.5e9 * scale + 4e8),
    run,
    ("duckdb", "pathway"),
)
