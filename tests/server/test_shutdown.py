"""The end of a server: requests under way are finished, others refused, and one that takes too long is left.

Work on answers ends at once. Bounds on this are in CPU time of the server, because tests share their machine.
"""

import logging
import os
import signal
import threading
import time

import psycopg
import pytest

import kpg
from kpg.api import waiting_requests
from kpg.bench.offenders import UNLIMITED
from kpg.server.server_log import MEMBERS
from kpg.service import Service
from tests.server.heavy_queries import HEAVY, fill_heavy_relations
from tests.server.serving import ADMIN, PATIENCE, USER, served
from tests.server.serving_process import TOKEN, process


def begin_end(server) -> None:
    server._loop.call_soon_threadsafe(server._end.set)
    while not server.hub.is_ending:
        time.sleep(0.001)


def test_a_request_under_way_is_finished_and_a_new_one_refused():
    with served(shutdown_seconds=PATIENCE) as server:
        gate = threading.Event()
        with kpg.connect(server.url, token=USER, reconnect=0) as db, kpg.connect(server.url, token=USER) as other:
            db.create_relation("edge", {"x": int})
            server.hub.engine.run(lambda service: gate.wait(PATIENCE))
            times: list[int] = []
            writer = threading.Thread(target=lambda: times.append(db.insert("edge", [(1,)])))
            writer.start()
            while not any(client.has_requests for client in server.hub.clients.values()):
                time.sleep(0.001)
            begin_end(server)
            with pytest.raises(kpg.Closed, match="shutting down"):
                other.ping()
            with pytest.raises(kpg.Unreachable):
                kpg.connect(server.url, token=USER, reconnect=0).ping()
            gate.set()
            writer.join(PATIENCE)
            assert len(times) == 1


def test_a_request_that_takes_too_long_does_not_hold_up_the_end():
    with served(shutdown_seconds=0.2) as server:
        gate = threading.Event()

        def wait_long(service: Service) -> None:
            service.db.wait_for_future(server.hub.engine.run(lambda service: None))
            gate.wait(0.5)

        db = kpg.connect(server.url, token=USER, reconnect=0)
        server.hub.engine.run(wait_long)
        failures: list[BaseException] = []

        def ask() -> None:
            try:
                db.ping()
                db.ping()
            except kpg.KpgError as error:
                failures.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        began = time.monotonic()
        server.stop(PATIENCE)
        assert time.monotonic() - began < PATIENCE / 2
        thread.join(PATIENCE)
        assert not thread.is_alive()


MAX_CPU_SECONDS = 0.6  # after the signal, with the end of the process; 50 ms of it for the work that is ended


def fill(directory) -> None:
    """Make a db on which each heavy query takes many seconds."""
    with kpg.open(directory) as db:
        service = Service(db)
        fill_heavy_relations(service)
        service.create_relation("kept", {"x": int})
        service.close()


