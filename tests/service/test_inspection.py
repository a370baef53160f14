"""The state of a service as tables."""

from contextlib import contextmanager

import pytest

import kpg
from kpg.service import Change, Service
from kpg.service.inspection import COLUMNS, NAMED, OF_ONE_DATAFLOW

RULES = "reach(x, y) :- edge(x, y). reach(x, z) :- reach(x, y), edge(y, z). near(x, z) :- edge(x, y), edge(y, z)."


@pytest.fixture
def service():
    with serving(1) as service:
        yield service


@contextmanager
def serving(workers):
    with kpg.open(workers=workers) as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.register(RULES)
        service.interest("near", owner=7)
        service.transact([Change("edge", (1, 2)), Change("edge", (2, 3))])
        service.transact([Change("edge", (2, 3), -1), Change("edge", (3, 4))])
        yield service
        service.close()


def rows(service, table, name=None):
    service._inspector.forget()  # a description may be half a second old
    return service.inspect(table, name).to_pylist()


def test_every_table_has_its_columns_and_is_empty_or_not(service):
    for table, columns in COLUMNS.items():
        name = "answer near" if table in NAMED else None
        assert service.inspect(table, name).column_names == [*columns]


def test_relations_have_their_rows_bytes_and_queries(service):
    relations = {row["name"]: row for row in rows(service, "relations")}
    edge, near, reach = relations["edge"], relations["near"], relations["reach"]
    assert (edge["kind"], edge["queries"], edge["columns"]) == ("relation", 0, "x: number, y: number")
    assert 2 <= edge["rows"] <= edge["published_rows"] == 4 and edge["bytes"] > 0  # some may not be compacted yet
    assert (near["kind"], near["queries"], near["text"]) == ("rule", 1, RULES)
    assert reach["rows"] is None  # not built
    assert relations["sys_rule"]["kind"] == "system relation"


def test_tables_and_views_of_sql_have_their_kinds(service):
    service.execute_sql("CREATE TABLE t (a int PRIMARY KEY); CREATE VIEW w AS SELECT a FROM t")
    service.execute_sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM t; INSERT INTO t VALUES (1), (2)")
    kinds = {row["name"]: (row["kind"], row["rows"]) for row in rows(service, "relations") if row["name"] in "tvw"}
    assert kinds == {"t": ("table", 2), "v": ("materialized view", 2), "w": ("view", None)}


def test_a_query_names_its_owner_dataflow_and_frontier(service):
    (query,) = rows(service, "queries")
    assert (query["name"], query["session"], query["dataflow"], query["lag"]) == ("near", 7, "answer near", 0)
    assert query["upto"] == service.time and query["cpu_seconds"] > 0


def test_a_cursor_of_sql_is_a_query_that_can_be_stopped(service):
    service.execute_sql("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)", owner=8)
    service.execute_sql("DECLARE c CURSOR FOR SUBSCRIBE (SELECT sum(a) AS s FROM t)", owner=8)
    assert len(service.execute_sql("FETCH ALL c", owner=8)) == 1
    (cursor,) = [row for row in rows(service, "queries") if row["name"] == "cursor c"]
    assert (cursor["session"], cursor["tenant"], cursor["lag"]) == (8, None, 0) and cursor["cpu_seconds"] > 0
    assert cursor["dataflow"] in {row["name"] for row in rows(service, "dataflows")}
    later = service.interest("reach", owner=9)
    assert len({row["number"] for row in rows(service, "queries")}) == 3  # each query has a number of its own
    assert [row["queries"] for row in rows(service, "usage") if row["name"] == "8"] == [1]
    service.uninterest(later)
    assert service.stop(cursor["number"]) == 8
    with pytest.raises(kpg.Stopped, match="the query of c was stopped") as raised:
        service.execute_sql("FETCH ALL c", owner=8)
    assert raised.value.sqlstate == "57014"
    assert [row["name"] for row in rows(service, "queries")] == ["near"]
    assert cursor["dataflow"] not in {row["name"] for row in rows(service, "dataflows")}
    service.execute_sql("CLOSE c", owner=8)


