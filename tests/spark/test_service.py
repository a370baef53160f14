"""A service over a db that a Spark session opened, and a server that opens the session itself."""

import kpg
from kpg.service import Change, Service
from tests.server.serving import PATHS, USER, served


def test_rules_follow_what_spark_loads_and_what_clients_change(db, spark):
    """Rows of a DataFrame are changes as well: interests, arguments and SQL see them."""
    service = Service(db)
    service.create_relation("edge", {"x": int, "y": int})
    service.create_relation("loaded", {"x": int, "y": int}, semantics="raw")
    service.register("near(x, y) :- edge(x, y). near(x, y) :- loaded(x, y).")
    service.register("reach(x, y) :- near(x, y). reach(x, z) :- reach(x, y), near(y, z).")
    every, mine = service.interest("reach"), service.interest("reach", arguments={"x": 1})
    service.transact([Change("edge", (1, 2))])
    assert [row for row, _, _ in mine.take()] == [(1, 2)]
    db.load("loaded", spark.createDataFrame([(2, 3), (7, 8)], "x long, y long"))
    assert sorted(row for row, _, _ in mine.take()) == [(1, 3)]
    assert sorted(row for row, _, _ in every.take()) == [(1, 2), (1, 3), (2, 3), (7, 8)]
    assert service.execute_sql("SELECT count(*) FROM loaded").rows() == [(2,)]
    service.transact([Change("edge", (1, 2), -1)])
    assert sorted((row, diff) for row, _, diff in mine.take()) == [((1, 2), -1), ((1, 3), -1)]
    service.close()


def test_a_server_runs_its_workers_in_spark(spark):
    with served(spark=spark.sparkContext.master, workers=2) as server, kpg.connect(server.url, token=USER) as client:
        client.create_relation("edge", {"x": int, "y": int})
        client.register(PATHS)
        path = client.interest("path", arguments={"x": 1})
        client.insert("edge", [(1, 2), (2, 3)])
        assert sorted(path.rows()) == [(1, 2), (1, 3)]
