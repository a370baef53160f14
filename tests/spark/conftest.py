"""One light Spark for all tests here, and a db of two workers for each file."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kpg

pytest.importorskip("pyspark")

DRIVER = Path("/usr/share/java/postgresql.jar")


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    from kpg.spark.small_session import light

    session = light("local[6]", {"spark.jars": str(DRIVER)} if DRIVER.exists() else None)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def db(spark) -> Iterator[kpg.Database]:
    with kpg.open(spark=spark, workers=2) as opened:
        yield opened
