"""E2: how fast are rounds of 10,000 changes, half of them removals, on 10M rows of 1M keys, and on 10M distinct keys?

A round is insert, remove, advance, and the changes of the count in hand. Throughput is CPU time of 200 rounds, the
least of three such runs on the same db; the latency of a round is wall time over all of them: its 99th percentile shows
whether merging is amortised.
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks import answers, data, peers_duckdb, peers_numpy, peers_pathway
from benchmarks.lines import Figures, Reference, Run, at_least, at_most
from benchmarks.measure import cpu_clock, least_cpu_seconds, wall_clock

REPEATS = 3


def run(run: Run) -> None:
    """Both kinds of keys."""
    rows = run.size(10_000_000)
    measure(run, "1M keys", data.repeated_keys(rows, run.size(1_000_000)), run.size(1_000_000), 3e6)
    measure(run, "10M distinct keys", data.distinct_keys(rows), rows, 2e6)


def measure(run: Run, case: str, keys: data.Ints, space: int, wanted: float) -> None:
    """Load, then change in rounds."""
    rounds, changes = run.times(200), run.size(10_000)
    fresh = np.random.default_rng(7).integers(0, space, REPEATS * rounds * changes)
    plan = data.churn(keys, fresh, REPEATS * rounds, changes)
    cpu, wall, seen = cpu_clock(), wall_clock(f"rounds, {case}"), []
    with kpg.open() as db:
        relation = db.input("r", k=int)
        relation.arrange("k")
        counts = relation.count("k").output("counts", keep=False)
        relation.insert(keys)
        db.advance()
        seen.append(counts.take_changes())
        for each in range(REPEATS):
            with cpu:
                for inserts, removals in plan.part(each * rounds, (each + 1) * rounds):
                    with wall:
                        relation.insert(inserts)
                        relation.remove(removals)
                        db.advance()
                        seen.append(counts.take_changes())
    present, removed = plan.applied(keys)
    expected = peers_numpy.counts(present, removed, space=space)
    assert (answers.counts_after(seen, space) == expected).all()
    per_round = cpu.least / rounds
    found: Figures = {
        "rows": plan.changes,
        "state_rows": len(keys),
        "seconds": per_round,
        "rows_per_second": plan.changes / per_round,
        "p99_over_p50": wall.p99_ms / wall.p50_ms,
    }
    bars = [at_least("rows_per_second", wanted), at_most("p99_over_p50", 5)]
    bar = f"at least {wanted / 1e6:.0f}M updates/s; p99 of a round at most 5 times p50"
    _, again, _ = peers_duckdb.count_by_key(keys) if run.asks_peers() else (0.0, 1.0, None)
    whole = Reference(f"{peers_duckdb.NAME}, counting all again", again)
    run.report(f"rounds, {case}", bar, bars, whole, latency=wall, **found)
    if run.asks_peers():
        unique = Reference("np.unique of all", least_cpu_seconds(lambda: peers_numpy.count_by_sorting(keys)))
        run.report(f"rounds, {case}, against NumPy", reference=unique, **found)
        if run.asks_pathway() and space < len(keys):
            compare_pathway(run, case, len(keys), space, plan.changes, found)


def compare_pathway(run: Run, case: str, rows: int, space: int, changes: int, found: Figures) -> None:
    """As large a round in Pathway, on a relation that may be smaller."""
    share, rounds = run.pathway_share(rows), 20
    rows, space = int(rows * share), int(space * share)
    way, changes = f"rows through its Python connector, on {rows} rows", min(changes, rows // rounds)
    peer = peers_pathway.ask("rounds_of_keys", rows=rows, distinct=space, changes=changes, rounds=rounds)
    keys = data.repeated_keys(rows, space)
    fresh = np.random.default_rng(7).integers(0, space, rounds * changes)
    expected = peers_numpy.counts(*data.churn(keys, fresh, rounds, changes).applied(keys), space=space)
    assert peer.problem or peer.rows == (expected > 0).sum()
    bar, bars = "at least 20 times faster", [at_most("ratio", 1 / 20)]
    run.report(f"rounds, {case}, against Pathway", bar, bars, peer.rounds(changes, way), **found)
