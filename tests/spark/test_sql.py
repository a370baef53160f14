"""SQL on the workers of a Spark application: tables, views, subscriptions, and rows that Spark reads."""

import kpg


def test_statements_and_subscriptions_run_on_workers_of_spark(spark, db):
    db.sql("CREATE TABLE orders (id INT PRIMARY KEY, who TEXT NOT NULL, amount NUMERIC(8,2))")
    db.sql(
        "CREATE MATERIALIZED VIEW totals AS SELECT who, sum(amount) AS total FROM orders GROUP BY who ORDER BY 2 DESC"
    )
    db.sql("INSERT INTO orders VALUES (1, 'ann', 5), (2, 'bob', 3), (3, 'ann', 1.25)")
    changes = db.sql("SUBSCRIBE totals WITH (PROGRESS)")
    assert sorted(change.row for change in changes if change.row) == sorted(db.sql("TABLE totals").rows())
    db.sql("DELETE FROM orders WHERE id = 1")
    assert [(change.diff, change.row and change.row[0]) for change in changes if change.row] == [
        (-1, "ann"),
        (1, "ann"),
    ]
    assert [who for who, _ in db["totals"].rows()] == ["bob", "ann"]
    db.sql("DROP MATERIALIZED VIEW totals")
    try:
        list(changes)
        raise AssertionError("the view of the subscription is gone")
    except kpg.UndefinedName as error:
        assert error.sqlstate == "42P01"
    db.sql("DROP TABLE orders")
