"""A Spark for experiments: on this machine, with slots for two workers and two tasks beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kpg.spark.small_session import light

WORKERS = 2


@contextmanager
def session(slots: int = WORKERS + 2) -> Iterator[Any]:
    """A session that is stopped in the end."""
    settings = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
    spark = light(f"local[{slots}]", settings)
    try:
        yield spark
    finally:
        spark.stop()


def jobs_so_far(spark: Any) -> int:
    """How many jobs Spark has begun."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
