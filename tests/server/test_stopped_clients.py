"""Clients that are stopped, or never read: they are disconnected after a while, and do not hold up the end."""

import json
import signal
import time

import pytest
from websockets.sync.client import connect

import kpg
from kpg.server import listener
from tests.server.serving import PATIENCE, served
from tests.server.serving_process import TOKEN, process
from tests.server.test_slow_clients import silent_client

ROWS = 80_000
CHARACTERS = 200  # of each row: 17 MB, more than the buffers of a socket take
STOPPED_SECONDS = 0.4
END_SECONDS = 8.0  # a limit on a busy machine: two seconds are for clients that close in order


def fill(db):
    db.create_relation("n", {"x": str})
    for part in range(4):
        db.insert("n", [(f"{part * ROWS + row:0{CHARACTERS}}",) for row in range(ROWS // 4)])


def until(condition):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.01)


def ask(silent):
    silent.send(json.dumps({"type": "query", "id": 1, "text": "n"}))


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(listener, "STOPPED_SECONDS", STOPPED_SECONDS)
    with served() as running:
        yield running


def test_a_client_that_takes_nothing_is_disconnected(server, db):
    fill(db)
    with silent_client(server) as silent:
        ask(silent)
        until(lambda: len(server.hub.clients) == 1)
        assert not server.hub.lost and db.query("n", limit=1).num_rows == 1


def test_a_client_that_reads_slowly_stays(server, db):
    fill(db)
    with silent_client(server) as silent:
        ask(silent)
        rows, more = 0, True
        while more:  # pauses of half the time after which a client counts as stopped
            message = json.loads(silent.recv(timeout=PATIENCE))
            rows, more = rows + len(message["rows"]), message.get("more")
            if rows % 8_000 == 0:
                time.sleep(STOPPED_SECONDS / 2)
        assert rows == ROWS


def test_a_client_that_takes_nothing_does_not_hold_up_the_end():
    with process() as (server, url):
        with kpg.connect(url, token=TOKEN) as db:
            fill(db)
        with connect(url, max_queue=1, compression=None, close_timeout=0.1) as silent:
            silent.send(json.dumps({"type": "hello", "id": 0, "version": 1, "token": TOKEN}))
            assert json.loads(silent.recv())["type"] == "welcome"
            ask(silent)
            silent.recv()
            time.sleep(0.3)
            began = time.monotonic()
            server.send_signal(signal.SIGTERM)
            assert server.wait(PATIENCE) == 0
            assert time.monotonic() - began < END_SECONDS
            assert not server.stderr.read()
