"""A Spark session for experiments: on this machine, with slots for two workers and two tasks beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WORKERS = 2


@contextmanager
def session(slots: int = WORKERS + 2) -> Iterator[Any]:
    """Open a session, and stop it at the end."""
    from kpg.spark.small_session import light

    settings = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
    spark = light(f"local[{slots}]", settings)
    try:
        yield spark
    finally:
        spark.stop()


def started_jobs(spark: Any) -> int:
    """Return the number of jobs that Spark has started so far."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
