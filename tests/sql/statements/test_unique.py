"""UNIQUE beside the primary key: INSERT, UPDATE, ON CONFLICT and transactions do what PostgreSQL does."""

from hypothesis import given, settings
from hypothesis import strategies as st

import kpg

TABLE = "id INT PRIMARY KEY, a INT UNIQUE, b TEXT, c INT, CONSTRAINT pair UNIQUE (b, c)"
NUMBER = st.sampled_from(["1", "2", "3", "4", "NULL"])
NAME = st.sampled_from(["'x'", "'y'", "NULL"])
CONFLICTS = [
    "", " ON CONFLICT DO NOTHING", " ON CONFLICT (a) DO NOTHING", " ON CONFLICT (c, b) DO UPDATE SET a = excluded.a",
    " ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE u.c > 1", " ON CONFLICT (id) DO UPDATE SET c = excluded.c",
    " ON CONFLICT (c) DO NOTHING",
]  # fmt: skip
UPDATES = [
    "a = {}",
    "b = 'x', c = {}",
    "(a, c) = (SELECT max(a), {} FROM u)",
    "(b, c) = (SELECT v.b, v.c FROM u v WHERE id = {})",
]


@st.composite
def statements(draw):
    """Return a statement; an UPDATE concerns one row, because PostgreSQL checks keys row by row."""
    if draw(st.booleans()):
        cells = st.tuples(st.integers(1, 5).map(str), NUMBER, NAME, NUMBER)
        rows = draw(st.lists(cells, min_size=1, max_size=3))
        conflict = draw(st.sampled_from(CONFLICTS))
        return f"INSERT INTO u VALUES {', '.join('(' + ', '.join(row) + ')' for row in rows)}{conflict} RETURNING *"
    if draw(st.integers(0, 3)) == 0:
        return f"DELETE FROM u WHERE id = {draw(st.integers(1, 5))}"
    setting = draw(st.sampled_from(UPDATES)).format(draw(NUMBER))
    return f"UPDATE u SET {setting} WHERE id = {draw(st.integers(1, 5))} RETURNING *"


def test_unique_constraints_are_those_of_postgresql(twins, workers):
    @settings(max_examples=settings.default.max_examples // 2 if workers == 1 else 5)
    @given(st.lists(statements(), min_size=1, max_size=8))
    def same(changes):
        twins.reset()
        twins.create_tables({"u": TABLE})
        for statement in changes:
            twins.run(statement)
        twins.run("SELECT * FROM u")

    same()


def test_the_first_row_that_violates_a_key_decides_the_error(twins):
    twins.reset()
    twins.create_tables({"u": TABLE})
    twins.run(
        "INSERT INTO u VALUES (1, 1, 'x', 1), (2, 1, 'x', 2), (1, 2, 'x', 3) ON CONFLICT (id) DO UPDATE SET c = 9"
    )
    twins.run(
        "INSERT INTO u VALUES (1, 1, 'x', 1), (1, 2, 'x', 2), (2, 1, 'x', 3) ON CONFLICT (id) DO UPDATE SET c = 9"
    )


def test_a_row_that_where_leaves_alone_may_come_again(twins):
    twins.reset()
    twins.create_tables({"u": TABLE})
    twins.run("INSERT INTO u VALUES (1, 1, 'x', 1)")
    upsert = "ON CONFLICT (a) DO UPDATE SET b = excluded.b, c = excluded.c WHERE excluded.c > 1 RETURNING *"
    twins.run(f"INSERT INTO u VALUES (5, 1, 'y', 0), (5, 1, 'y', 2) {upsert}")
    twins.run(f"INSERT INTO u VALUES (5, 1, 'y', 3), (5, 1, 'y', 0) {upsert}")
    twins.run(f"INSERT INTO u VALUES (5, 2, 'y', 9), (5, 2, 'y', 0) {upsert}")
    twins.run("SELECT * FROM u")


def test_a_transaction_keeps_unique_constraints(twins):
    twins.reset()
    twins.create_tables({"u": TABLE})
    twins.run_all(["INSERT INTO u VALUES (1, 1, 'x', 1)", "BEGIN", "UPDATE u SET a = 2 WHERE id = 1"])
    twins.run_all(["INSERT INTO u VALUES (2, 1, 'x', NULL)", "INSERT INTO u VALUES (3, 2, 'y', 1)", "ROLLBACK"])
    twins.run_all(["BEGIN", "DELETE FROM u WHERE id = 1", "INSERT INTO u VALUES (4, 1, 'x', 1)", "COMMIT"])
    twins.run("SELECT * FROM u")


def test_unique_constraints_survive_a_reopen_and_hold_for_copy(tmp_path):
    file = tmp_path / "u.csv"
    file.write_text("7,1\n8,2\n")
    with kpg.open(tmp_path / "db") as db:
        db.sql("CREATE TABLE u (id INT, a INT UNIQUE); INSERT INTO u VALUES (1, 1)")
    with kpg.open(tmp_path / "db") as db:
        for statement in ("INSERT INTO u VALUES (2, 1)", f"COPY u FROM '{file}'"):
            try:
                db.sql(statement)
                raise AssertionError(f"{statement} repeats a key")
            except kpg.ConstraintViolation as error:
                assert error.sqlstate == "23505" and "(a) = (1)" in str(error)
        db.sql("DELETE FROM u")
        assert db.sql(f"COPY u FROM '{file}'").tag == "COPY 2"
        db.sql("DROP TABLE u; CREATE TABLE u (id INT); INSERT INTO u VALUES (1), (1)")