def test_dataflows_have_names_of_their_own(service):
    service.execute_sql("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
    service.execute_sql("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
    names = [row["name"] for row in rows(service, "dataflows")]
    assert len(names) == len(set(names)) and "v" in names
    (view,) = [row for row in rows(service, "dataflows") if row["name"] == "v"]
    assert view["operators"] == len(rows(service, "operators", "v"))


def test_readers_of_an_arrangement_share_or_pin_it(service):
    arrangements = {row["name"]: row for row in rows(service, "arrangements")}
    shared = arrangements["edge by x"] if "edge by x" in arrangements else arrangements["edge by y"]
    assert shared["since"] is not None and shared["upper"] == service.time and not shared["private"]
    readers = rows(service, "readers", shared["name"])
    assert "answer near" in [row["reader"] for row in readers if row["role"] == "shares"]
    assert [row for row in readers if row["role"] == "pins" and row["since"] is not None]
    of_near = [row["name"] for row in rows(service, "arrangements", "answer near")]
    assert shared["name"] in of_near and len(of_near) >= 2


def test_operators_and_channels_are_the_graph_of_a_dataflow(service):
    operators = {row["operator"]: row for row in rows(service, "operators", "answer near")}
    channels = rows(service, "channels", "answer near")
    assert channels and all(row["source"] in operators and row["target"] in operators for row in channels)
    assert "edge" in {row["imports_from"] for row in operators.values()}
    assert sum(row["cpu_seconds"] for row in operators.values()) > 0
    assert rows(service, "operators", "nothing of this name") == []


def test_workers_and_usage(service):
    workers = rows(service, "workers")
    assert [row["worker"] for row in workers] == [*range(len(workers))]
    assert all(row["resident_bytes"] > 0 and row["state"] in ("idle", "busy") for row in workers)
    assert len({row["process"] for row in workers}) == len(workers)
    assert [(row["kind"], row["name"], row["queries"]) for row in rows(service, "usage")] == [("session", "7", 1)]


def test_figures_of_two_workers_are_sums():
    with serving(2) as service:
        test_relations_have_their_rows_bytes_and_queries(service)
        test_readers_of_an_arrangement_share_or_pin_it(service)
        test_operators_and_channels_are_the_graph_of_a_dataflow(service)
        test_dataflows_have_names_of_their_own(service)
        (used,) = rows(service, "usage")
        assert used["cpu_seconds"] > 0
        assert [row["worker"] for row in rows(service, "workers")] == [0, 1]
        test_a_stopped_query_raises_and_leaves_its_dataflow(service)


def test_a_tenant_sees_its_own_relations_and_queries(service):
    with service.grants.acting_as("acme"):
        service.create_relation("acme_sales", {"x": int})
        service.interest("acme_sales", owner=8)
        assert [row["name"] for row in rows(service, "relations")] == ["acme_sales"]
        assert [row["name"] for row in rows(service, "queries")] == ["acme_sales"]
        for table in ("dataflows", "arrangements", "workers", "usage", "readers"):
            with pytest.raises(kpg.NotAuthorised, match="acme may not inspect"):
                service.inspect(table)
    assert {row["tenant"] for row in rows(service, "queries")} == {None, "acme"}


def test_wrong_names_are_refused_with_a_hint(service):
    with pytest.raises(kpg.InputError, match="no table is called 'nothing'"):
        service.inspect("nothing")
    with pytest.raises(kpg.InputError, match="takes no name"):
        service.inspect("queries", "near")
    for table in OF_ONE_DATAFLOW:
        with pytest.raises(kpg.InputError, match="needs the name of a dataflow"):
            service.inspect(table)


def test_a_stopped_query_raises_and_leaves_its_dataflow(service):
    (number,) = service.interests
    interest = service.interests[number]
    service.stop(number)
    with pytest.raises(kpg.Stopped, match="the query of near was stopped"):
        interest.take()
    assert "answer near" not in {row["name"] for row in rows(service, "dataflows")}
    assert rows(service, "queries")[0]["state"].startswith("failed: the query of near")
    with pytest.raises(kpg.UndefinedName, match="no query 99"):
        service.stop(99)
