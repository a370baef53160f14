"""Transactions of several sessions: reads as of BEGIN, conflicts at COMMIT, one epoch, and what is refused inside."""

import pytest

import kpg
from kpg.sql.session.sql_session import SqlSession


@pytest.fixture(params=[1, 2], ids=["1 worker", "2 workers"])
def db(request):
    with kpg.open(workers=request.param) as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, n INT); CREATE TABLE log (id INT, n INT)")
        db.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        db.sql("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS s FROM t")
        yield db


def state_of(call, *arguments):
    with pytest.raises(kpg.KpgError) as failure:
        call(*arguments)
    return failure.value.sqlstate


def test_reads_see_the_db_as_of_begin(db):
    other = SqlSession(db)
    db.sql("BEGIN")
    other.execute("UPDATE t SET n = n + 1")
    assert db.sql("SELECT sum(n) FROM t").value() == 30
    assert db.sql("SELECT s FROM total").value() == 30
    db.sql("COMMIT")
    assert db.sql("SELECT s FROM total").value() == 32


def test_commit_fails_if_a_table_that_was_read_has_changed(db):
    other = SqlSession(db)
    db.sql("BEGIN")
    db.sql("UPDATE t SET n = 0 WHERE id = 1")
    other.execute("INSERT INTO t VALUES (3, 30)")
    assert state_of(db.sql, "COMMIT") == "40001"
    assert db.sql("SELECT s FROM total").value() == 60


def test_an_update_fails_at_once_if_its_table_has_changed(db):
    other = SqlSession(db)
    db.sql("BEGIN")
    other.execute("INSERT INTO t VALUES (3, 30)")
    assert state_of(db.sql, "UPDATE t SET n = 0") == "40001"
    assert state_of(db.sql, "INSERT INTO log VALUES (1, 1)") == "25P02"
    assert db.sql("COMMIT").tag == "ROLLBACK"


def test_inserts_alone_do_not_conflict_but_keys_do(db):
    other = SqlSession(db)
    db.sql("BEGIN")
    db.sql("INSERT INTO t VALUES (7, 70)")
    db.sql("INSERT INTO log VALUES (1, 1)")
    other.execute("INSERT INTO t VALUES (8, 80)")
    db.sql("COMMIT")
    assert db.sql("SELECT count(*) FROM t").value() == 4
    db.sql("BEGIN")
    db.sql("INSERT INTO t VALUES (9, 90)")
    other.execute("INSERT INTO t VALUES (9, 91)")
    assert state_of(db.sql, "COMMIT") == "23505"
    assert db.sql("SELECT n FROM t WHERE id = 9").value() == 91


def test_a_transaction_is_one_epoch(db):
    changes = db.sql("SUBSCRIBE (SELECT id, n FROM t) WITH (SNAPSHOT = false)")
    db.sql("BEGIN")
    db.sql("DELETE FROM t WHERE id = 1")
    db.sql("INSERT INTO t VALUES (1, 11)")
    db.sql("COMMIT")
    seen = list(changes)
    assert sorted((change.diff, change.row) for change in seen) == [(-1, (1, 10)), (1, (1, 11))]
    assert len({change.epoch for change in seen}) == 1


@pytest.mark.parametrize(
    "read", ["SELECT * FROM t", "INSERT INTO log SELECT id, n FROM t", "UPDATE log SET n = t.n FROM t"]
)
def test_other_reads_of_written_tables_are_refused(db, read):
    db.sql("BEGIN")
    db.sql("INSERT INTO t VALUES (5, 50)")
    assert state_of(db.sql, read) == "0A000"
    db.sql("ROLLBACK")
    assert db.sql("SELECT s FROM total").value() == 30


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE u (a INT)", "DROP TABLE log", "TRUNCATE t", "BEGIN", "SUBSCRIBE total"]
)
def test_some_statements_run_outside_transactions_only(db, statement):
    db.sql("BEGIN")
    assert state_of(db.sql, statement) == "25001"
    db.sql("ROLLBACK")


def test_commit_needs_begin(db):
    assert state_of(db.sql, "COMMIT") == "25P01"


def test_a_read_only_transaction_reads_and_refuses_to_write():
    with kpg.open() as db:
        db.sql("CREATE TABLE t (n INTEGER)")
        db.sql("INSERT INTO t VALUES (1)")
        for write in ("INSERT INTO t VALUES (2)", "DELETE FROM t", "UPDATE t SET n = 3", "TRUNCATE t", "DROP TABLE t",
                      "CREATE TABLE u (n INTEGER)"):  # fmt: skip
            db.sql("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            assert db.sql("SELECT n FROM t").rows() == [(1,)]
            with pytest.raises(kpg.ProgramError, match="read-only transaction") as refused:
                db.sql(write)
            assert refused.value.sqlstate == "25006"
            db.sql("ROLLBACK")
        db.sql("BEGIN READ WRITE")
        db.sql("INSERT INTO t VALUES (2)")
        db.sql("COMMIT")
        assert db.sql("SELECT count(*) FROM t").value() == 2
        with pytest.raises(kpg.NotSupported, match="READ ONLY"):
            db.sql("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")


def test_only_the_catalog_has_numbers_of_columns_and_rows_with_fields():
    """JDBC reads columns and keys by them; elsewhere they are refused, and never wrong."""
    with kpg.open() as db:
        db.sql("CREATE TABLE t (attrelid BIGINT, attnum INTEGER, PRIMARY KEY (attnum, attrelid))")
        window = "row_number() OVER (PARTITION BY attrelid ORDER BY attnum)"
        assert db.sql(
            f"SELECT attname, {window} FROM pg_catalog.pg_attribute WHERE attrelid = 't'::regclass ORDER BY attname"
        ).rows() == [("attnum", 2), ("attrelid", 1)]
        for text in (f"SELECT {window} FROM t", "SELECT row_number() OVER (ORDER BY attnum) FROM t"):
            with pytest.raises(kpg.NotSupported, match="window"):
                db.sql(text)
        expanded = "information_schema._pg_expandarray(indkey)"
        assert db.sql(f"SELECT ({expanded}).n, ({expanded}).x FROM pg_catalog.pg_index").rows() == [(1, 2), (2, 1)]
        with pytest.raises(kpg.NotSupported, match="field"):
            db.sql("SELECT (attnum).x FROM t")