def cpu_seconds(process_id: int) -> float:
    """Return the CPU time of all threads of a process."""
    with open(f"/proc/{process_id}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_signal_ends_the_work_on_answers_at_once(tmp_path):
    """A request that waits for a heavy operator fails within 50 ms; acknowledged writes are kept."""
    fill(tmp_path / "db")
    failures: list[kpg.KpgError] = []

    def ask(db, text) -> None:
        with pytest.raises(kpg.KpgError) as raised:
            db.query(text, language="datalog", limit=1, limits=UNLIMITED)
        failures.append(raised.value)

    with process(str(tmp_path / "db"), "--shutdown-seconds", "600") as (server, url):
        writer = kpg.connect(url, token=TOKEN, reconnect=0)
        clients = [kpg.connect(url, token=TOKEN, reconnect=0) for _ in HEAVY]
        threads = [threading.Thread(target=ask, args=pair) for pair in zip(clients, HEAVY.values(), strict=True)]
        for thread in threads:
            thread.start()
        time.sleep(0.7)
        assert all(thread.is_alive() for thread in threads), failures
        writer.insert("kept", [(7,)])
        before = cpu_seconds(server.pid)
        server.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(PATIENCE)
        assert [str(error) for error in failures] == ["the server is shutting down"] * len(HEAVY)
        _, status, used = os.wait4(server.pid, 0)
        server.returncode = os.waitstatus_to_exitcode(status)
        assert server.returncode == 0
        assert used.ru_utime + used.ru_stime - before < MAX_CPU_SECONDS
    with kpg.open(tmp_path / "db") as db:
        assert Service(db).query("kept").to_pylist() == [{"x": 7}]


def test_a_signal_ends_work_that_no_request_waits_for(tmp_path):
    """The answers of interests are still computed, and no request is under way: the server exits at once."""
    fill(tmp_path / "db")
    with process(str(tmp_path / "db"), "--shutdown-seconds", "600") as (server, url):
        db = kpg.connect(url, token=TOKEN, reconnect=0)
        for number, name in enumerate(("product", "recursion operator", "sort and reduction")):
            db.register(HEAVY[name].replace("p(", f"p{number}("))
            db.interest(f"p{number}", limits=UNLIMITED)
        db.insert("kept", [(7,)])
        before, began = cpu_seconds(server.pid), time.monotonic()
        server.send_signal(signal.SIGTERM)
        _, status, used = os.wait4(server.pid, 0)
        server.returncode = os.waitstatus_to_exitcode(status)
        assert server.returncode == 0
        assert used.ru_utime + used.ru_stime - before < MAX_CPU_SECONDS
        assert time.monotonic() - began < PATIENCE
    with kpg.open(tmp_path / "db") as reopened:
        assert Service(reopened).query("kept").to_pylist() == [{"x": 7}]


def pg_address(server) -> dict[str, object]:
    return {"host": "127.0.0.1", "port": server.pg_port, "user": "kpg", "dbname": "kpg", "password": ADMIN}


def hold_engine(server, gate: threading.Event, seconds: float) -> None:
    """Let the engine wait for a gate; return when it does."""
    begun = threading.Event()
    server.hub.engine.run(lambda service: begun.set() or gate.wait(seconds))
    assert begun.wait(PATIENCE)


def test_a_statement_of_a_postgresql_client_is_finished_and_other_connections_end(caplog, monkeypatch):
    monkeypatch.setattr(waiting_requests, "TURN_SECONDS", PATIENCE)  # a statement that is left has not begun to write
    caplog.set_level(logging.INFO, "kpg.server")
    with served(pg_port=0, shutdown_seconds=PATIENCE) as server:
        gate = threading.Event()
        writer = psycopg.connect(**pg_address(server), autocommit=True)
        idle = psycopg.connect(**pg_address(server), autocommit=True)
        writer.execute("CREATE TABLE t (n integer)")
        hold_engine(server, gate, PATIENCE)
        tags: list[str | None] = []
        thread = threading.Thread(target=lambda: tags.append(writer.execute("INSERT INTO t VALUES (1)").statusmessage))
        thread.start()
        while server.hub.engine._queue.empty():
            time.sleep(0.001)
        begin_end(server)
        with pytest.raises(psycopg.errors.AdminShutdown, match="shutting down"):
            while True:  # until the server has ended the connection
                idle.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(**pg_address(server), connect_timeout=2)
        gate.set()
        thread.join(PATIENCE)
        assert tags == ["INSERT 0 1"]
    lines = [(record.getMessage(), getattr(record, MEMBERS, {}).get("protocol")) for record in caplog.records]
    assert lines.count(("session begins", "pg")) == 2 and lines.count(("session ends", "pg")) == 2


def test_a_statement_of_a_postgresql_client_that_arrives_during_the_shutdown_is_refused():
    with served(pg_port=0) as server:
        gate = threading.Event()
        with psycopg.connect(**pg_address(server), autocommit=True) as db:
            hold_engine(server, gate, PATIENCE)
            server.hub.is_ending = True  # as at the beginning of a shutdown, before idle connections are ended
            try:
                with pytest.raises(psycopg.errors.AdminShutdown, match="shutting down"):
                    db.execute("SELECT 1")  # would wait for the engine, and hold up the shutdown
            finally:
                gate.set()


def test_a_statement_that_takes_too_long_is_left_and_logged(caplog):
    with served(pg_port=0, shutdown_seconds=0.1) as server:
        gate = threading.Event()
        writer = psycopg.connect(**pg_address(server), autocommit=True)
        hold_engine(server, gate, 0.5)
        failures: list[BaseException] = []

        def ask() -> None:
            try:
                writer.execute("SELECT 1")
            except psycopg.Error as error:
                failures.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while server.hub.engine._queue.empty():
            time.sleep(0.001)
        server.stop(PATIENCE)
        thread.join(PATIENCE)
        assert len(failures) == 1 and "statements are finished" in caplog.text
