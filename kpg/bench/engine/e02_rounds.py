"""E2: how fast are rounds of 10,000 changes, half of them removals, on 10M rows of 1M keys, and on 10M distinct keys?

A round is insert, remove, advance, and the changes of the count in hand. Throughput is CPU time of 200 rounds, the
least of three such runs on the same db. The latency of a round is wall time over all of them; its 99th percentile shows
whether merging is amortised. The keys are dense: all integers below 1M or 10M. Both cases are repeated with 62-bit
random keys.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.data import key_streams
from kpg.bench.data.graphs import Ints
from kpg.bench.engine.counted_keys import CountedKeys
from kpg.bench.experiment import at_least, at_most, engine_experiment
from kpg.bench.measure import cpu_stopwatch, least_cpu_seconds, wall_stopwatch
from kpg.bench.output_values import counts_after
from kpg.bench.peers import duckdb_recompute, numpy_recompute, pathway_process
from kpg.bench.run import Figures, Reference, Run

REPEATS = 3
ROUNDS = 200
PATHWAY_ROUNDS = 20


def run(run: Run) -> None:
    """Measure rounds on repeated and on distinct keys, dense and of 62 bits."""
    rows, distinct = run.size(10_000_000), run.size(1_000_000)
    repeated, different = key_streams.repeated_keys(rows, distinct), key_streams.distinct_keys(rows)
    figures, changes = measure(run, "1M keys", repeated, distinct, 3e6)
    if run.wants_pathway:
        compare_pathway(run, rows, distinct, changes, figures)
    measure(run, "10M distinct keys", different, rows, 2e6)
    measure(run, "1M 62-bit keys", repeated, distinct, 3e6, key_streams.wide_names(distinct))
    measure(run, "10M distinct 62-bit keys", different, rows, 2e6, key_streams.wide_names(rows))


def measure(
    run: Run, case: str, dense_keys: Ints, space: int, updates_per_second: float, names: Ints | None = None
) -> tuple[Figures, int]:
    """Load keys, then change them in rounds; return the figures, and the number of changes in a round."""
    rounds, changes = run.fixed_rounds(ROUNDS), run.size(10_000)
    fresh = np.random.default_rng(7).integers(0, space, REPEATS * rounds * changes)
    dense_plan = key_streams.churn(dense_keys, fresh, REPEATS * rounds, changes)
    plan, keys = (dense_plan, dense_keys) if names is None else (dense_plan.wide(names), names[dense_keys])
    cpu, wall = cpu_stopwatch(), wall_stopwatch(f"rounds, {case}")
    with kpg.open() as db:
        counted = CountedKeys(db)
        counted.load(keys)
        relation, counts, seen = counted.relation, counted.counts, counted.seen
        for repeat in range(REPEATS):
            with cpu:
                for inserts, removals in plan.part(repeat * rounds, (repeat + 1) * rounds):
                    with wall:
                        relation.insert(inserts)
                        relation.remove(removals)
                        db.advance()
                        seen.append(counts.take_changes())
    present, removed = dense_plan.applied(dense_keys)
    expected = numpy_recompute.counts(present, removed, space=space)
    run.check((counts_after(seen, space, names) == expected).all(), f"the counts after all rounds, {case}")
    per_round = cpu.least / rounds
    figures: Figures = {
        "rows": plan.changes,
        "state_rows": len(keys),
        "seconds": per_round,
        "rows_per_second": plan.changes / per_round,
        "p99_over_p50": wall.p99_ms / wall.p50_ms,
    }
    limits = [at_least("rows_per_second", updates_per_second), at_most("p99_over_p50", 5)]
    bar = f"at least {updates_per_second / 1e6:.0f}M updates/s; p99 of a round at most 5 times p50"
    duckdb = run.ask("duckdb", lambda: duckdb_recompute.count_by_key(keys))
    again = None if duckdb is None else Reference(f"{duckdb_recompute.name()}, counting all again", duckdb[1])
    run.report(f"rounds, {case}", bar, limits, again, latency=wall, **figures)
    if run.peers:
        unique = Reference("np.unique of all", least_cpu_seconds(lambda: numpy_recompute.count_by_sorting(keys)))
        run.report(f"rounds, {case}, against NumPy", reference=unique, **figures)
    return figures, plan.changes


def compare_pathway(run: Run, rows: int, space: int, changes: int, figures: Figures) -> None:
    """Compare with rounds of the same size in Pathway, on a relation that may be smaller."""
    share = run.pathway_share(rows)
    rows, space = int(rows * share), int(space * share)
    changes = min(changes, rows // PATHWAY_ROUNDS)
    keys = key_streams.repeated_keys(rows, space)
    fresh = np.random.default_rng(7).integers(0, space, PATHWAY_ROUNDS * changes)
    plan = key_streams.churn(numbered(keys, 0), numbered(fresh, rows), PATHWAY_ROUNDS, changes)
    answer = pathway_process.ask("rounds_of_keys", rows=numbered(keys, 0), inserts=plan.inserts, removals=plan.removals)
    present, removed = plan.applied(numbered(keys, 0))
    expected = numpy_recompute.counts(present[:, 1], removed[:, 1], space=space)
    run.check(answer.problem or answer.rows == (expected > 0).sum(), "Pathway has the same groups")
    way = f"rows through its Python connector, on {rows} rows"
    bar, limits = "at least 20 times faster", [at_most("ratio", 1 / 20)]
    run.report("rounds, 1M keys, against Pathway", bar, limits, answer.rounds(changes, way), **figures)


def numbered(rows: Ints, first: int) -> Ints:
    """Return rows with a number of their own in front, from `first` on: Pathway's primary key."""
    return np.concatenate([first + np.arange(len(rows)).reshape(-1, 1), rows.reshape(len(rows), -1)], axis=1)


EXPERIMENT = engine_experiment(
    "E2",
    "rounds of 10,000 changes",
    "10M rows, of 1M keys and of 10M distinct keys: dense, and of 62 bits",
    lambda scale: int(4e9 * scale + 4e8),
    run,
    ("duckdb", "pathway"),
)
