"""O1: what does a log of the engine's events cost one change, on 1M keys, through an arrangement and a count?

Rounds of one change without a log, with one that only listens, and with one whose relations are written at each
advance: all its attributes, and the size of arrangements alone. Without a log each event is one test of an attribute,
so E3, which has none, must not have become slower by it.
"""

from __future__ import annotations

from contextlib import nullcontext

import kpg
from benchmarks import data
from benchmarks.answers import counts_after
from benchmarks.lines import Reference, Run, at_most
from benchmarks.measure import Clock, wall_clock
from kpg.observe.attributes import SIZE
from kpg.observe.event_log import EventLog

NEVER = 1e9  # seconds


def run(run: Run) -> None:
    """The same rounds four times."""
    rows, rounds = run.size(1_000_000), run.times(2_000)
    without, listening = wall_clock("no log"), wall_clock("a log that listens")
    size, everything = wall_clock("a log of sizes"), wall_clock("a log of everything")
    changes(rows, rounds, without)
    changes(rows, rounds, listening, [], every=NEVER)
    changes(rows, rounds, size, [SIZE])
    changes(rows, rounds, everything, None)
    run.report("no log", "p50 at most 0.2 ms, as in E3", [at_most("p50_ms", 0.2)], latency=without, rows=1)
    reference = Reference("no log", without.p50_ms / 1e3)
    run.report("a log that listens", "at most 1.5 times", [at_most("ratio", 1.5)], reference, latency=listening, rows=1)
    run.report("a log of sizes, told at each advance", None, [], reference, latency=size, rows=1)
    run.report("a log of everything, told at each advance", None, [], reference, latency=everything, rows=1)


def changes(rows: int, rounds: int, clock: Clock, attributes: list[str] | None = None, every: float = 0.0) -> None:
    """Rounds of one change on a counted relation."""
    keys, fresh = data.distinct_keys(rows), data.repeated_keys(rounds, rows)
    logged = clock.name != "no log"
    with kpg.open() as db, EventLog(db, attributes, every=every) if logged else nullcontext() as log:
        relation = db.input("r", k=int)
        relation.arrange("k")
        counts = relation.count("k").output("counts", keep=False)
        relation.insert(keys)
        db.advance()
        seen = [counts.take_changes()]
        for row, diff in data.alternating(keys, fresh, rounds):
            with clock:
                (relation.insert if diff > 0 else relation.remove)(row)
                db.advance()
                seen.append(counts.take_changes())
        assert counts_after(seen, rows).sum() == rows + rounds % 2
        if log is not None:
            (told,) = [each.rows for each in log.operators() if each.name == "arrange r by k"]
            assert told == relation.arrange("k").rows
