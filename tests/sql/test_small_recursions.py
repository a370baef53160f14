"""Recursive queries run in the kernel of small loops, and have the answers that SQLite computes again."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from tests.api.plays import examples
from tests.operators.test_small_loop import units_of

TABLE = "CREATE TABLE e (id int, parent int, name text, cost double precision)"
QUERIES = {
    "levels": """
        SELECT id, name, 0 FROM e WHERE parent IS NULL
        UNION SELECT e.id, e.name, t.level + 1 FROM e JOIN t ON e.parent = t.id WHERE t.level < 4""",
    "names": """
        SELECT id, name, 0 FROM e WHERE name = 'a'
        UNION SELECT e.id, coalesce(e.name, t.name), t.level
        FROM e JOIN t ON e.parent = t.id WHERE t.name <> 'c' OR t.name IS NULL""",
    "costs": """
        SELECT id, cost, 0 FROM e WHERE parent IS NULL
        UNION SELECT e.id, t.name + e.cost * 0.5, 1 FROM e JOIN t ON e.parent = t.id WHERE t.name < 4""",
    "all": """
        SELECT id, name, 1 FROM e WHERE parent IS NULL
        UNION ALL SELECT e.id, t.name, t.level * 2 FROM e JOIN t ON e.parent = t.id WHERE t.level < 20""",
    "numbers": """
        SELECT id, NULL, id % 7 FROM e
        UNION SELECT t.id, t.name, CASE WHEN t.level % 2 = 0 THEN t.level / 2 ELSE 3 * t.level + 1 END
        FROM t WHERE t.level > 1""",
}  # of t(id, name, level)

rows = st.tuples(
    st.integers(0, 3).map(str),
    st.sampled_from(["NULL", "0", "1", "2"]),
    st.sampled_from(["NULL", "'a'", "'b'", "'c'"]),
    st.sampled_from(["NULL", "1.5"]),
)
epochs = st.lists(st.tuples(st.sampled_from("IID"), rows), min_size=1, max_size=8)


def statement(kind, row):
    """Return the insertion or the removal of a row, for both systems."""
    if kind == "I":
        return f"INSERT INTO e VALUES ({', '.join(row)})"
    columns = zip(("id", "parent", "name", "cost"), row, strict=True)
    return f"DELETE FROM e WHERE {' AND '.join(f'{name} IS NOT DISTINCT FROM {value}' for name, value in columns)}"


def recursive(query):
    return f"WITH RECURSIVE t(id, name, level) AS ({query}) SELECT id, name, level FROM t"


@pytest.mark.parametrize("name", QUERIES)
@examples(0.3)
@given(epochs=epochs)
def test_recursions_of_few_rows_have_the_answers_of_sqlite(name, epochs):
    query = recursive(QUERIES[name])
    oracle = sqlite3.connect(":memory:")
    oracle.execute(TABLE)
    with kpg.open() as db:
        db.sql(TABLE)
        db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        for kind, row in epochs:
            db.sql(statement(kind, row))
            oracle.execute(statement(kind, row))
            found = sorted(map(tuple, db.sql("SELECT * FROM v").rows()), key=repr)
            assert found == sorted(oracle.execute(query), key=repr)
        assert not db.sql("SELECT * FROM v").rows() or any(unit.runs for unit in units_of(db))
