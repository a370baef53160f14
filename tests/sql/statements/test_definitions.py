"""CREATE and DROP: names, dependencies, streams, indexes, identity columns, and definitions that survive a reopen."""

import os
import signal
import subprocess
import sys

import pytest

import kpg


@pytest.fixture
def db():
    with kpg.open() as db:
        yield db


def refused(db, statement):
    with pytest.raises(kpg.KpgError) as failure:
        db.sql(statement)
    return failure.value.sqlstate


def test_a_table_is_a_relation_of_the_db(db):
    db.sql("CREATE TABLE Orders (id BIGINT PRIMARY KEY, who TEXT NOT NULL, amount NUMERIC(12,2))")
    db.sql("INSERT INTO orders VALUES (1, 'ann', 9.50)")
    assert db["orders"].output().rows() == db.sql("SELECT * FROM orders").rows()
    db["orders"].insert([(2, "bob", None)])
    assert refused(db, "SELECT * FROM orders") == "55000"
    db.advance()
    assert len(db.sql("SELECT * FROM orders")) == 2


def test_a_relation_of_python_is_a_table(db):
    edges = db.input("edges", src=int, dst=int)
    edges.insert([(1, 2), (2, 3)])
    db.advance()
    assert db.sql("SELECT count(*) AS n FROM edges").value() == 2
    assert db.sql("INSERT INTO edges VALUES (5, 6)").tag == "INSERT 0 1"
    assert len(edges.output().rows()) == 3


def test_views_are_descriptions_and_materialized_views_are_answers(db):
    db.sql("CREATE TABLE t (a INT, b INT)")
    db.sql("CREATE VIEW v AS SELECT a, sum(b) AS total FROM t GROUP BY a")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT * FROM v WHERE total > 2")
    db.sql("INSERT INTO t VALUES (1, 1), (1, 2), (2, 1)")
    assert db["m"].rows() == [(1, 3)] == db.sql("SELECT * FROM m").rows()
    assert "v" not in db.outputs
    db.sql("DELETE FROM t WHERE b = 2")
    assert db["m"].rows() == []


def test_what_depends_on_a_name_is_dropped_with_cascade_only(db):
    db.sql("CREATE TABLE t (a INT); CREATE VIEW v AS SELECT a FROM t")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT a FROM v; CREATE INDEX i ON t (a)")
    assert refused(db, "DROP TABLE t") == "2BP01"
    assert refused(db, "DROP VIEW v") == "2BP01"
    db.sql("DROP TABLE t CASCADE")
    assert refused(db, "SELECT * FROM m") == "42P01"
    assert "t" not in db.inputs and "m" not in db.outputs


def test_a_stream_shows_a_view_the_rows_after_its_installation(db):
    db.sql("CREATE TABLE s (a INT) WITH (retain = none)")
    db.sql("INSERT INTO s VALUES (1)")
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM s")
    db.sql("INSERT INTO s VALUES (2), (3)")
    assert db.sql("SELECT n FROM m").value() == 2


def test_identity_numbers_are_never_given_out_again(db):
    db.sql("CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, a INT)")
    assert db.sql("INSERT INTO t (a) VALUES (7), (8) RETURNING id").rows() == [(1,), (2,)]
    db.sql("DELETE FROM t")
    assert db.sql("INSERT INTO t (a) VALUES (9) RETURNING id").value() == 3
    assert refused(db, "INSERT INTO t VALUES (10, 1)") == "428C9"


@pytest.mark.parametrize("workers", [1, 2])
def test_definitions_survive_a_reopen(tmp_path, workers):
    with kpg.open(tmp_path, workers=workers) as db:
        db.sql(
            "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a INT CHECK (a > 0),"
            " s TEXT DEFAULT 'd')"
        )
        db.sql("CREATE VIEW v AS SELECT a FROM t WHERE a > 1")
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM v")
        db.sql("CREATE TABLE gone (a INT)")
        db.sql("INSERT INTO t (a) VALUES (1), (2), (3)")
        db.sql("DROP TABLE gone")
    with kpg.open(tmp_path, workers=workers) as db:
        assert db.sql("SELECT n FROM m").value() == 2
        db.sql("INSERT INTO t (a) VALUES (4)")
        assert db.sql("SELECT n FROM m").value() == 3
        assert db.sql("SELECT id, s FROM t WHERE a = 4").rows() == [(4, "d")]
        assert refused(db, "INSERT INTO t (a) VALUES (0)") == "23514"
        assert refused(db, "SELECT * FROM gone") == "42P01"


KILLED = """
import sys, kpg
db = kpg.open(sys.argv[1])
db.sql("CREATE TABLE t (a BIGINT PRIMARY KEY)")
db.sql("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n, sum(a) AS s FROM t")
for number in range(10**6):
    db.sql("INSERT INTO t VALUES ($1)", number)
    print(number, flush=True)
"""


def test_acknowledged_statements_survive_a_kill(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    acknowledged = -1
    for line in process.stdout:
        acknowledged = int(line)
        if acknowledged == 20:
            os.kill(process.pid, signal.SIGKILL)
            break
    rest = process.stdout.read().split()
    process.wait()
    acknowledged = int(rest[-1]) if rest else acknowledged
    with kpg.open(tmp_path) as db:
        n, total = db.sql("SELECT n, s FROM m").rows()[0]
        assert n in (acknowledged + 1, acknowledged + 2)  # the last one may be on disk before it was acknowledged
        assert total == sum(range(n))
