"""Clients that do not read: the bytes on their way to them are bounded, and other clients work on."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from websockets.sync.client import ClientConnection, connect

import kpg
from kpg.server.client_connection import ClientConnection as ServedClient
from kpg.server.flow_control import SendBudget
from kpg.server.running_server import RunningServer
from kpg.server.session_limits import SessionLimits
from tests.server.serving import USER, served

WAITING_BYTES = 200_000
ROWS = 20_000  # of 8 bytes: nearly the budget


@contextmanager
def silent_client(server: RunningServer) -> Iterator[ClientConnection]:
    """A client that reads nothing after its welcome: its small window and the socket's buffers fill up soon."""
    with connect(server.url, max_queue=1, compression=None, close_timeout=0.1) as socket:
        socket.send(json.dumps({"type": "hello", "id": 0, "version": 1, "token": USER}))
        assert json.loads(socket.recv())["type"] == "welcome"
        yield socket


def served_client(server: RunningServer, session: int) -> ServedClient:
    return server.hub.clients[session]


def test_a_budget_reports_when_it_is_no_longer_full() -> None:
    budget = SendBudget(100)
    budget.add(60)
    assert not budget.is_full and not budget.remove(10)
    budget.add(150)
    assert budget.is_full and not budget.remove(20) and budget.remove(150)
    assert budget.bytes == 30


def test_rows_for_a_client_that_does_not_read_are_bounded_and_others_work() -> None:
    limits = SessionLimits(waiting_bytes=WAITING_BYTES)
    with served(limits) as server, kpg.connect(server.url, token=USER) as calm:
        calm.create_relation("n", {"x": int})
        calm.insert("n", [(x,) for x in range(ROWS)])
        follows = calm.interest("n")
        assert len(follows.rows()) == ROWS
        with silent_client(server) as silent:
            slow = served_client(server, max(server.hub.clients))
            for number in range(1, 31):  # queries of about the budget each, pipelined
                silent.send(json.dumps({"type": "query", "id": number, "text": "n"}))
            for number in range(31, 51):
                silent.send(json.dumps({"type": "interest", "id": number, "name": "n"}))
            most = 0
            for value in range(10):
                calm.insert("n", [(-value - 1,)])
                assert (-value - 1,) in follows.rows()
                most = max(most, slow.budget.bytes)
                time.sleep(0.02)  # the silent client's requests arrive meanwhile
            assert 0 < most <= WAITING_BYTES + 30 * ROWS  # the budget, and one reply beyond it
            received = 0
            while received < 30:  # it reads at last, and gets all replies in order
                message = json.loads(silent.recv(timeout=60))
                if message["type"] == "rows" and not message.get("more"):
                    received += 1
                    assert message["id"] == received
