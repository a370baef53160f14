"""E3: how long does one change take, on 10M keys, through an arrangement and a count to an output?

Rounds of one change, an insertion and a removal in turn. Here Python costs most, because there is no bulk work.
"""

from __future__ import annotations

import kpg
from kpg.bench.data import key_streams
from kpg.bench.engine.counted_keys import CountedKeys
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import wall_stopwatch
from kpg.bench.output_values import counts_after
from kpg.bench.peers import duckdb_recompute, numpy_recompute
from kpg.bench.run import Reference, Run


def run(run: Run) -> None:
    """Load, then change one row at a time."""
    rows, rounds = run.size(10_000_000), run.fixed_rounds(5_000)
    keys, fresh = key_streams.distinct_keys(rows), key_streams.repeated_keys(rounds, rows)
    changes = list(key_streams.alternating(keys, fresh, rounds))
    wall = wall_stopwatch("one change")
    with kpg.open() as db:
        counted = CountedKeys(db)
        counted.load(keys)
        counted.change_one_by_one(changes, wall)
    expected = numpy_recompute.counts(keys, space=rows)
    for row, diff in changes:
        expected[row] += diff
    run.check((counts_after(counted.seen, rows) == expected).all(), "the counts after all changes")
    duckdb = run.ask("duckdb", lambda: duckdb_recompute.count_by_key(keys))
    again = None if duckdb is None else Reference(f"{duckdb_recompute.name()}, counting all again", duckdb[1])
    bar, limits = "p50 at most 40 us, p99 at most 3 ms", [at_most("p50_ms", 0.04), at_most("p99_ms", 3)]
    run.report("one change", bar, limits, again, latency=wall, rows=1, state_rows=rows)


EXPERIMENT = engine_experiment(
    "E3", "rounds of one change", "10M keys", lambda scale: int(2e9 * scale + 4e8), run, ("duckdb",)
)
