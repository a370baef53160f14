"""Random sequences of INSERT, UPDATE, DELETE and transactions leave the tables that PostgreSQL has.

Each statement is accepted by both with equal rows of RETURNING, or refused by both with one SQLSTATE; after each, the
tables are equal. k has a key of two columns, a check and defaults; t has neither, so that its rows repeat.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TABLES = {
    "k": "a INT, b INT, c INT DEFAULT 7, t VARCHAR(3) NOT NULL DEFAULT 'x', PRIMARY KEY (a, b),"
    " CHECK (c IS NULL OR c > 0)",
    "t": "a INT, n NUMERIC(6,2), v TEXT",
}
SMALL = st.integers(0, 2)
CELLS = {
    "a": SMALL.map(str),
    "b": SMALL.map(str),
    "c": st.sampled_from(["1", "2", "NULL", "0", "DEFAULT"]),
    "t": st.sampled_from(["'p'", "'qrs'", "'long'", "NULL", "DEFAULT"]),
    "n": st.sampled_from(["1.5", "-2.25", "NULL", "1.005"]),
    "v": st.sampled_from(["''", "'u'", "NULL"]),
}
COLUMNS = {"k": "abct", "t": "anv"}
CONDITIONS = {
    "k": ["a = 1", "b > a", "c IS NULL", "t = 'p'", "a IN (SELECT a FROM t)", "TRUE", "1 / (a - 1) > 0"],
    "t": ["a = 1", "n < 0", "v IS NULL", "EXISTS (SELECT 1 FROM k WHERE k.a = t.a)", "TRUE"],
}
SETTINGS = {
    "k": [
        "c = c + 1",
        "a = a + 1",
        "a = b, b = a",
        "t = DEFAULT",
        "c = (SELECT max(a) FROM t)",
        "t = t || 'y'",
        "c = NULL",
    ],
    "t": ["n = n * 2", "v = 'w', a = a + 1", "a = (SELECT min(b) FROM k)", "n = 1 / a"],
}
CLASS = 2  # of a statement with several mistakes, PostgreSQL reports the one of the first row, kpg the first kind
RETURNING = ["", " RETURNING *", " RETURNING a, a + 1 AS next"]


@st.composite
def row(draw, table):
    return "(" + ", ".join(draw(CELLS[column]) for column in COLUMNS[table]) + ")"


@st.composite
def inserts(draw):
    table = draw(st.sampled_from(list(TABLES)))
    rows = ", ".join(draw(st.lists(row(table), min_size=1, max_size=3)))
    source = draw(st.sampled_from([f"VALUES {rows}", f"VALUES {rows}", "select"]))
    if source == "select":
        source = "SELECT a + 1, a, 1, 'p' FROM t" if table == "k" else "SELECT b, c, t FROM k"
    conflict = ""
    if table == "k":
        conflict = draw(st.sampled_from([
            "", "", " ON CONFLICT DO NOTHING", " ON CONFLICT (a, b) DO NOTHING",
            " ON CONFLICT (b, a) DO UPDATE SET c = excluded.c, t = k.t || '!'",
            " ON CONFLICT (a, b) DO UPDATE SET c = k.c + 1 WHERE k.c < 3",
        ]))  # fmt: skip
    return f"INSERT INTO {table} {source}{conflict}{draw(st.sampled_from(RETURNING))}"


@st.composite
def updates(draw):
    table = draw(st.sampled_from(list(TABLES)))
    where = draw(st.sampled_from(CONDITIONS[table]))
    return (
        f"UPDATE {table} SET {draw(st.sampled_from(SETTINGS[table]))} WHERE {where}{draw(st.sampled_from(RETURNING))}"
    )


@st.composite
def joined(draw):
    """Statements that join: each row of the target matches at most one row of the other table."""
    return draw(st.sampled_from([
        "UPDATE t SET v = k.t FROM k WHERE k.a = t.a AND k.b = 0",
        "UPDATE k SET c = s.m + 1 FROM (SELECT a, max(abs(n))::int AS m FROM t GROUP BY a) AS s WHERE s.a = k.a",
        "DELETE FROM t USING k WHERE k.a = t.a",
        "DELETE FROM k USING t WHERE k.a = t.a AND t.n < 0 RETURNING k.a, k.b",
        "DELETE FROM t USING k WHERE k.a = t.a AND k.b < 2 RETURNING t.a, t.v",
    ]))  # fmt: skip


@st.composite
def deletes(draw):
    table = draw(st.sampled_from(list(TABLES)))
    return f"DELETE FROM {table} WHERE {draw(st.sampled_from(CONDITIONS[table]))}{draw(st.sampled_from(RETURNING))}"


CHANGES = st.one_of(inserts(), inserts(), updates(), joined(), deletes())


def compare_tables(twins):
    for table in TABLES:
        twins.run(f"SELECT * FROM {table}")


@settings(max_examples=40)
@given(st.lists(CHANGES, min_size=1, max_size=8))
def test_statements_change_tables_as_in_postgresql(twins, statements):
    twins.reset()
    twins.create_tables(TABLES)
    for statement in statements:
        twins.run(statement, state_characters=CLASS)
        compare_tables(twins)


OWN = {
    "k": st.one_of(
        st.sampled_from([
            "INSERT INTO k VALUES (0, 0, 1, 'p'), (0, 1, 2, 'q')",
            "INSERT INTO k VALUES (0, 0, 2, 'r') ON CONFLICT (a, b) DO UPDATE SET c = k.c + 1",
            "INSERT INTO k VALUES (1, 0, 2, 'r'), (0, 0, 1, 'n') ON CONFLICT DO NOTHING",
            "UPDATE k SET c = c + 1 WHERE b = 0",
            "UPDATE k SET a = a + 3 WHERE a = 1",  # PostgreSQL checks keys row by row
            "DELETE FROM k WHERE a = 1",
            "DELETE FROM k WHERE c > 2",
        ])
    ),
    "t": st.sampled_from([
        "INSERT INTO t VALUES (1, 1, 'u'), (1, 1, 'u')",
        "UPDATE t SET n = n + 1 WHERE a = 1",
        "UPDATE t SET a = a + 1",
        "DELETE FROM t WHERE n > 1",
    ]),
}  # fmt: skip


@settings(max_examples=30)
@given(
    before=st.lists(st.one_of(*OWN.values()), max_size=3),
    inside=st.lists(st.one_of(*OWN.values()), min_size=1, max_size=6),
    end=st.sampled_from(["COMMIT", "ROLLBACK"]),
)
def test_a_transaction_sees_its_own_writes_and_ends_as_one(twins, before, inside, end):
    twins.reset()
    twins.create_tables(TABLES)
    twins.run_all(before)
    twins.run("BEGIN")
    for statement in inside:
        twins.run(statement)  # after a failure both refuse the rest with 25P02
    twins.run(end)
    compare_tables(twins)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO k (a) VALUES (1)",
        "INSERT INTO k (a, b, nothing) VALUES (1, 2, 3)",
        "INSERT INTO missing VALUES (1)",
        "INSERT INTO k VALUES (1, 2, 3, 'x', 5)",
        "UPDATE k SET nothing = 1",
        "UPDATE k SET a = 'text'",
        "DELETE FROM missing",
        "INSERT INTO k VALUES (99999999999, 0)",
        "CREATE TABLE k (a INT)",
        "DROP TABLE missing",
        "DROP VIEW k",
        "INSERT INTO k SELECT a FROM k AS other WHERE nothing",
    ],
)
def test_wrong_statements_are_refused_with_the_same_state(twins, statement):
    twins.reset()
    twins.create_tables(TABLES)
    twins.run(statement)
    compare_tables(twins)
