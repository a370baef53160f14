"""E9: do a thousand idle queries slow down a busy one?

Idle: look-ups on another relation, which does not change while time advances. A busy query gets rounds of one change,
without them and with them. Then the same with the thousand on the busy relation itself, reported without a bar. And the
traces of the idle ones must still be compacted: before the rounds, a tenth of the quiet relation is removed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import kpg
from benchmarks import data
from benchmarks.answers import counts_after
from benchmarks.lines import Figures, Reference, Run, at_most
from benchmarks.measure import Clock, wall_clock


def run(run: Run) -> None:
    """Alone, beside idle ones, and with look-ups on what is busy."""
    rows, rounds, queries = run.size(1_000_000), run.times(2_000), run.size(1_000)
    alone, beside, among = wall_clock("alone"), wall_clock("1,000 idle queries"), wall_clock("1,000 look-ups")
    busy(rows, rounds, alone, lambda db, own: (own, rows + rounds % 2))
    kept = busy(rows, rounds, beside, lambda db, own: quiet(db, run.size(50_000), queries))
    busy(rows, rounds, among, lambda db, own: (look_up(db, own, rows, queries), rows + rounds % 2))
    reference = Reference("the busy query alone", alone.p50_ms / 1e3)
    bar = "within 1.5 times; compaction of the idle ones' traces goes on"
    bars = [at_most("ratio", 1.5), at_most("kept_over_present", 1.01)]
    found: Figures = {"rows": 1, "queries": queries}
    run.report("1,000 idle queries", bar, bars, reference, latency=beside, kept_over_present=kept, **found)
    run.report("1,000 look-ups on the busy relation", None, [], reference, latency=among, **found)
    run.latencies["alone"] = alone.seconds


Watched = tuple[kpg.Arrangement, int]  # what the others read, and how many rows are present in it
Others = Callable[[kpg.Database, kpg.Arrangement], Watched]


def busy(rows: int, rounds: int, clock: Clock, others: Others) -> float:
    """Rounds of one change on a counted relation, after others are installed; rows that those keep for each present."""
    keys, fresh = data.distinct_keys(rows), data.repeated_keys(rounds, rows)
    with kpg.open() as db:
        relation = db.input("busy", k=int)
        arrangement = relation.arrange("k")
        counts = relation.count("k").output("counts", keep=False)
        relation.insert(keys)
        db.advance()
        seen = [counts.take_changes()]
        watched, present = others(db, arrangement)
        for row, diff in data.alternating(keys, fresh, rounds):
            with clock:
                (relation.insert if diff > 0 else relation.remove)(row)
                db.advance()
                seen.append(counts.take_changes())
        total = counts_after(seen, rows)
        assert total.sum() == rows + rounds % 2
        assert watched.scan().num_rows == present
        return watched.rows / present


def quiet(db: kpg.Database, rows: int, queries: int) -> Watched:
    """A relation with look-ups on it, a tenth of it removed since; how many rows are left."""
    relation = db.input("quiet", k=int, v=int)
    arrangement = relation.arrange("k")
    pairs = np.stack([np.arange(rows), np.arange(rows)], axis=1)
    relation.insert(pairs)
    db.advance()
    look_up(db, arrangement, rows, queries)
    removed = np.array_split(pairs[::10], 10)
    for each in removed:
        relation.remove(each)
        db.advance()
    return arrangement, rows - len(pairs[::10])


def look_up(db: kpg.Database, arrangement: kpg.Arrangement, rows: int, queries: int) -> kpg.Arrangement:
    """Install queries for one key each."""
    for each in range(queries):
        key = db.input(f"key {each}", k=int)
        key.insert(np.array([each * 37 % rows]))
        arrangement.join(key, on="k").output(f"look-up {each}")
    db.advance()
    return arrangement
