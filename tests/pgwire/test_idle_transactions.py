"""Transactions that wait: the past that they could read is given up, and the rest of them goes on."""

import time
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest

from kpg.server.running_server import default_limits
from tests.server.serving import ADMIN, served

SECONDS = 0.4  # without a read


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request):
    limits = replace(default_limits(), snapshot_seconds=SECONDS)
    with served(pg_port=0, workers=request.param, limits=limits) as running:
        with connected(running, autocommit=True) as writer:
            writer.execute("CREATE TABLE t (a BIGINT)")
        yield running


@pytest.fixture
def writer(server):
    with connected(server, autocommit=True) as writer:
        writer.execute("DELETE FROM t")
        writer.execute("INSERT INTO t VALUES (1)")
        yield writer


@contextmanager
def connected(server, autocommit=False):
    address = {"host": "127.0.0.1", "port": server.pg_port, "user": "kpg", "dbname": "kpg", "password": ADMIN}
    with psycopg.connect(**address, autocommit=autocommit) as connection:
        yield connection


def count(connection):
    return connection.execute("SELECT count(*) FROM t").fetchone()[0]


def readers(server):
    """The readers of the past that the db knows."""
    return server.hub.engine.run(lambda service: dict(service.db.readers)).result(10)


def wait_until_forgotten(server):
    deadline = time.monotonic() + 20
    while readers(server):
        assert time.monotonic() < deadline, "the db still keeps the past"
        time.sleep(0.05)


def test_a_transaction_that_waits_gives_up_the_past_that_it_could_read(server, writer):
    with connected(server) as waiting:
        assert count(waiting) == 1
        assert readers(server)
        writer.execute("INSERT INTO t VALUES (2)")
        wait_until_forgotten(server)
        with pytest.raises(psycopg.Error, match="as of the start of the transaction are gone") as caught:
            count(waiting)
        assert caught.value.sqlstate == "72000"
        assert "snapshot_seconds" in caught.value.diag.message_detail
        assert "--max-snapshot-seconds" in caught.value.diag.message_hint
        waiting.rollback()
        assert count(waiting) == 2


def test_a_transaction_that_reads_again_and_again_sees_one_time(server, writer):
    with connected(server) as reading:
        end = time.monotonic() + 4 * SECONDS
        number = 1
        while time.monotonic() < end:
            assert count(reading) == 1
            number += 1
            writer.execute("INSERT INTO t VALUES (%s)", [number])
            time.sleep(SECONDS / 8)


def test_a_transaction_that_waits_still_commits_what_it_wrote(server, writer):
    with connected(server) as waiting:
        waiting.execute("INSERT INTO t VALUES (7)")
        wait_until_forgotten(server)
        waiting.execute("INSERT INTO t VALUES (8)")
        waiting.commit()
    assert count(writer) == 3


def test_cursors_of_a_transaction_that_waits_go_on(server, writer):
    with connected(server) as waiting:
        waiting.execute("DECLARE rows CURSOR FOR SELECT a FROM t")
        waiting.execute("DECLARE changes CURSOR FOR SUBSCRIBE t")
        wait_until_forgotten(server)
        writer.execute("INSERT INTO t VALUES (2)")
        assert waiting.execute("FETCH ALL rows").fetchall() == [(1,)]
        changes = []
        while len(changes) < 2:
            changes += waiting.execute("FETCH ALL changes WITH (timeout = '10s')").fetchall()
        assert sorted(row for _, _, row in changes) == [1, 2]
