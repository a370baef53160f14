"""Reads as of a time that is not complete: they end with their client and the server, and their rows are bounded."""

import itertools
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from websockets.sync.client import connect

import kpg
from kpg.server.session_limits import SessionLimits
from tests.server.serving import PATIENCE, USER, served

ROWS = 20_000
LATER = 10  # times between the last complete one and that of a read that waits
END_SECONDS = 10.0  # a limit on a busy machine: what ends at once, and not after the 30 seconds that a read may wait


def waiting(db):
    """Return the number of reads that have no reply."""
    return sum(request["type"] == "query" for request in db.inspect("requests").to_pylist())


def until(condition):
    """Wait until a condition holds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < END_SECONDS
        time.sleep(0.002)


@pytest.mark.parametrize("end", ["close", "lose"])
def test_a_read_that_waits_for_a_time_ends_with_its_client(server, db, end):
    wild = kpg.connect(server.url, token=USER, reconnect=0)
    db.create_relation(f"n_{end}", {"x": int})
    failed = []

    def ask():
        with pytest.raises(kpg.KpgError) as raised:
            wild.query(f"n_{end}", as_of=10**9)
        failed.append(raised.value)

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: waiting(db) == 1)
    if end == "close":
        wild.close()
    else:
        wild._socket.socket.shutdown(2)
    thread.join(PATIENCE)
    until(lambda: waiting(db) == 0)
    assert len(failed) == 1


def test_a_read_that_waits_for_a_time_does_not_hold_up_the_end_of_the_server():
    with served(shutdown_seconds=PATIENCE) as server, kpg.connect(server.url, token=USER, reconnect=0) as db:
        db.create_relation("n", {"x": int})
        failed = []

        def ask():
            with kpg.connect(server.url, token=USER, reconnect=0) as other, pytest.raises(kpg.KpgError) as raised:
                other.query("n", as_of=10**9)
            failed.append(str(raised.value))

        thread = threading.Thread(target=ask)
        thread.start()
        until(lambda: waiting(db) == 1)
        began = time.monotonic()
        server.stop(PATIENCE)
        thread.join(PATIENCE)
        assert failed == ["the server is shutting down"]
        assert time.monotonic() - began < END_SECONDS


@pytest.mark.parametrize("later", [0, LATER], ids=["complete", "later"])
def test_rows_as_of_a_time_for_a_client_that_does_not_read_are_bounded(later):
    """The client gets all of them when it reads, and meanwhile the server holds its budget and one reply."""
    limits = SessionLimits(waiting_bytes=200_000)
    with served(limits, history=None) as server, kpg.connect(server.url, token=USER) as db:
        db.create_relation("n", {"x": int})
        at = db.insert("n", pa.table({"x": np.arange(ROWS)})) + later
        with connect(server.url, max_queue=1, compression=None, close_timeout=0.1) as silent:
            silent.send(json.dumps({"type": "hello", "id": 0, "version": 1, "token": USER}))
            assert json.loads(silent.recv())["type"] == "welcome"
            for number in range(1, 41):
                silent.send(json.dumps({"type": "query", "id": number, "text": "n", "as_of": at}))
            client = server.hub.clients[max(server.hub.clients)]
            until(lambda: len(client.session.pending) == 40 or client.budget.is_full)
            for value in range(later):
                db.insert("n", [(-value - 1,)])
            most = 0
            for value in range(10):
                db.insert("n", [(ROWS + value,)])
                most = max(most, client.budget.bytes)
                time.sleep(0.02)
            assert 0 < most < 200_000 + 2 * 8 * ROWS
            received = []
            while len(received) < 40:
                message = json.loads(silent.recv(timeout=PATIENCE))
                if message["type"] == "rows" and not message.get("more"):
                    received.append(message["id"])
            assert received == list(range(1, 41))


@pytest.mark.parametrize("workers", [1, 2])
def test_reads_that_asked_in_time_get_their_rows_while_others_write(workers):
    """Later times are closed before the answer is read, or is complete; what the read needs is kept until then."""
    with (
        served(workers=workers) as server,
        kpg.connect(server.url, token=USER) as db,
        kpg.connect(server.url, token=USER) as first,
        kpg.connect(server.url, token=USER) as second,
        kpg.connect(server.url, token=USER) as writer,
        ThreadPoolExecutor(4) as threads,
    ):
        db.create_relation("n", {"x": int})
        db.register("sums(t) :- t = sum x : {n(x)}.")
        db.interest("sums").rows()
        numbers, written = itertools.count(), {}

        def write(connection):
            for _ in range(2 * LATER):
                number = next(numbers)
                written[connection.insert("n", [(number,)])] = number

        def as_of(time):
            return [number for written_at, number in written.items() if written_at <= time]

        for _ in range(20):
            moment = db.ping() + LATER
            rows = threads.submit(first.query, "n", as_of=moment)
            total = threads.submit(second.query, "sums", as_of=moment + LATER)
            until(lambda: waiting(db) == 2)
            for writes in [threads.submit(write, connection) for connection in (db, writer)]:
                writes.result(PATIENCE)
            assert sorted(rows.result(PATIENCE).column(0).to_pylist()) == sorted(as_of(moment))
            assert total.result(PATIENCE).column(0).to_pylist() == [sum(as_of(moment + LATER))]
        db.query("n")
        service_readers = server.hub.engine.run(lambda service: list(service.db.readers)).result(PATIENCE)
        assert service_readers == []  # nothing keeps history any more


@pytest.mark.parametrize("workers", [1, 2])
def test_a_read_gets_its_rows_when_writes_follow_on_the_same_connection(workers):
    """All messages may arrive before the first is processed; what the reads need is kept from their requests on."""
    with served(workers=workers) as server, connect(server.url, close_timeout=0.1) as socket:
        numbers, replies = itertools.count(1), {}

        def send(kind, **fields):
            number = next(numbers)
            socket.send(json.dumps({"type": kind, "id": number, **fields}))
            return number

        def reply_to(number):
            while number not in replies:
                message = json.loads(socket.recv(timeout=PATIENCE))
                replies[message["id"]] = message
            return replies[number]

        def insert():
            return send("transact", changes=[{"relation": "n", "rows": [[next(numbers)]]}])

        send("hello", version=1, token=USER)
        send("create_relation", name="n", columns=[{"name": "x", "type": "int64"}])
        for turn in range(10):
            moment = reply_to(insert())["time"] + 1
            reads = [send("query", text="n", as_of=moment + later) for later in (0, LATER)]
            writes = [insert() for _ in range(2 * LATER)]
            before = turn * (2 * LATER + 1) + 1
            assert [len(reply_to(read)["rows"]) for read in reads] == [before + 1, before + 1 + LATER]
            reply_to(writes[-1])
