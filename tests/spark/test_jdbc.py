"""A table of PostgreSQL, through JDBC, into a relation; skipped where there is no PostgreSQL."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

DRIVER = Path("/usr/share/java/postgresql.jar")
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


@pytest.fixture
def postgres(tmp_path):
    """A server of its own, on a free port; the URL of its database."""
    if not BINARIES or not DRIVER.exists():
        pytest.skip("PostgreSQL or its JDBC driver is not installed")
    place = Path(tempfile.mkdtemp(prefix="kpg-postgres-", dir="/tmp"))  # of a socket the path must be short
    user = {}
    if os.getuid() == 0:  # the server refuses to be run by root
        account = pwd.getpwnam("postgres")
        os.chown(place, account.pw_uid, account.pw_gid)
        user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    run = {"capture_output": True, "cwd": place, **user}
    make = [BINARIES[0] / "initdb", "-D", place / "data", "-A", "trust", "-U", "kpg", "-E", "UTF8", "--locale", "C"]
    subprocess.run(make, check=True, **run)
    server = [BINARIES[0] / "pg_ctl", "-D", place / "data", "-l", place / "log", "-w", "-t", "200"]
    for _ in range(5):  # somebody else may take the port before the server does
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories={place} -c fsync=off"
        if subprocess.run([*server, "-o", options, "start"], **run).returncode == 0:
            break
    else:
        raise AssertionError((place / "log").read_text()[-3000:])
    try:
        yield f"jdbc:postgresql://127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*server, "-m", "immediate", "stop"], **run)
        shutil.rmtree(place, ignore_errors=True)


def test_a_table_of_postgresql_becomes_a_relation(db, spark, postgres):
    properties = {"user": "kpg", "driver": "org.postgresql.Driver"}
    people = spark.createDataFrame([(1, "ann", 30), (2, "bob", 41), (3, "cat", 41)], "id long, name string, age int")
    people.write.jdbc(postgres, "people", properties=properties)
    db.load("people", spark.read.jdbc(postgres, "people", properties=properties), key="id")
    by_age = db["people"].group_by("age").count().output("people by age")
    assert by_age.rows() == [(30, 1), (41, 2)]
    by_age.to_spark().write.jdbc(postgres, "ages", properties=properties)
    assert spark.read.jdbc(postgres, "ages", properties=properties).count() == 2
