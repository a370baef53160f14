"""One light Spark for all tests here: a small heap, no optimising compiler, no UI."""

import os
import sys
from collections.abc import Iterator

import pytest

import kpg

pytest.importorskip("pyspark")

os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ["PYSPARK_PYTHON"] = sys.executable
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(kpg.__file__)))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))

from pyspark.sql import SparkSession  # noqa: E402


def builder(master: str) -> SparkSession.Builder:
    return (
        SparkSession.builder.master(master)
        .config("spark.driver.memory", "512m")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.log.level", "OFF")
    )


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = builder("local[6]").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def db(spark) -> Iterator[kpg.Database]:
    with kpg.open(spark=spark, workers=2) as opened:
        yield opened
