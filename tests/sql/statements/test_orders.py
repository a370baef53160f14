"""ORDER BY of queries: keys that are no columns of the result, nulls, all types, limits; compared in order."""

import pytest

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
