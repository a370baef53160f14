"""ORDER BY of queries: keys that are no columns of the result, nulls, all types, limits; compared in order."""

import pytest

import kpg

QUERIES = [
    "SELECT t FROM o ORDER BY id",
    "SELECT t, n FROM o ORDER BY n DESC, id",
    "SELECT t FROM o ORDER BY n NULLS FIRST, id",
    "SELECT t FROM o ORDER BY n DESC NULLS LAST, t, id",
    "SELECT id FROM o ORDER BY i, id",
    "SELECT id, i FROM o ORDER BY i DESC, id",
    "SELECT id, ARRAY[id % 2, id] AS a FROM o ORDER BY a, id",
    "SELECT id FROM o ORDER BY id % 2, n * -1, id",
    "SELECT id + 1 AS x FROM o ORDER BY x DESC LIMIT 2 OFFSET 1",
    "SELECT id, t FROM o ORDER BY 2, 1 DESC",
    "SELECT t, count(*) AS c FROM o GROUP BY t ORDER BY max(id) DESC",
    "SELECT t FROM o UNION SELECT 'z' ORDER BY 1",
    "SELECT DISTINCT t FROM o ORDER BY t DESC",
    "SELECT id FROM o ORDER BY b, d DESC, id",
]


@pytest.fixture(scope="module")
def filled(twins):
    twins.reset()
    twins.create_tables({"o": "id INT PRIMARY KEY, t TEXT, n NUMERIC(6,2), i INTERVAL, b BOOLEAN, d DATE"})
    twins.run(
        "INSERT INTO o VALUES (1, 'b', 2.5, '1 month', true, '2024-01-02'), (2, 'a', NULL, '29 days', false, NULL),"
        " (3, NULL, -1, '31 days', NULL, '2024-01-01'), (4, 'a', 2.5, '1 day', true, '2023-01-01'),"
        " (5, 'Z', 0, NULL, false, '2024-01-02')"
    )
    return twins


@pytest.mark.parametrize("query", QUERIES)
def test_rows_come_in_the_order_of_postgresql(filled, query):
    filled.ordered(query)


VIEWS = {
    "by_n": "SELECT id, t, n FROM o ORDER BY n DESC NULLS LAST, id",
    "by_t": "SELECT t, id FROM o WHERE id < 5 ORDER BY t NULLS FIRST, id DESC",
    "by_i": "SELECT i AS span, id FROM o ORDER BY 1 DESC, id",
    "top": "SELECT id, n FROM o ORDER BY n DESC, id LIMIT 3",
    "united": "SELECT id, t FROM o WHERE id < 3 UNION ALL SELECT id, t FROM o WHERE id > 3 ORDER BY id DESC",
}
READS = [
    "SELECT * FROM {0}",
    "SELECT id FROM {0}",
    "SELECT id + 1, id * 2 FROM {0} WHERE id > 1",
    "SELECT * FROM (SELECT * FROM {0}) AS inner_rows",
    "SELECT * FROM {0} ORDER BY id",
    "TABLE {0}",
]


@pytest.fixture(scope="module")
def viewed(filled):
    for name, query in VIEWS.items():
        filled.postgres.rows(f"CREATE VIEW {name} AS {query}")
        filled.db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        filled.views[name] = query
    yield filled
    filled.reset()


@pytest.mark.parametrize("name", VIEWS)
def test_reads_of_a_view_come_in_its_order(viewed, name):
    for read in READS:
        viewed.ordered(read.format(name))
    expected = viewed.db.sql(f"SELECT * FROM {name}").rows()
    answer = viewed.db[name]
    assert answer.snapshot().column("id").to_pylist() == [row[answer.schema.names.index("id")] for row in expected]
    assert answer.rows() == expected and len(answer.to_pandas()) == len(expected)
    assert answer.head(2).rows() == expected[:2]
    assert answer.sort("id").rows() == sorted(expected, key=lambda row: row[answer.schema.names.index("id")])


def test_the_order_of_a_view_holds_after_changes_and_a_reopen(tmp_path):
    with kpg.open(tmp_path) as db:
        db.sql("CREATE TABLE o (id INT PRIMARY KEY, n INT); INSERT INTO o VALUES (1, 2), (2, 9), (3, 4)")
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT id, n FROM o ORDER BY n DESC")
        db.sql("CREATE VIEW hidden AS SELECT id FROM o ORDER BY n DESC, id")
        db.sql("INSERT INTO o VALUES (4, 5); DELETE FROM o WHERE id = 1")
        assert db.sql("TABLE m").rows() == db["m"].rows() == [(2, 9), (4, 5), (3, 4)]
    with kpg.open(tmp_path) as db:
        db.sql("UPDATE o SET n = 10 WHERE id = 3")
        assert db.sql("TABLE m").rows() == db["m"].rows() == [(3, 10), (2, 9), (4, 5)]
        assert db.sql("SELECT * FROM hidden").rows() == [(3,), (2,), (4,)]
        target = tmp_path / "m.csv"
        db.sql(f"COPY (SELECT * FROM m) TO '{target}' WITH (FORMAT csv)")
        assert target.read_text().split() == ["3,10", "2,9", "4,5"]


def test_the_order_of_a_view_does_not_choose_rows():
    with kpg.open() as db:
        db.sql("CREATE TABLE o (id INT, n INT); INSERT INTO o VALUES (1, 2), (2, 9), (3, 4)")
        db.sql("CREATE VIEW v AS SELECT id, n FROM o ORDER BY n DESC")
        assert db.sql("SELECT id FROM v LIMIT 2").rows() == [(1,), (2,)]
        assert db.sql("SELECT count(*), max(n) FROM v").rows() == [(3, 9)]
        assert db.sql("SELECT v.id, w.id FROM v JOIN v AS w USING (n) WHERE v.id > 1").rows() == [(2, 2), (3, 3)]
