"""Statements by a key read only the rows with that key, and have the rows, errors and effects of any other plan."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.sql.session.sql_session import SqlSession

CELL = st.integers(-2, 2)
TEXT = st.sampled_from(["a", "b", ""])
OPTIONAL = st.none() | CELL
CONDITIONS = [
    "a = {0} AND b = '{1}'", "b = '{1}' AND {0} = a AND c > 0", "a = {0} AND b = '{1}' AND a = {2}",
    "c = {0}", "c = {0} AND a < {2}", "a = {0} AND b = '{1}' AND 1 / c > 0", "a = {0}", "a = {0}.0 AND b = '{1}'",
    "c = NULL", "a = {0} AND b = '{1}' OR c = {2}", "c = {0} AND 1 / a > 0", "(a, b) = ({0}, '{1}')",
]  # fmt: skip
LISTS = ["*", "c, a + 1 AS next", "b, b", "1 / c AS q", "count(*) AS n", "c + 1 AS d ORDER BY c"]


@pytest.fixture(scope="module", params=[1, 2], ids=["1 worker", "2 workers"])
def db(request):
    with kpg.open(workers=request.param) as db:
        db.sql("CREATE TABLE keyed (a INT, b TEXT, c INT, PRIMARY KEY (a, b)); CREATE INDEX ON keyed (c)")
        db.sql("CREATE TABLE plain (a INT, b TEXT, c INT)")
        yield db


def outcome(db, statement):
    try:
        return Counter(db.sql(statement).rows())
    except kpg.KpgError as error:
        return error.sqlstate, error.what


@settings(max_examples=25)
@given(
    rows=st.dictionaries(st.tuples(CELL, TEXT), OPTIONAL, max_size=6),
    condition=st.tuples(st.sampled_from(CONDITIONS), CELL, TEXT, CELL),
    chosen=st.sampled_from(LISTS),
    change=st.sampled_from(["UPDATE {0} SET c = c + 1 WHERE {1}", "DELETE FROM {0} WHERE {1} RETURNING a, b, c"]),
)
def test_tables_with_keys_answer_as_tables_without(db, rows, condition, chosen, change):
    db.sql("DELETE FROM keyed; DELETE FROM plain")
    for (a, b), c in rows.items():
        for table in ("keyed", "plain"):
            db.sql(f"INSERT INTO {table} VALUES ($1,$2,$3)", a, b, c)
    where = condition[0].format(*condition[1:])
    columns, _, order = chosen.partition(" ORDER BY ")
    select = f"SELECT {columns} FROM {{}} WHERE {where}" + (f" ORDER BY {order}" if order else "")
    assert outcome(db, select.format("keyed")) == outcome(db, select.format("plain"))
    assert outcome(db, change.format("keyed", where)) == outcome(db, change.format("plain", where))
    assert outcome(db, "TABLE keyed") == outcome(db, "TABLE plain")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT c, a + 1 FROM keyed WHERE a = $1 AND b = $2",
        "SELECT * FROM keyed WHERE c = 5",
        "UPDATE keyed SET c = 6 WHERE a = $1 AND b = $2",
        "DELETE FROM keyed WHERE b = $2 AND a = $1",
        "INSERT INTO keyed VALUES ($1, $2, 7) ON CONFLICT (a, b) DO UPDATE SET c = excluded.c RETURNING c",
    ],
)
def test_a_statement_by_key_installs_no_dataflow(statement, monkeypatch):
    with kpg.open() as db:
        db.sql("CREATE TABLE keyed (a INT, b TEXT, c INT, PRIMARY KEY (a, b)); CREATE INDEX ON keyed (c)")
        db.sql("INSERT INTO keyed VALUES (1, 'x', 5), (2, 'x', 9)")
        db.sql(statement, 1, "x")
        monkeypatch.setattr(db.worker, "install", None)
        db.sql(statement, 1, "x")


def test_a_lookup_in_a_transaction_sees_its_start():
    with kpg.open() as db:
        db.sql("CREATE TABLE t (id INT PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 1)")
        db.sql("BEGIN")
        SqlSession(db).execute("UPDATE t SET n = 2 WHERE id = 1")
        assert db.sql("SELECT n FROM t WHERE id = 1").value() == 1
        db.sql("COMMIT")
        assert db.sql("SELECT n FROM t WHERE id = 1").value() == 2
