"""Sequences give the numbers that PostgreSQL gives, are drawn once for each row, and never repeat a number."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg

SEQUENCES = [
    "",
    "START 5 INCREMENT BY 3",
    "INCREMENT -2",
    "MINVALUE 2 MAXVALUE 4 CYCLE",
    "MAXVALUE 5",
    "AS smallint START WITH 32766",
    "INCREMENT -1 MINVALUE -3 CYCLE CACHE 2",
    "START 7 MINVALUE 8",
    "INCREMENT 0",
    "MINVALUE 5 MAXVALUE 4",
    "NO MINVALUE NO CYCLE",
    "MAXVALUE 3 MAXVALUE 4",
    "AS text",
    "MAXVALUE 9223372036854775808",
    "CACHE 0",
    "AS integer MAXVALUE 3000000000",
]
STATEMENTS = [
    "SELECT nextval('s')",
    "SELECT nextval('S') AS n, currval('s') AS c",
    "SELECT lastval()",
    "SELECT currval('\"s\"')",
    "SELECT nextval('s') + 1, x FROM t ORDER BY x, id",
    "SELECT setval('s', 3)",
    "SELECT setval('s', 4, false), 1",
    "SELECT setval('s', (SELECT max(id) FROM t))",
    "SELECT setval('s', NULL)",
    "INSERT INTO t (x) VALUES (1), (2) RETURNING *",
    "INSERT INTO t (id, x) VALUES (DEFAULT, nextval('s')) RETURNING *",
    "INSERT INTO t (x) SELECT x + 1 FROM t ORDER BY id DESC RETURNING *",
    "INSERT INTO t VALUES (nextval('s'), (SELECT min(x) FROM t)) RETURNING *",
    "INSERT INTO keyed DEFAULT VALUES",
    "INSERT INTO keyed (x) VALUES (9) ON CONFLICT DO NOTHING RETURNING *",
    "UPDATE t SET x = nextval('s') WHERE id = (SELECT max(id) FROM t) RETURNING *",
    "DELETE FROM t WHERE x > 2",
    "SELECT nextval('missing')",
    "SELECT nextval('s', 1)",
    "DROP SEQUENCE s",
    "CREATE SEQUENCE s",
    "CREATE SEQUENCE IF NOT EXISTS s",
]


def test_sequences_do_what_postgresql_does(twins, workers):
    # Only single rows meet a key: at a conflict PostgreSQL has drawn the numbers of the rows before, and kpg of all.
    @settings(max_examples=settings.default.max_examples // 2 if workers == 1 else 5)
    @given(st.sampled_from(SEQUENCES), st.lists(st.sampled_from(STATEMENTS), max_size=10))
    def same(options, statements):
        twins.reset()
        twins.db.sql("DROP SEQUENCE IF EXISTS s")
        twins.run(f"CREATE SEQUENCE s {options}")
        twins.run("CREATE SEQUENCE IF NOT EXISTS s")
        numbered = "DEFAULT nextval('s'), x INT"
        twins.create_tables({"t": f"id BIGINT {numbered}", "keyed": f"id BIGINT PRIMARY KEY {numbered}"})
        for statement in statements:
            twins.run(statement)
        twins.run_all(["SELECT * FROM t", "SELECT * FROM keyed"])

    same()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE VIEW v AS SELECT nextval('s')",
        "CREATE MATERIALIZED VIEW v AS SELECT x, nextval('s') FROM t",
        "SELECT x FROM t WHERE nextval('s') > 1",
        "SELECT DISTINCT nextval('s') FROM t",
        "SELECT sum(nextval('s')) FROM t",
        "SELECT nextval('s') FROM t LIMIT 1",
        "SELECT nextval('s') UNION ALL SELECT 1",
        "SELECT nextval(name) FROM t",
        "SELECT (SELECT nextval('s'))",
    ],
)
def test_sequences_are_refused_by_name_where_they_would_not_be_drawn_once(statement):
    with kpg.open() as db:
        db.sql("CREATE SEQUENCE s; CREATE TABLE t (x INT, name TEXT); INSERT INTO t VALUES (1, 's')")
        with pytest.raises(kpg.KpgError, match="nextval|the name of a sequence") as refused:
            db.sql(statement)
        assert refused.value.sqlstate == "0A000"
        assert db.sql("SELECT nextval('s')").value() == 1


def test_numbers_are_not_given_out_again_after_a_reopen(tmp_path):
    with kpg.open(tmp_path) as db:
        db.sql("CREATE SEQUENCE s START 10; CREATE TABLE t (id BIGINT DEFAULT nextval('s'), x INT)")
        db.sql("INSERT INTO t (x) VALUES (1)")
        assert db.sql("SELECT nextval('s')").value() == 11
    with kpg.open(tmp_path) as db:
        with pytest.raises(kpg.KpgError, match="not yet defined"):
            db.sql("SELECT lastval()")
        assert db.sql("INSERT INTO t (x) VALUES (2) RETURNING id").value() == 12
        db.sql("DROP TABLE t; DROP SEQUENCE s; CREATE SEQUENCE s")
    with kpg.open(tmp_path) as db:
        assert db.sql("SELECT nextval('s')").value() == 1


def test_lastval_forgets_a_sequence_that_was_dropped_and_created_again(twins):
    twins.reset()
    twins.db.sql("DROP SEQUENCE IF EXISTS s")
    twins.run_all(["CREATE SEQUENCE s", "SELECT nextval('s')", "SELECT setval('s', 7)", "SELECT lastval()"])
    twins.run_all(["DROP SEQUENCE s", "CREATE SEQUENCE s", "SELECT setval('s', 3)", "SELECT lastval()"])


def test_numbers_of_a_rolled_back_transaction_are_lost(twins):
    twins.reset()
    twins.db.sql("DROP SEQUENCE IF EXISTS s")
    twins.create_tables({"t": "id BIGINT, x INT"})
    twins.run_all(["CREATE SEQUENCE s", "BEGIN", "INSERT INTO t VALUES (nextval('s'), nextval('s'))", "ROLLBACK"])
    twins.run("SELECT nextval('s'), (SELECT count(*) FROM t)")
    twins.run_all(["BEGIN", "INSERT INTO t VALUES (nextval('s'), currval('s'))", "COMMIT"])
    twins.run("SELECT id, x, lastval() FROM t")


def test_a_sequence_that_a_default_needs_is_not_dropped():
    with kpg.open() as db:
        db.sql("CREATE SEQUENCE s; CREATE TABLE t (id BIGINT DEFAULT nextval('s') + 1)")
        for statement in ("DROP SEQUENCE s", "DROP SEQUENCE s CASCADE"):
            with pytest.raises(kpg.KpgError, match="the default of t.id"):
                db.sql(statement)
        db.sql("DROP TABLE t; DROP SEQUENCE s")
        assert db.sql("SHOW SEQUENCES").rows() == []


def test_volatile_values_of_a_transaction_are_computed_once():
    with kpg.open() as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, r DOUBLE PRECISION)")
        db.sql("INSERT INTO t SELECT n, 0 FROM generate_series(1, 5) AS n")
        db.sql("BEGIN; INSERT INTO t VALUES (6, 0); UPDATE t SET r = random() WHERE id > 4")
        assert db.sql("UPDATE t SET r = random() + 1 RETURNING id, r >= 1").rows() == [(n, True) for n in range(1, 7)]
        db.sql("COMMIT")
        assert db.sql("SELECT count(*), count(DISTINCT r), bool_and(r >= 1) FROM t").rows() == [(6, 6, True)]
