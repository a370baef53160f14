"""E9: do a thousand idle queries slow down a busy one?

Idle queries look up keys in another relation, which does not change while time advances. A busy query gets rounds of
one change, without them and beside them. Then the thousand look-ups read the busy relation itself; each
change concerns one of them. The traces of idle queries must still be compacted: before the rounds, a tenth of the quiet
relation is removed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import kpg
from kpg.bench.data import key_streams
from kpg.bench.data.graphs import Ints
from kpg.bench.engine.counted_keys import CountedKeys
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import Stopwatch, wall_stopwatch
from kpg.bench.output_values import counts_after
from kpg.bench.run import Figures, Reference, Run

WatchedArrangement = tuple[kpg.Arrangement, int]  # what the other queries read, and its row count
InstallOthers = Callable[[kpg.Database, kpg.Arrangement], WatchedArrangement]


def run(run: Run) -> None:
    """Measure the busy query alone, beside idle queries, and with look-ups on its own relation."""
    rows, rounds, queries = run.size(1_000_000), run.fixed_rounds(2_000), run.size(1_000)
    alone, beside = wall_stopwatch("alone"), wall_stopwatch("1,000 idle queries")
    among = wall_stopwatch("1,000 look-ups")
    keys, fresh = key_streams.distinct_keys(rows), key_streams.repeated_keys(rounds, rows)
    changes = list(key_streams.alternating(keys, fresh, rounds))
    busy(run, keys, changes, alone, lambda db, own: (own, rows + rounds % 2))
    kept = busy(run, keys, changes, beside, lambda db, own: quiet(db, run.size(50_000), queries))
    wanted = looked_up_keys(rows, queries)
    looked_up = [(wanted[number // 2 % queries :][:1], 1 - number % 2 * 2) for number in range(rounds)]
    busy(run, keys, looked_up, among, lambda db, own: (look_up(db, own, rows, queries), rows + rounds % 2))
    reference = Reference("the busy query alone", alone.p50_ms / 1e3)
    bar = "within 1.5 times; compaction of the idle ones' traces goes on"
    limits = [at_most("ratio", 1.5), at_most("kept_over_present", 1.01)]
    figures: Figures = {"rows": 1, "queries": queries}
    run.report("1,000 idle queries", bar, limits, reference, latency=beside, kept_over_present=kept, **figures)
    bar, limits = "p50 at most 0.5 ms", [at_most("p50_ms", 0.5)]
    run.report("1,000 look-ups on the busy relation", bar, limits, reference, latency=among, **figures)
    run.curve("alone", alone.seconds)


def busy(
    run: Run, keys: Ints, changes: list[tuple[Ints, int]], stopwatch: Stopwatch, install_others: InstallOthers
) -> float:
    """Change a counted relation one row at a time, after other queries are installed.

    Return the rows that the other queries' arrangement keeps, divided by those present in it.
    """
    rows = len(keys)
    with kpg.open() as db:
        counted = CountedKeys(db, "busy")
        counted.load(keys)
        watched, present = install_others(db, counted.arrangement)
        counted.change_one_by_one(changes, stopwatch)
        run.check(counts_after(counted.seen, rows).sum() == rows + len(changes) % 2, "the counts of the busy query")
        run.check(watched.scan().num_rows == present, "the rows of the watched arrangement")
        return watched.rows / present


def quiet(db: kpg.Database, rows: int, queries: int) -> WatchedArrangement:
    """Load a relation, install look-ups on it, and remove a tenth of it."""
    relation = db.input("quiet", k=int, v=int)
    arrangement = relation.arrange("k")
    pairs = np.stack([np.arange(rows), np.arange(rows)], axis=1)
    relation.insert(pairs)
    db.advance()
    look_up(db, arrangement, rows, queries)
    for part in np.array_split(pairs[::10], 10):
        relation.remove(part)
        db.advance()
    return arrangement, rows - len(pairs[::10])


def look_up(db: kpg.Database, arrangement: kpg.Arrangement, rows: int, queries: int) -> kpg.Arrangement:
    """Install queries for one key each."""
    for number, looked_up in enumerate(looked_up_keys(rows, queries).tolist()):
        key = db.input(f"key {number}", k=int)
        key.insert([(looked_up,)])
        arrangement.join(key, on="k").output(f"look-up {number}")
    db.advance()
    return arrangement


def looked_up_keys(rows: int, queries: int) -> Ints:
    """Return the key of each query."""
    return np.arange(queries) * 37 % rows


EXPERIMENT = engine_experiment(
    "E9", "a busy query beside idle ones", "1M keys, 1,000 idle queries", lambda scale: int(1e9 * scale + 4e8), run
)
