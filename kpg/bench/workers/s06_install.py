"""S6: how soon does the tenth query on a loaded relation answer, on workers in Spark, and does it need a Spark job?

The clock runs from describing the query until its first answer is in hand as rows.
"""

from __future__ import annotations

import numpy as np

import kpg
from kpg.bench.experiment import at_most, engine_experiment
from kpg.bench.measure import wall_stopwatch
from kpg.bench.run import Run
from kpg.bench.workers.spark_bench_session import WORKERS, session, started_jobs

ROWS = 1_000_000
QUERIES = 10


def run(run: Run) -> None:
    """Install nine queries, then the tenth, again and again."""
    rows = run.size(ROWS)
    with session() as spark, kpg.open(spark=spark, workers=WORKERS) as db:
        relation = db.input("r", k=int, v=int)
        shared = relation.arrange("k")
        keys = np.random.default_rng(5).permutation(rows)
        relation.insert(np.stack([keys, 3 * keys], axis=1))
        db.advance()
        standing = [install(db, shared, number) for number in range(QUERIES - 1)]
        stopwatch, jobs_before = wall_stopwatch("tenth query"), started_jobs(spark)
        for number in range(QUERIES, QUERIES + run.fixed_rounds(100)):
            with stopwatch:
                query, answer = install(db, shared, number)
                answer_rows = answer.rows()
            run.check(answer_rows == [(7 + number, 3 * (7 + number))], f"the answer of query {number}")
            answer.release()
            query.drop()
        jobs = started_jobs(spark) - jobs_before
        bar = "p50 at most 20 ms, no Spark job"
        limits = [at_most("p50_ms", 20), at_most("spark_jobs", 0.5)]
        run.report(
            "tenth query", bar, limits, latency=stopwatch, state_rows=rows, spark_jobs=jobs, queries=len(standing) + 1
        )


def install(db: kpg.Database, shared: kpg.Arrangement, number: int) -> tuple[kpg.Input, kpg.Output]:
    """Install a query of one key, which is a row of a private input."""
    query = db.input(f"query {number}", k=int)
    query.insert([(7 + number,)])
    answer = shared.join(query, on="k").output(f"answer {number}")
    db.advance()
    return query, answer


EXPERIMENT = engine_experiment(
    "S6",
    "the tenth query on workers in Spark",
    "1M rows",
    lambda scale: int(1e9 * scale + 2e9),
    run,
    ("pyspark",),
)
