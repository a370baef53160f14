"""A small Spark session on this machine, for tests, demos and notebooks: it starts in seconds, with a small heap.

    spark = light("local[6]")

Tasks run this Python and import kpg from the directory that this process uses. `settings` override those here.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import kpg
from kpg.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.log.level": "OFF",
}


def light(master: str, settings: dict[str, str] | None = None) -> SparkSession:
    """Return a session with a master; the current one if there is one."""
    ensure_java()
    root = os.path.dirname(os.path.dirname(os.path.abspath(kpg.__file__)))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    from pyspark.sql import SparkSession

    return SparkSession.builder.master(master).config(map={**SETTINGS, **(settings or {})}).getOrCreate()
