"""`inspect` and `stop` over the network, and what the server itself adds to the tables."""

import threading
import time

import psycopg
import pytest

import kpg
from kpg.server.duration_histogram import DurationHistogram
from kpg.server.server_tables import COLUMNS
from kpg.server.throughput_history import INTERVAL_SECONDS, MAX_INTERVALS, ThroughputHistory
from kpg.server.tokens import tokens_of
from tests.server.serving import ADMIN, PATHS, PATIENCE, USER, served


def test_an_admin_stops_the_query_of_another_session(db, admin):
    db.create_relation("edge", {"x": int, "y": int})
    db.register(PATHS)
    path = db.interest("path")
    db.insert("edge", [(1, 2)])
    assert path.rows() == [(1, 2)]
    (query,) = [row for row in admin.inspect("queries").to_pylist() if row["name"] == "path"]
    with pytest.raises(kpg.NotAuthorised, match="stop needs the role admin"):
        db.stop(query["number"])
    admin.stop(query["number"])
    with pytest.raises(kpg.Stopped):
        path.next(timeout=PATIENCE)
    assert path.id not in [row["number"] for row in admin.inspect("queries").to_pylist()]
    assert db.query("path").num_rows == 1  # the session continues


ENDLESS = "up(x) :- seed(x). up(y) :- up(x), y = x + 1."


def test_an_admin_stops_a_request_that_takes_long():
    limits = {"rounds": 10**12, "first_seconds": None, "step_rows": None, "kept_rows": None, "kept_bytes": None}
    with served() as server:
        with kpg.connect(server.url, token=ADMIN) as db, kpg.connect(server.url, token=ADMIN) as admin:
            db.create_relation("seed", {"x": int})
            db.insert("seed", [(0,)])
            raised = []

            def ask():
                try:
                    db.query(ENDLESS, language="datalog", limits=limits)
                except kpg.KpgError as error:
                    raised.append(error)

            asking = threading.Thread(target=ask)
            asking.start()
            running = []
            while not running:
                running = [row for row in admin.inspect("requests").to_pylist() if row["type"] == "query"]
            assert running[0]["text"] == ENDLESS and running[0]["seconds"] >= 0
            admin.stop(session=running[0]["session"])
            asking.join(PATIENCE)
            assert [type(error) for error in raised] == [kpg.Stopped]
            assert db.query("seed").num_rows == 1
            with pytest.raises(kpg.InputError, match="either number or session"):
                admin.stop()


@pytest.fixture
def fetching():
    """A connection of PostgreSQL's protocol whose FETCH waits for changes, an admin, and what the FETCH raises."""
    with served(pg_port=0) as server, kpg.connect(server.url, token=ADMIN) as admin:
        address = f"host=127.0.0.1 port={server.pg_port} user=kpg dbname=kpg password={USER}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (a int PRIMARY KEY)")
            connection.execute("DECLARE c CURSOR FOR SUBSCRIBE (SELECT sum(a) FROM t)")
            assert len(connection.execute("FETCH ALL c").fetchall()) == 1
            raised = []

            def fetch():
                try:
                    connection.execute(WAITS)
                except psycopg.Error as error:
                    raised.append((error.sqlstate, error.diag.message_primary))

            waiting = threading.Thread(target=fetch)
            waiting.start()
            yield connection, admin, raised, waiting
            waiting.join()


WAITS = f"FETCH ALL c WITH (timeout = '{2 * PATIENCE}s')"


def waiting_fetch(admin):
    """Return the request of a FETCH that has looked for changes, and waits for more."""
    while True:
        for row in admin.inspect("requests").to_pylist():
            if row["text"] == WAITS and row["seconds"] > 0.2:
                return row
        time.sleep(0.01)


def test_an_admin_sees_and_stops_the_cursor_of_another_session(fetching):
    connection, admin, raised, waiting = fetching
    request = waiting_fetch(admin)
    (session,) = [row for row in admin.inspect("sessions").to_pylist() if row["protocol"] == "postgresql"]
    assert (session["role"], session["tenant"], session["pending"]) == ("user", None, 1)
    assert request["session"] == session["session"]
    (query,) = [row for row in admin.inspect("queries").to_pylist() if row["name"] == "cursor c"]
    assert query["session"] == session["session"]
    admin.stop(query["number"])
    waiting.join(PATIENCE)
    assert raised == [("57014", "the query of c was stopped")]
    assert admin.inspect("queries").num_rows == 0
    connection.execute("CLOSE c")
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(0,)]  # the session continues


def test_an_admin_stops_a_fetch_that_waits(fetching):
    connection, admin, raised, waiting = fetching
    request = waiting_fetch(admin)
    admin.stop(session=request["session"])
    waiting.join(PATIENCE)
    assert raised == [("57014", "the request was stopped")]
    connection.execute("INSERT INTO t VALUES (5)")
    assert [row[1:] for row in connection.execute("FETCH ALL c").fetchall()] == [(-1, None), (1, 5)]


def test_sessions_and_throughput_are_tables(db, admin):
    for table, columns in COLUMNS.items():
        assert admin.inspect(table).column_names == [*columns]
    roles = [row["role"] for row in admin.inspect("sessions").to_pylist()]
    assert sorted(roles) == ["admin", "user"]
    db.ping()
    last = admin.inspect("throughput").to_pylist()[-1]
    assert last["requests"] >= 1 and last["request_p50"] > 0
    with pytest.raises(kpg.InputError, match="takes no name"):
        admin.inspect("sessions", "x")


def test_a_tenant_may_not_inspect_the_server():
    with served(tokens=tokens_of([("user", USER, "acme")])) as server, kpg.connect(server.url, token=USER) as db:
        assert db.inspect("queries").num_rows == 0
        for table in (*COLUMNS, "workers"):
            with pytest.raises(kpg.NotAuthorised, match="may not inspect"):
                db.inspect(table)


def test_the_history_has_the_last_ten_minutes_by_intervals():
    now = [1000.0]
    history = ThroughputHistory(lambda: now[0])
    for _ in range(2 * MAX_INTERVALS):
        history.add_request(0.004, failed=False)
        history.add_request(0.2, failed=True)
        history.add_change_rows(5)
        history.add_change(0.002)
        now[0] += INTERVAL_SECONDS
    rows = history.rows()
    assert len(rows) == MAX_INTERVALS
    start, seconds, requests, failed, change_rows, p50, p99, change_p50, _ = rows[-1]
    assert (start, seconds, requests, failed, change_rows) == (now[0] - INTERVAL_SECONDS, 2.0, 2, 1, 5)
    assert p50 <= 0.005 and 0.1 < p99 <= 0.25 and 0.001 < change_p50 <= 0.0025
    now[0] += 1_000
    assert history.rows() == []


def test_quantiles_are_within_their_bucket():
    histogram = DurationHistogram()
    assert histogram.quantile(0.5) is None
    for milliseconds in range(1, 101):
        histogram.add(milliseconds / 1000)
    assert 0.025 <= histogram.quantile(0.5) <= 0.05 and 0.05 <= histogram.quantile(0.99) <= 0.1
    histogram.add(100.0)
    assert histogram.quantile(1.0) == 30.0  # the last bound
