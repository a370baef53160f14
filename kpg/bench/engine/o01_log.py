"""O1: what does a log of the engine's events cost one change, on 1M keys, through an arrangement and a count?

Rounds of one change without a log, with a log that only listens, and with a log that writes its relations at each
advance: all its attributes, or only the sizes of arrangements. Without a log each event costs one test of an attribute,
so E3, which has no log, must not become slower.
"""

from __future__ import annotations

from contextlib import nullcontext

import kpg
from kpg.bench.data import key_streams
from kpg.bench.engine.counted_keys import CountedKeys
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import Stopwatch, wall_stopwatch
from kpg.bench.output_values import counts_after
from kpg.bench.run import Reference, Run
from kpg.observe.attributes import SIZE
from kpg.observe.event_log import EventLog

NEVER_SECONDS = 1e9  # an interval between two writes that no run reaches


def run(run: Run) -> None:
    """Measure the same rounds without a log and with three logs."""
    rows, rounds = run.size(1_000_000), run.fixed_rounds(2_000)
    without, listening = wall_stopwatch("no log"), wall_stopwatch("a log that listens")
    size, everything = wall_stopwatch("a log of sizes"), wall_stopwatch("a log of everything")
    change(run, rows, rounds, without)
    change(run, rows, rounds, listening, [], every=NEVER_SECONDS)
    change(run, rows, rounds, size, [SIZE])
    change(run, rows, rounds, everything, None)
    run.report("no log", "p50 at most 0.2 ms, as in E3", [at_most("p50_ms", 0.2)], latency=without, rows=1)
    reference = Reference("no log", without.p50_ms / 1e3)
    limits = [at_most("ratio", 1.5)]
    run.report("a log that listens", "at most 1.5 times", limits, reference, latency=listening, rows=1)
    run.report("a log of sizes, written at each advance", None, [], reference, latency=size, rows=1)
    run.report("a log of everything, written at each advance", None, [], reference, latency=everything, rows=1)


def change(
    run: Run, rows: int, rounds: int, stopwatch: Stopwatch, attributes: list[str] | None = None, every: float = 0.0
) -> None:
    """Change a counted relation one row at a time, with or without a log."""
    keys, fresh = key_streams.distinct_keys(rows), key_streams.repeated_keys(rounds, rows)
    has_log = stopwatch.name != "no log"
    with kpg.open() as db, EventLog(db, attributes, every=every) if has_log else nullcontext() as log:
        counted = CountedKeys(db)
        counted.load(keys)
        counted.change_one_by_one(key_streams.alternating(keys, fresh, rounds), stopwatch)
        run.check(counts_after(counted.seen, rows).sum() == rows + rounds % 2, f"the counts with {stopwatch.name}")
        if log is not None:
            (logged,) = [operator.rows for operator in log.operators() if operator.name == "arrange r by k"]
            run.check(logged == counted.arrangement.rows, f"the size of the arrangement in {stopwatch.name}")


EXPERIMENT = engine_experiment(
    "O1", "the cost of an event log", "1M keys, rounds of one change", lambda scale: int(6e8 * scale + 4e8), run
)
