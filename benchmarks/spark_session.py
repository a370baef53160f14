"""A Spark for experiments: on this machine, with slots for two workers and two tasks beside them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.measure import ROOT

WORKERS = 2


@contextmanager
def session(slots: int = WORKERS + 2) -> Iterator[Any]:
    """A session that is stopped in the end."""
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "2g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2", "spark.log.level": "OFF",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    }  # fmt: skip
    spark = SparkSession.builder.master(f"local[{slots}]").config(map=settings).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def jobs_so_far(spark: Any) -> int:
    """How many jobs Spark has begun."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
