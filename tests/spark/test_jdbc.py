"""A table of PostgreSQL, through JDBC, into a relation; skipped where there is no PostgreSQL."""

from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from kpg.bench.peers import postgres as peer
from kpg.bench.run import PeerAbsent
from tests.server.serving import ADMIN, served

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


def test_spark_reads_and_writes_a_server_of_kpg_through_jdbc(spark):
    if not DRIVER.exists():
        pytest.skip("PostgreSQL's JDBC driver is not installed")
    with served(pg_port=0) as server:
        url = f"jdbc:postgresql://127.0.0.1:{server.pg_port}/kpg"
        properties = {"user": "kpg", "password": ADMIN, "driver": "org.postgresql.Driver"}
        address = {"host": "127.0.0.1", "port": server.pg_port, "user": "kpg", "dbname": "kpg", "password": ADMIN}
        with psycopg.connect(**address, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE sold "
                "(id integer, who text, total numeric(9,2), day date, at timestamp, ok boolean, x float8)"
            )
            connection.execute(
                "INSERT INTO sold "
                "SELECT n, 'who ' || n, n / 4.0, date '2026-01-01' + n, timestamp '2026-01-01', n > 5, n "
                "FROM generate_series(1, 100) AS g (n)"
            )
            frame = spark.read.jdbc(url, "sold", properties=properties | {"fetchsize": "7"})
            assert [field.dataType.simpleString() for field in frame.schema] == [
                "int", "string", "decimal(9,2)", "date", "timestamp", "boolean", "double",
            ]  # fmt: skip
            assert frame.where("id > 90 and who is not null").count() == 10
            assert frame.agg({"total": "sum"}).collect()[0][0] == Decimal("1262.50")
            parts = spark.read.jdbc(
                url, "sold", column="id", lowerBound=1, upperBound=100, numPartitions=3, properties=properties
            )
            assert parts.count() == 100
            frame.where("id <= 3").select("id", "who").write.mode("append").jdbc(url, "sold", properties=properties)
            assert connection.execute("SELECT count(*) FROM sold").fetchone() == (103,)
