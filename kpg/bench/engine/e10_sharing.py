"""E10: how much memory and time do ten queries save by sharing one arrangement of a million rows?

Each query joins the relation with a private relation of 1,000 rows. Without sharing, each query has its own copy of
the relation with its own arrangement, and receives the same changes. Memory is the size of all arrays. Update time is
CPU time of rounds of 10,000 changes, over enough rounds to include the merges they cause.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.data import key_streams
from kpg.bench.data.graphs import Ints
from kpg.bench.data.key_streams import Churn
from kpg.bench.experiment import at_least, engine_experiment
from kpg.bench.measure import Stopwatch, array_bytes, cpu_stopwatch, settle
from kpg.bench.output_values import rows_after
from kpg.bench.run import Reference, Run

QUERIES = 10
ROUNDS = 20
REPEATS = 3


def run(run: Run) -> None:
    """Apply the same rounds to one shared arrangement and to ten private ones."""
    rows, changes = run.size(1_000_000), run.size(10_000)
    pairs = key_streams.keyed_rows(rows, rows, 20)
    fresh = key_streams.keyed_rows(rows, rows, 30, first=rows)
    plan = key_streams.churn(pairs, fresh, REPEATS * ROUNDS, changes)
    wanted = run.size(1_000)
    keys = [np.random.default_rng(40 + query).choice(rows, wanted, replace=False) for query in range(QUERIES)]
    shared, private = cpu_stopwatch("shared"), cpu_stopwatch("private")
    shared_bytes, shared_answers = measure(pairs, plan, keys, shared, share=True)
    private_bytes, private_answers = measure(pairs, plan, keys, private, share=False)
    run.check(are_correct(pairs, plan, keys, shared_answers), "the answers on one arrangement")
    run.check(are_correct(pairs, plan, keys, private_answers), "the answers on ten arrangements")
    run.report(
        "ten queries on one arrangement",
        "memory at least 5 times, update time at least 3 times better when shared",
        [at_least("memory_times", 5), at_least("update_times", 3)],
        Reference("ten private relations", private.least / ROUNDS),
        rows=plan.changes,
        state_rows=rows,
        seconds=shared.least / ROUNDS,
        bytes_per_row=shared_bytes / rows,
        memory_times=private_bytes / shared_bytes,
        update_times=private.least / shared.least,
        private_bytes_per_row=private_bytes / rows,
    )


def measure(pairs: Ints, plan: Churn, keys: list[Ints], stopwatch: Stopwatch, share: bool) -> tuple[int, list[Ints]]:
    """Return the bytes of all arrays, and the answers after all rounds."""
    with kpg.open() as db:
        relations = [db.input(f"r{number}", k=int, v=int) for number in range(1 if share else QUERIES)]
        arrangements = [relation.arrange("k") for relation in relations]
        outputs = []
        for number, wanted in enumerate(keys):
            query = db.input(f"query {number}", k=int)
            query.insert(wanted)
            index = arrangements[number % len(arrangements)]
            outputs.append(index.join(query, on="k").output(f"answer {number}", keep=False))
        for relation in relations:
            relation.insert(pairs)
        db.advance()
        seen = [[output.take_changes()] for output in outputs]
        for start in range(0, REPEATS * ROUNDS, ROUNDS):
            with stopwatch:
                for inserts, removals in plan.part(start, start + ROUNDS):
                    for relation in relations:
                        relation.insert(inserts)
                        relation.remove(removals)
                    db.advance()
                    for changes, output in zip(seen, outputs, strict=True):
                        changes.append(output.take_changes())
        settle(db)
        return array_bytes(db), [rows_after(changes) for changes in seen]


def are_correct(pairs: Ints, plan: Churn, keys: list[Ints], answers: list[Ints]) -> bool:
    """Return whether each answer holds the remaining rows with a key of its query."""
    present, removed = plan.applied(pairs)
    left = present[~np.isin(present[:, 1], removed[:, 1])]  # v is distinct
    expected = [left[np.isin(left[:, 0], wanted)] for wanted in keys]
    in_order = [rows[np.lexsort((rows[:, 1], rows[:, 0]))].T for rows in expected]
    return all(np.array_equal(answer, rows) for answer, rows in zip(answers, in_order, strict=True))


EXPERIMENT = engine_experiment(
    "E10",
    "ten queries on one arrangement",
    "1M rows, ten queries of 1,000 keys, rounds of 10,000 changes",
    lambda scale: int(2e9 * scale + 4e8),
    run,
)
