"""S6: how soon does the tenth query on a loaded relation answer, on workers in Spark, and does it take a Spark job?

The clock runs from describing the query until its first answer is in hand as a table.
"""

from __future__ import annotations

import numpy as np

import kpg
from benchmarks.lines import Run, at_most
from benchmarks.measure import wall_clock
from benchmarks.spark_session import WORKERS, jobs_so_far, session

ROWS = 1_000_000
QUERIES = 10


def run(run: Run) -> None:
    """Nine queries, then the tenth, again and again."""
    rows = run.size(ROWS)
    with session() as spark, kpg.open(spark=spark, workers=WORKERS) as db:
        relation = db.input("r", k=int, v=int)
        shared = relation.arrange("k")
        keys = np.random.default_rng(5).permutation(rows)
        relation.insert(np.stack([keys, 3 * keys], axis=1))
        db.advance()
        standing = [ask(db, shared, each) for each in range(QUERIES - 1)]
        clock, before = wall_clock("tenth query"), jobs_so_far(spark)
        for each in range(run.times(100)):
            with clock:
                query, answer = ask(db, shared, QUERIES + each)
                found = answer.rows()
            assert found == [(7 + QUERIES + each, 3 * (7 + QUERIES + each))], found
            answer.release()
            query.drop()
        jobs = jobs_so_far(spark) - before
        bar = "p50 at most 20 ms, no Spark job"
        run.report("tenth query", bar, [at_most("p50_ms", 20), at_most("spark_jobs", 0.5)], latency=clock,
                   state_rows=rows, spark_jobs=jobs, queries=len(standing) + 1)  # fmt: skip


def ask(db: kpg.Database, shared: kpg.Arrangement, number: int) -> tuple[kpg.Input, kpg.Output]:
    """A query of one key, given as data of its own."""
    query = db.input(f"query {number}", k=int)
    query.insert([(7 + number,)])
    answer = shared.join(query, on="k").output(f"answer {number}")
    db.advance()
    return query, answer
