"""E3: how long does one change take, on 10M keys, through an arrangement and a count to an observer?

Rounds of one change, an insert and a removal in turn. This is where Python costs most: there is nothing to do in bulk.
"""

from __future__ import annotations

import kpg
from benchmarks import answers, data, peers_duckdb, peers_numpy
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import wall_clock


def run(run: Run) -> None:
    """Load, then change one by one."""
    rows, rounds = run.size(10_000_000), run.times(5_000)
    keys, fresh = data.distinct_keys(rows), data.repeated_keys(rounds, rows)
    changes = list(data.alternating(keys, fresh, rounds))
    wall, seen = wall_clock("one change"), []
    with kpg.open() as db:
        relation = db.input("r", k=int)
        relation.arrange("k")
        counts = relation.count("k").output("counts", keep=False)
        relation.insert(keys)
        db.advance()
        seen.append(counts.take_changes())
        for row, diff in changes:
            with wall:
                (relation.insert if diff > 0 else relation.remove)(row)
                db.advance()
                seen.append(counts.take_changes())
    expected = peers_numpy.counts(keys, space=rows)
    for row, diff in changes:
        expected[row] += diff
    assert (answers.counts_after(seen, rows) == expected).all()
    _, again, _ = peers_duckdb.count_by_key(keys) if run.asks_peers() else (0.0, 1.0, None)
    reference = Reference(f"{peers_duckdb.NAME}, counting all again", again)
    bar, bars = "p50 at most 0.2 ms, p99 at most 3 ms", [at_most("p50_ms", 0.2), at_most("p99_ms", 3)]
    run.report("one change", bar, bars, reference, latency=wall, rows=1, state_rows=rows)
