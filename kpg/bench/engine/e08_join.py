"""E8: how fast is the join of R(k, v) with S(k, w), a million rows each over a million keys, consumed by a count?

v and w are distinct, so no rows can be summed before the join. After the load come rounds of 1,000 changes on each
side, half of them removals. The keys are dense: all integers below 1M. The load and the rounds are repeated with 62-bit
random keys.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.data import key_streams
from kpg.bench.data.graphs import Ints
from kpg.bench.data.key_streams import Churn
from kpg.bench.engine.e02_rounds import numbered
from kpg.bench.experiment import at_least, at_most, engine_experiment
from kpg.bench.measure import Stopwatch, cpu_stopwatch, least_cpu_seconds, wall_stopwatch
from kpg.bench.output_values import number_after
from kpg.bench.peers import duckdb_recompute, numpy_recompute, pathway_process
from kpg.bench.run import Figures, Reference, Run

REPEATS = 3
ROUNDS = 100
PATHWAY_ROUNDS = 10


def run(run: Run) -> None:
    """Measure dense and 62-bit keys, then compare the dense keys with Pathway."""
    rows = run.size(1_000_000)
    sides, plans = relations(rows, run.fixed_rounds(ROUNDS), run.size(1_000))
    loaded, changed = measure(run, "", sides, plans)
    names = key_streams.wide_names(rows)
    wide_sides = [key_streams.wide(side, names) for side in sides]
    measure(run, ", 62-bit keys", wide_sides, [plan.wide(names) for plan in plans])
    if run.wants_pathway:
        compare_pathway(run, rows, loaded, changed)


def measure(run: Run, kind: str, sides: list[Ints], plans: list[Churn]) -> tuple[Figures, Figures]:
    """Load several times, each time followed by rounds; return the figures of loads and of rounds."""
    cpu, wall, busy = cpu_stopwatch(f"load{kind}"), wall_stopwatch(f"rounds{kind}"), cpu_stopwatch()
    expected = [numpy_recompute.count_joined(sides[0][:, 0], sides[1][:, 0]), pairs_after(sides, plans)]
    for _ in range(REPEATS):
        pairs = join(sides, plans, cpu, wall, busy)
        run.check(pairs == expected, f"the number of pairs{kind}")
    rows = len(sides[0]) + len(sides[1])
    loaded: Figures = {"rows": rows, "seconds": cpu.least, "rows_per_second": rows / cpu.least}
    changed: Figures = {"rows": plans[0].changes + plans[1].changes, "state_rows": rows}
    duckdb = run.ask("duckdb", lambda: duckdb_recompute.count_joined(*sides))
    whole = again = None
    if duckdb is not None:
        run.check(duckdb[2]["n"].to_pylist() == expected[:1], "DuckDB has the same number of pairs")
        whole = Reference(duckdb_recompute.name(), duckdb[0])
        again = Reference(f"{duckdb_recompute.name()}, joining all again", duckdb[1])
    run.report(f"load{kind}", "load at least 4M rows/s", [at_least("rows_per_second", 4e6)], whole, **loaded)
    run.report(f"rounds{kind}", "round p50 at most 5 ms", [at_most("p50_ms", 5)], again, latency=wall, **changed)
    left, right = sides[0][:, 0].copy(), sides[1][:, 0].copy()
    seconds = least_cpu_seconds(lambda: numpy_recompute.count_joined(left, right))
    run.report(f"load{kind}, against NumPy", reference=Reference("sorting and searching keys", seconds), **loaded)
    return loaded, {**changed, "seconds": busy.least / len(plans[0])}


def relations(rows: int, rounds: int, changes: int) -> tuple[list[Ints], list[Churn]]:
    """Return R and S, and the changes of each."""
    sides = [key_streams.keyed_rows(rows, rows, 20 + side) for side in (0, 1)]
    fresh = [key_streams.keyed_rows(rows, rows, 30 + side, first=rows) for side in (0, 1)]
    return sides, [key_streams.churn(old, new, rounds, changes) for old, new in zip(sides, fresh, strict=True)]


def join(sides: list[Ints], plans: list[Churn], cpu: Stopwatch, wall: Stopwatch, busy: Stopwatch) -> list[int]:
    """Return the number of pairs after the load, and after all rounds."""
    with kpg.open() as db:
        relations = [db.input("r", k=int, v=int), db.input("s", k=int, w=int)]
        count = relations[0].join(relations[1], on="k").count().output("pairs", keep=False)
        with cpu:
            for relation, rows in zip(relations, sides, strict=True):
                relation.insert(rows)
            db.advance()
            seen = [count.take_changes()]
        loaded = number_after(seen)
        with busy:
            for changes in zip(*plans, strict=True):
                with wall:
                    for relation, (inserts, removals) in zip(relations, changes, strict=True):
                        relation.insert(inserts)
                        relation.remove(removals)
                    db.advance()
                    seen.append(count.take_changes())
        return [loaded, number_after(seen)]


def pairs_after(sides: list[Ints], plans: list[Churn]) -> int:
    """Return the number of pairs after all rounds: the counts of each key on both sides, multiplied and summed."""
    parts = [plan.applied(rows) for rows, plan in zip(sides, plans, strict=True)]
    keys = [[part[:, 0] for part in side] for side in parts]  # present and removed, for each side
    distinct = np.unique(np.concatenate([part for side in keys for part in side]))
    positions = [[np.searchsorted(distinct, part) for part in side] for side in keys]
    left, right = (numpy_recompute.counts(present, removed, space=len(distinct)) for present, removed in positions)
    return int((left * right).sum())


def compare_pathway(run: Run, rows: int, loaded: Figures, changed: Figures) -> None:
    """Compare with the same join in Pathway, on as many rows as it may receive."""
    rows = int(rows * run.pathway_share(2 * rows))
    changes = min(int(changed["rows"]) // 2, rows // PATHWAY_ROUNDS)
    sides, plans = relations(rows, PATHWAY_ROUNDS, changes)
    bar, limits = "at least 50 times faster", [at_most("ratio", 1 / 50)]
    columns = pathway_process.ask("load_join_columns", left=sides[0], right=sides[1])
    pairs = numpy_recompute.count_joined(sides[0][:, 0], sides[1][:, 0])
    run.check(columns.problem or columns.digest == pairs, "Pathway has the same number of pairs, from columns")
    way = f"rows as columns, a pandas frame, {2 * rows} rows"
    run.report("load, against Pathway, from columns", bar, limits, columns.load(2 * rows, way), **loaded)
    answer = pathway_process.ask("rounds_of_join", **numbered_rounds(rows, changes))
    run.check(answer.problem or answer.digest == pairs_after(sides, plans), "Pathway has the same number of pairs")
    way = f"rows through its Python connector, on {2 * rows} rows"
    run.report("load, against Pathway", bar, limits, answer.load(2 * rows, way), **loaded)
    run.report("rounds, against Pathway", reference=answer.rounds(2 * changes, way), **changed)


def numbered_rounds(rows: int, changes: int) -> dict[str, Ints]:
    """Return both relations and their changes with a number in front of each row, which Pathway needs to delete it."""
    arrays: dict[str, Ints] = {}
    for side, name in enumerate(("left", "right")):
        first = side * 10 * rows
        old = numbered(key_streams.keyed_rows(rows, rows, 20 + side), first)
        fresh = numbered(key_streams.keyed_rows(rows, rows, 30 + side, first=rows), first + rows)
        plan = key_streams.churn(old, fresh, PATHWAY_ROUNDS, changes)
        arrays |= {name: old, f"{name}_inserts": plan.inserts, f"{name}_removals": plan.removals}
    return arrays


EXPERIMENT = engine_experiment(
    "E8",
    "join of two relations, counted",
    "1M rows on each side: dense keys, and keys of 62 bits",
    lambda scale: int(1.2e9 * scale + 4e8),
    run,
    ("duckdb", "pathway"),
)
