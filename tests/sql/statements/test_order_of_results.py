"""ORDER BY of what is no result column: it orders reads, and never becomes a column of a result, view or file."""

import pytest

import kpg


@pytest.fixture(scope="module")
def db():
    with kpg.open() as db:
        db.sql("CREATE TABLE r (id INT PRIMARY KEY, a INT, t TEXT)")
        db.sql("INSERT INTO r VALUES (1, 30, 'x'), (2, 10, 'y'), (3, NULL, 'z'), (4, 20, 'x')")
        yield db


@pytest.mark.parametrize("text, rows", [
    ("SELECT t, id FROM r ORDER BY a", [("y", 2), ("x", 4), ("x", 1), ("z", 3)]),
    ("SELECT id FROM r ORDER BY a DESC", [(3,), (1,), (4,), (2,)]),
    ("SELECT id FROM r ORDER BY -a NULLS FIRST LIMIT 2", [(3,), (1,)]),
    ("SELECT t FROM r GROUP BY t ORDER BY max(id) DESC", [("x",), ("z",), ("y",)]),
    ("SELECT DISTINCT ON (t) id FROM r ORDER BY t, a", [(4,), (2,), (3,)]),
    ("SELECT id FROM r ORDER BY (SELECT count(*) FROM r AS q WHERE q.t = r.t), id DESC", [(3,), (2,), (4,), (1,)]),
])  # fmt: skip
def test_a_hidden_key_orders_a_read(db, text, rows):
    assert list(db.sql(text).rows()) == rows


def test_a_hidden_key_is_no_column_of_a_view_or_collection(db, tmp_path):
    query = "SELECT id FROM r ORDER BY a, t"
    db.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert sorted(db.sql("SELECT * FROM v").rows()) == [(1,), (2,), (3,), (4,)]
    assert list(db.query(query).schema.names) == ["id"]
    assert "id" in str(db.sql(f"EXPLAIN {query}"))
    db.sql(f"COPY ({query}) TO '{tmp_path}/rows.csv' WITH (HEADER)")
    assert (tmp_path / "rows.csv").read_text().splitlines()[1:] == ["2", "4", "1", "3"]
    with db.sql(f"SUBSCRIBE ({query})") as subscription:
        assert [column.name for column in subscription.columns] == ["id"]


def test_a_result_without_columns_is_refused_by_name(db):
    with pytest.raises(kpg.NotSupported, match="a result without columns"):
        db.sql("SELECT FROM r")
