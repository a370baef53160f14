"""SQL over the wire: values of every type, errors with their SQLSTATE, transactions of clients, rules and interests."""

import datetime as dt
import uuid
from decimal import Decimal

import pytest

import kpg
from tests.server.serving import ADMIN, served

VALUES = [
    True, 7, -(2**40), 1.5, Decimal("12.50"), "it's; ünï", b"\x00\xff", dt.date(2024, 2, 29), dt.time(12, 30, 0, 5),
    dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 12, 30), uuid.UUID(int=255), None,
]  # fmt: skip


@pytest.fixture(scope="module")
def server():
    with served() as running:
        yield running


@pytest.fixture
def one(server):
    with kpg.connect(server.url, token=ADMIN) as connection:
        yield connection
        for name in ("s", "big", "v", "t"):
            kind = "MATERIALIZED VIEW" if name in ("big", "v") else "TABLE"
            connection.sql(f"DROP {kind} IF EXISTS {name} CASCADE")


@pytest.fixture
def two(server):
    with kpg.connect(server.url, token=ADMIN) as connection:
        yield connection


def state_of(call, *arguments, **named):
    with pytest.raises(kpg.KpgError) as failure:
        call(*arguments, **named)
    return failure.value.sqlstate


def rows(table):
    return [tuple(column[at].as_py() for column in table.columns) for at in range(table.num_rows)]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_parameters_of_each_type_come_back(one, value):
    assert rows(one.sql("SELECT $1 AS v", value)) == [(value,)]
    assert rows(one.sql("SELECT :x AS v", x=value)) == [(value,)]


