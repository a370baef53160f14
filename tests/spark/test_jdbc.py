"""A table of PostgreSQL, through JDBC, into a relation; skipped where there is no PostgreSQL."""

from pathlib import Path

import pytest

from kpg.bench.peers import postgres as peer
from kpg.bench.run import PeerAbsent

DRIVER = Path("/usr/share/java/postgresql.jar")


@pytest.fixture
def postgres():
    """A server of its own, on a free port; the URL of its database."""
    if not DRIVER.exists():
        pytest.skip("PostgreSQL's JDBC driver is not installed")
    try:
        with peer.server(peer.SMALL_SETTINGS) as address:
            yield address.jdbc
    except PeerAbsent as absent:
        pytest.skip(str(absent))


def test_a_table_of_postgresql_becomes_a_relation(db, spark, postgres):
    properties = {"user": "kpg", "driver": "org.postgresql.Driver"}
    people = spark.createDataFrame([(1, "ann", 30), (2, "bob", 41), (3, "cat", 41)], "id long, name string, age int")
    people.write.jdbc(postgres, "people", properties=properties)
    db.load("people", spark.read.jdbc(postgres, "people", properties=properties), key="id")
    by_age = db["people"].group_by("age").count().output("people by age")
    assert by_age.rows() == [(30, 1), (41, 2)]
    by_age.to_spark().write.jdbc(postgres, "ages", properties=properties)
    assert spark.read.jdbc(postgres, "ages", properties=properties).count() == 2
