"""E10: what is gained when ten queries share one arrangement of a million rows instead of having one each?

Each query joins the relation with a private relation of 1,000 rows. Shared, there is one arrangement; private, ten: one
query uses the relation's own, nine make theirs. Memory is what all arrays hold; update time is CPU time of a round of
10,000 changes.
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks import data
from benchmarks.answers import rows_after
from benchmarks.lines import Run, at_least
from benchmarks.measure import Clock, cpu_clock, settle

QUERIES = 10
ROUNDS = 12


def run(run: Run) -> None:
    """The same rounds on one arrangement and on ten."""
    rows, changes = run.size(1_000_000), run.size(10_000)
    pairs = data.keyed_rows(rows, rows, 20)
    fresh = data.keyed_rows(rows, rows, 30, first=rows)
    plan = data.churn(pairs, fresh, ROUNDS, changes)
    keys = [np.random.default_rng(40 + each).choice(rows, run.size(1_000), replace=False) for each in range(QUERIES)]
    shared, private = cpu_clock(), cpu_clock()
    one, answers = measure(pairs, plan, keys, shared, share=True)
    ten, same = measure(pairs, plan, keys, private, share=False)
    check(pairs, plan, keys, answers)
    check(pairs, plan, keys, same)
    run.report(
        "ten queries on one arrangement",
        "memory at least 5 times, update time at least 3 times better when shared",
        [at_least("memory_times", 5), at_least("update_times", 3)],
        rows=plan.changes,
        state_rows=rows,
        seconds=shared.least,
        bytes_per_row=one / rows,
        memory_times=ten / one,
        update_times=private.least / shared.least,
        private_seconds=private.least,
        private_bytes_per_row=ten / rows,
    )


def measure(
    pairs: data.Ints, plan: data.Churn, keys: list[data.Ints], clock: Clock, share: bool
) -> tuple[int, list[data.Ints]]:
    """Bytes that all arrays hold, and the answers after all rounds."""
    with kpg.open() as db:
        relation = db.input("r", k=int, v=int)
        arrangement = relation.arrange("k")
        outputs = []
        for each, wanted in enumerate(keys):
            query = db.input(f"query {each}", k=int)
            query.insert(wanted)
            index = arrangement if share or each == 0 else relation.select("k", "v").arrange("k")
            outputs.append(index.join(query, on="k").output(f"answer {each}", keep=False))
        relation.insert(pairs)
        db.advance()
        seen = [[output.take_changes()] for output in outputs]
        for inserts, removals in plan:
            with clock:
                relation.insert(inserts)
                relation.remove(removals)
                db.advance()
                for into, output in zip(seen, outputs, strict=True):
                    into.append(output.take_changes())
        settle(db)
        held = sum(spine.nbytes for spine in db.spines())
        return held, [rows_after(changes) for changes in seen]


def check(pairs: data.Ints, plan: data.Churn, keys: list[data.Ints], answers: list[data.Ints]) -> None:
    """Each answer is the rows that are left and have a key of the query."""
    present, removed = plan.applied(pairs)
    left = present[~np.isin(present[:, 1], removed[:, 1])]  # v is unique
    for wanted, found in zip(keys, answers, strict=True):
        expected = left[np.isin(left[:, 0], wanted)]
        assert (found == expected[np.lexsort((expected[:, 1], expected[:, 0]))].T).all()