def test_timestamps_without_a_zone_have_none_over_the_wire(one):
    naive, zoned = dt.datetime(2024, 1, 1, 12), dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    one.sql("CREATE TABLE t (a TIMESTAMP, b TIMESTAMPTZ NOT NULL)")
    one.sql("INSERT INTO t VALUES ($1, $2), (NULL, $2)", naive, zoned)
    one.sql("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    expected = [(naive, zoned), (None, zoned)]
    assert rows(one.sql("SELECT * FROM t WHERE a = $1 OR a IS NULL ORDER BY a", naive)) == expected
    assert sorted(rows(one.query("v")), key=repr) == sorted(expected, key=repr)


def test_a_statement_without_rows_has_an_empty_reply(one):
    assert one.sql("CREATE TABLE t (a INT)").num_rows == 0


def test_columns_may_have_one_name(one):
    table = one.sql("SELECT 1 AS a, 2 AS a, 3")
    assert rows(table) == [(1, 2, 3)]


def test_errors_have_their_class_position_and_state(one):
    with pytest.raises(kpg.UndefinedName) as failure:
        one.sql("SELECT nothing FROM missing")
    assert failure.value.sqlstate == "42P01" and "1:21" in str(failure.value)
    assert state_of(one.sql, "SELECT 1 / 0") == "22012"
    assert state_of(one.sql, "SELEC") == "42601"


def test_rows_are_limited(one):
    assert one.sql("SELECT * FROM generate_series(1, 50) AS g", limit=7).num_rows == 7


def test_files_of_the_server_are_not_for_clients(one):
    one.sql("CREATE TABLE t (a INT)")
    assert state_of(one.sql, "COPY t FROM '/etc/passwd'") == "42501"
    assert state_of(one.sql, "COPY t TO 'out.csv'") == "42501"


def test_transactions_of_two_clients_conflict(one, two):
    one.sql("CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 1)")
    one.sql("BEGIN")
    one.sql("UPDATE t SET n = 2")
    assert rows(two.sql("SELECT n FROM t")) == [(1,)]
    two.sql("UPDATE t SET n = 3")
    assert state_of(one.sql, "COMMIT") == "40001"
    assert rows(one.sql("SELECT n FROM t")) == [(3,)]


def test_a_client_that_leaves_rolls_back(one, server):
    one.sql("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)")
    with kpg.connect(server.url, token=ADMIN) as leaving:
        leaving.sql("BEGIN")
        leaving.sql("DELETE FROM t")
    assert rows(one.sql("SELECT id FROM t")) == [(1,)]
    one.sql("UPDATE t SET id = 2")
    assert rows(one.sql("SELECT id FROM t")) == [(2,)]


def test_interests_follow_tables_and_views(one):
    one.sql("CREATE TABLE t (who TEXT, n INT); INSERT INTO t VALUES ('ann', 1)")
    one.sql("CREATE MATERIALIZED VIEW v AS SELECT who, sum(n) AS total FROM t GROUP BY who")
    table, view = one.interest("t"), one.interest("v")
    one.sql("INSERT INTO t VALUES ('ann', 2), ('bob', 5)")
    assert sorted(view.rows()) == [("ann", 3), ("bob", 5)]
    assert sorted(table.rows()) == [("ann", 1), ("ann", 2), ("bob", 5)]
    one.sql("DELETE FROM t WHERE who = 'bob'")
    assert view.rows() == [("ann", 3)]
    table.close()
    view.close()


def test_rules_read_tables_and_views(one):
    one.sql("CREATE TABLE t (src INT, dst INT); INSERT INTO t VALUES (1, 2), (2, 3)")
    one.register("hop(x, z) :- t(x, y), t(y, z).")
    assert one.query("hop").to_pylist() == [{"x": 1, "z": 3}]
    one.sql("INSERT INTO t VALUES (3, 4)")
    assert one.query("hop").num_rows == 2
    assert state_of(one.sql, "DROP TABLE t") == "55006"
    assert one.query("hop").num_rows == 2
    one.unregister("hop")
    one.sql("DROP TABLE t")
    with pytest.raises(kpg.UndefinedName):
        one.query("t")


def test_a_relation_with_interests_is_not_dropped(one):
    one.sql("CREATE TABLE t (a INT); CREATE MATERIALIZED VIEW v AS SELECT a + 1 AS b FROM t")
    view = one.interest("v")
    for statement in ("DROP MATERIALIZED VIEW v", "DROP TABLE t CASCADE"):
        assert state_of(one.sql, statement) == "55006"
    one.sql("INSERT INTO t VALUES (1)")
    assert view.rows() == [(2,)]
    view.close()
    one.sql("DROP TABLE t CASCADE")


def test_sql_reads_relations_of_datalog_and_does_not_change_them(one):
    one.create_relation("edge", {"x": int, "y": int})
    one.insert("edge", [(1, 2)])
    assert rows(one.sql("SELECT y FROM edge")) == [(2,)]
    assert state_of(one.sql, "INSERT INTO edge VALUES (2, 3)") == "42501"
    assert state_of(one.sql, "DROP TABLE edge") == "42501"
    with pytest.raises(kpg.KpgError):
        one.sql("CREATE TABLE edge (a INT)")


def test_only_sql_changes_tables(one):
    one.sql("CREATE TABLE t (a INT PRIMARY KEY)")
    with pytest.raises(kpg.InUse):
        one.insert("t", [(1,)])
    assert rows(one.sql("SELECT count(*) FROM t")) == [(0,)]


def test_subscribe_is_for_interests(one):
    one.sql("CREATE TABLE t (a INT)")
    with pytest.raises(kpg.NotSupported, match="interest"):
        one.sql("SUBSCRIBE t")


def test_definitions_and_rows_survive_a_restart(tmp_path):
    with served(directory=str(tmp_path)) as server, kpg.connect(server.url, token=ADMIN) as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 5)")
        db.sql("CREATE MATERIALIZED VIEW v AS SELECT sum(n) AS s FROM t")
        db.register("big(x) :- t(x, n), n > 3.")
    with served(directory=str(tmp_path)) as server, kpg.connect(server.url, token=ADMIN) as db:
        assert db.query("v").to_pylist() == [{"s": 5}]
        db.register("big(x) :- t(x, n), n > 3.")
        assert db.query("big").to_pylist() == [{"x": 1}]
        db.sql("INSERT INTO t VALUES (2, 7)")
        assert rows(db.sql("SELECT s FROM v")) == [(12,)]
        assert state_of(db.sql, "INSERT INTO t VALUES (2, 7)") == "23505"
