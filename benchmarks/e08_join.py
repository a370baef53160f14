"""E8: how fast is the join of R(k, v) with S(k, w), a million rows each over a million keys, consumed by a count?

v and w are unique, so that nothing can be summed up before it is joined. After the load, rounds of 1,000 changes on
each side, half of them removals.
"""

from __future__ import annotations

import kpg
from benchmarks import data, peers_duckdb, peers_numpy, peers_pathway
from benchmarks.answers import number_after
from benchmarks.lines import Figures, Reference, Run, at_least, at_most
from benchmarks.measure import Clock, cpu_clock, least_cpu_seconds, wall_clock


def run(run: Run) -> None:
    """Load three times, each followed by rounds."""
    rows = run.size(1_000_000)
    sides, plans = relations(rows, run.times(100), run.size(1_000))
    cpu, wall, busy = cpu_clock("load"), wall_clock("rounds"), cpu_clock()
    expected = [peers_numpy.count_joined(sides[0][:, 0], sides[1][:, 0]), joined_after(sides, plans)]
    for _ in range(3):
        assert join(sides, plans, cpu, wall, busy) == expected
    both = 2 * rows
    loaded: Figures = {"rows": both, "seconds": cpu.least, "rows_per_second": both / cpu.least}
    changed: Figures = {"rows": plans[0].changes + plans[1].changes, "state_rows": both}
    bar, bars = "load at least 4M rows/s", [at_least("rows_per_second", 4e6)]
    whole, again, table = peers_duckdb.count_joined(*sides)
    assert table["n"].to_pylist() == expected[:1]
    run.report("load", bar, bars, Reference(peers_duckdb.NAME, whole), **loaded)
    recount = Reference(f"{peers_duckdb.NAME}, joining all again", again)
    bar, bars = "round p50 at most 5 ms", [at_most("p50_ms", 5)]
    run.report("rounds", bar, bars, recount, latency=wall, **changed)
    left, right = sides[0][:, 0].copy(), sides[1][:, 0].copy()
    numpy = Reference("sorting and searching keys", least_cpu_seconds(lambda: peers_numpy.count_joined(left, right)))
    run.report("load, against NumPy", reference=numpy, **loaded)
    if run.asks_pathway():
        compare_pathway(run, rows, loaded, {**changed, "seconds": busy.least / len(plans[0])})


def relations(rows: int, rounds: int, changes: int) -> tuple[list[data.Ints], list[data.Churn]]:
    """R and S, and how each changes."""
    sides = [data.keyed_rows(rows, rows, 20 + side) for side in (0, 1)]
    fresh = [data.keyed_rows(rows, rows, 30 + side, first=rows) for side in (0, 1)]
    return sides, [data.churn(old, new, rounds, changes) for old, new in zip(sides, fresh, strict=True)]


def join(sides: list[data.Ints], plans: list[data.Churn], cpu: Clock, wall: Clock, busy: Clock) -> list[int]:
    """The number of pairs after the load, and after all rounds."""
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


def joined_after(sides: list[data.Ints], plans: list[data.Churn]) -> int:
    """The number of pairs after all rounds: keys counted on both sides, multiplied and summed."""
    space = len(sides[0])
    left, right = (
        peers_numpy.counts(*[part[:, 0] for part in plan.applied(rows)], space=space)
        for rows, plan in zip(sides, plans, strict=True)
    )
    return int((left * right).sum())


def compare_pathway(run: Run, rows: int, loaded: Figures, changed: Figures) -> None:
    """The same in Pathway, on as many rows as it is given."""
    rows, rounds = int(rows * run.pathway_share(2 * rows)), 10
    changes = min(int(changed["rows"]) // 2, rows // rounds)
    peer = peers_pathway.ask("rounds_of_join", rows=rows, changes=changes, rounds=rounds)
    assert peer.problem or peer.digest == joined_after(*relations(rows, rounds, changes))
    way = f"rows through its Python connector, on {2 * rows} rows"
    bar, bars = "at least 50 times faster", [at_most("ratio", 1 / 50)]
    run.report("load, against Pathway", bar, bars, peer.load(2 * rows, way), **loaded)
    run.report("rounds, against Pathway", reference=peer.rounds(2 * changes, way), **changed)
