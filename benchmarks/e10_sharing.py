"""E10: what is gained when ten queries share one arrangement of a million rows instead of having one each?

Each query joins the relation with a private relation of 1,000 rows. Private means that each query has a copy of the
relation too, with an arrangement of its own, and is fed the same changes. Memory is what all arrays hold; update time
is CPU time of rounds of 10,000 changes, amortised over enough of them to include the merging they cause.
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks import data
from benchmarks.answers import rows_after
from benchmarks.lines import Reference, Run, at_least
from benchmarks.measure import Clock, cpu_clock, settle
from kpg.api.embedded_database import EmbeddedDatabase

QUERIES = 10
ROUNDS = 20
REPEATS = 3


def run(run: Run) -> None:
    """The same rounds on one arrangement and on ten."""
    rows, changes = run.size(1_000_000), run.size(10_000)
    pairs = data.keyed_rows(rows, rows, 20)
    fresh = data.keyed_rows(rows, rows, 30, first=rows)
    plan = data.churn(pairs, fresh, REPEATS * ROUNDS, changes)
    keys = [np.random.default_rng(40 + each).choice(rows, run.size(1_000), replace=False) for each in range(QUERIES)]
    shared, private = cpu_clock("shared"), cpu_clock("private")
    one, answers = measure(pairs, plan, keys, shared, share=True)
    ten, same = measure(pairs, plan, keys, private, share=False)
    check(pairs, plan, keys, answers)
    check(pairs, plan, keys, same)
    run.report(
        "ten queries on one arrangement",
        "memory at least 5 times, update time at least 3 times better when shared",
        [at_least("memory_times", 5), at_least("update_times", 3)],
        Reference("ten private relations", private.least / ROUNDS),
        rows=plan.changes,
        state_rows=rows,
        seconds=shared.least / ROUNDS,
        bytes_per_row=one / rows,
        memory_times=ten / one,
        update_times=private.least / shared.least,
        private_bytes_per_row=ten / rows,
    )


def measure(
    pairs: data.Ints, plan: data.Churn, keys: list[data.Ints], clock: Clock, share: bool
) -> tuple[int, list[data.Ints]]:
    """Bytes that all arrays hold, and the answers after all rounds."""
    with kpg.open() as db:
        relations = [db.input(f"r{each}", k=int, v=int) for each in range(1 if share else QUERIES)]
        arrangements = [relation.arrange("k") for relation in relations]
        outputs = []
        for each, wanted in enumerate(keys):
            query = db.input(f"query {each}", k=int)
            query.insert(wanted)
            index = arrangements[each % len(arrangements)]
            outputs.append(index.join(query, on="k").output(f"answer {each}", keep=False))
        for relation in relations:
            relation.insert(pairs)
        db.advance()
        seen = [[output.take_changes()] for output in outputs]
        for start in range(0, REPEATS * ROUNDS, ROUNDS):
            with clock:
                for inserts, removals in plan.part(start, start + ROUNDS):
                    for relation in relations:
                        relation.insert(inserts)
                        relation.remove(removals)
                    db.advance()
                    for into, output in zip(seen, outputs, strict=True):
                        into.append(output.take_changes())
        settle(db)
        assert isinstance(db, EmbeddedDatabase)
        held = sum(spine.nbytes for spine in db.spines())
        return held, [rows_after(changes) for changes in seen]


def check(pairs: data.Ints, plan: data.Churn, keys: list[data.Ints], answers: list[data.Ints]) -> None:
    """Each answer is the rows that are left and have a key of the query."""
    present, removed = plan.applied(pairs)
    left = present[~np.isin(present[:, 1], removed[:, 1])]  # v is unique
    for wanted, found in zip(keys, answers, strict=True):
        expected = left[np.isin(left[:, 0], wanted)]
        assert (found == expected[np.lexsort((expected[:, 1], expected[:, 0]))].T).all()
