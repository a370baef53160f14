"""Clients that misbehave on real sockets: the server refuses or drops them, and others are not affected."""

import asyncio
import json
import socket
import struct
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as raw

import kpg
from kpg.protocol import requests
from kpg.protocol.message_codec import encode
from kpg.protocol.messages import VERSION
from kpg.server.session_limits import SessionLimits
from tests.server.serving import PATIENCE, USER, served


@contextmanager
def stranger(server, **options):
    """A WebSocket before authentication."""
    with raw(server.url, proxy=None, **options) as connection:
        yield connection


def greeted(connection):
    connection.send(encode(requests.HelloRequest(0, VERSION, USER)))
    assert json.loads(connection.recv(PATIENCE))["type"] == "welcome"


def said(connection) -> dict:
    return json.loads(connection.recv(PATIENCE))


def wait_until(condition, seconds: float = PATIENCE) -> None:
    """Wait for a condition; fail after some seconds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the condition did not become true in time"
        time.sleep(0.01)


def closing(connection) -> int:
    """The code with which the server closes the connection."""
    with pytest.raises(ConnectionClosed) as caught:
        while True:
            connection.recv(PATIENCE)
    return caught.value.rcvd.code if caught.value.rcvd else 1006


def test_a_binary_message_is_refused_and_the_connection_ends(server, db):
    with stranger(server) as connection:
        greeted(connection)
        connection.send(b"\x00\x01")
        assert said(connection)["failure"]["error"] == "ProtocolError"
        assert closing(connection) == 1003
    db.ping()  # other clients are not affected


def test_an_oversize_message_ends_its_connection_and_no_other():
    with served(SessionLimits(message_bytes=10_000)) as server, kpg.connect(server.url, token=USER) as other:
        with stranger(server, max_size=None) as connection:
            greeted(connection)
            connection.send("x" * 20_000)
            assert closing(connection) == 1009
        other.create_relation("edge", {"x": int})
        assert other.insert("edge", [(1,)]) == 0


def test_a_request_over_the_limit_of_a_message_is_an_error_that_names_it():
    """Of the client itself, whose connection goes on, and of a page of HTTP."""
    limit = r"more than 10,000(?s:.)*message_bytes(?s:.)*kpg serve --max-message-bytes N"
    with served(SessionLimits(message_bytes=10_000)) as server, kpg.connect(server.url, token=USER) as db:
        session = db.welcome.session
        db.create_relation("word", {"x": str})
        for text in ("x" * 10_000, "ü" * 5_000):
            with pytest.raises(kpg.ResourceError, match=limit):
                db.insert("word", [(text,)])
        assert db.insert("word", [("ü" * 4_000,)]) >= 0 and db.query("word").num_rows == 1
        assert db.welcome.session == session
        code, said = refused_page(server, "query", b"x" * 10_001)
        assert code == 413 and "10,000 are allowed" in said and "kpg serve --max-message-bytes N" in said


def refused_page(server, path, data=None):
    """The status and the text of an HTTP request that is refused."""
    request = Request(f"{server.url.replace('ws', 'http', 1)}/{path}", data, {"Authorization": f"Bearer {USER}"})
    with pytest.raises(HTTPError) as refused:
        urlopen(request)
    return refused.value.code, refused.value.read().decode()


def test_a_client_that_does_not_send_hello_is_dropped():
    with served() as server:
        server.hub.limits = replace(server.hub.limits, greeting_seconds=0.1)  # applies to connected clients
        with stranger(server) as connection:
            assert closing(connection) in (1000, 1006)


def test_nonsense_is_refused_with_its_place_and_the_session_goes_on(server):
    with stranger(server) as connection:
        greeted(connection)
        for text in ("{", '{"type": "fly", "id": 3}', '{"type": "query", "id": 4}', "null", "\x00"):
            connection.send(text)
            assert said(connection)["failure"]["position"]["path"].startswith("$")
        connection.send(encode(requests.PingRequest(5)))
        assert said(connection)["id"] == 5


def test_sessions_beyond_the_limit_are_asked_to_come_later():
    with served(SessionLimits(sessions=1)) as server, kpg.connect(server.url, token=USER):
        with stranger(server) as connection:
            assert closing(connection) == 1013
        with pytest.raises(kpg.Unreachable, match=r"1 sessions(?s:.)*kpg serve --max-sessions N"):
            kpg.connect(server.url, token=USER, reconnect=0)
        code, said = refused_page(server, "query?text=x")
        assert code == 429 and "kpg serve --max-sessions N" in said


def test_a_page_of_another_site_cannot_connect_from_a_browser(server):
    with pytest.raises(InvalidStatus) as caught, stranger(server, origin="https://evil.example"):
        pass
    assert caught.value.response.status_code == 403


HALF_A_HANDSHAKE = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
NOT_HTTP = b"\x16\x03\x01 not http at all\r\n\r\n"


def connection_tasks(server) -> int:
    """The number of tasks on the server's event loop: at least one per connection."""

    async def count() -> int:
        return len(asyncio.all_tasks())

    return asyncio.run_coroutine_threadsafe(count(), server.hub.loop).result(PATIENCE)


@pytest.mark.parametrize("ends", ["unfinished", "half closed", "reset", "not HTTP"])
def test_a_broken_handshake_is_dropped_in_time_and_others_are_served(ends, caplog):
    """The server closes each such connection, keeps no task for it, logs nothing, and serves a client meanwhile."""
    with (
        served(SessionLimits(greeting_seconds=0.5)) as server,
        kpg.connect(server.url, token=USER) as db,
        ExitStack() as stack,
    ):
        host, port = server.url.removeprefix("ws://").split(":")
        db.ping()
        before = connection_tasks(server)
        lines = [stack.enter_context(socket.create_connection((host, int(port)), PATIENCE / 4)) for _ in range(5)]
        for line in lines:
            line.sendall(NOT_HTTP if ends == "not HTTP" else HALF_A_HANDSHAKE)
        wait_until(lambda: connection_tasks(server) >= before + len(lines))
        for line in lines:
            if ends == "half closed":
                line.shutdown(socket.SHUT_WR)
            if ends == "reset":
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close sends RST
                line.close()
        db.ping()
        for line in lines:
            while ends != "reset" and line.recv(1000):  # until the server closes; fails at the timeout
                pass
            line.close()
        wait_until(lambda: connection_tasks(server) <= before)
        assert len(server.hub.clients) == 1 and caplog.records == []
        with kpg.connect(server.url, token=USER) as another:
            assert another.ping() == db.ping()


def test_a_client_that_cuts_the_line_in_the_middle_of_a_session_is_forgotten(server, db):
    db.create_relation("cut", {"x": int})
    line = socket.create_connection(server.url.removeprefix("ws://").split(":"))
    connection = raw(server.url, sock=line, proxy=None).__enter__()
    greeted(connection)
    connection.send(encode(requests.InterestRequest(1, "cut")))
    assert said(connection)["type"] == "interested"
    line.shutdown(socket.SHUT_RDWR)
    until = time.monotonic() + PATIENCE
    while len(server.hub.clients) > 1 and time.monotonic() < until:
        db.insert("cut", [(1,)])
    assert len(server.hub.clients) == 1


def test_a_client_that_never_reads_gets_consolidated_changes_and_delays_no_other(server, db):
    """Bad input: clients that never read. Its changes are consolidated; another client is not delayed."""
    db.create_relation("wide", {"k": int, "text": str})
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    line.connect(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
    with raw(server.url, sock=line, proxy=None, max_queue=1, max_size=None, close_timeout=0.1) as stuck:
        greeted(stuck)
        stuck.send(encode(requests.InterestRequest(1, "wide")))
        follows = db.interest("wide")
        transactions, before = 24, ""
        for k in range(transactions):
            big = f"{k} " + "x" * 1_000_000
            db.transact([("wide", (0, big)), ("wide", (0, before), -1)])
            before = big
            assert [row[1][:3] for row in follows.rows()] == [big[:3]]
            client = max(server.hub.clients.values(), key=lambda client: len(client.outbox))
            assert len(client.outbox) <= 2
        assert said(stuck)["type"] == "interested"
        counts: dict[str, int] = {}
        steps = rows = 0
        while counts != {before[:3]: 1}:
            message = json.loads(stuck.recv(PATIENCE))
            steps += not message.get("more", False)
            rows += len(message["rows"])
            for row, diff in zip(message["rows"], message["diffs"], strict=True):
                counts[row[1][:3]] = counts.get(row[1][:3], 0) + diff
                if not counts[row[1][:3]]:
                    del counts[row[1][:3]]
        assert steps < transactions and rows < transactions  # what came and went while it did not read never came


def test_a_flood_of_requests_from_one_client_waits_for_that_client(server, db):
    """The server stops reading from a client that sends without reading when its replies pile up."""
    db.create_relation("flood", {"x": int, "text": str})
    db.insert("flood", [(k, "y" * 100) for k in range(1_000)])
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    line.connect(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
    with raw(server.url, sock=line, proxy=None, max_queue=1, close_timeout=0.1) as stuck:
        greeted(stuck)

        sent = 0

        def flood():
            nonlocal sent
            with suppress(OSError, ConnectionClosed):
                for number in range(1, 200_000):
                    stuck.send(encode(requests.QueryRequest(number, "flood")))
                    sent = number

        def waiting():
            return max(len(client.outbox) for client in server.hub.clients.values())

        floods = threading.Thread(target=flood)
        floods.start()
        until, before = time.monotonic() + PATIENCE, -1
        while sent != before and time.monotonic() < until:  # until the buffers of both sockets are full
            before = sent
            for _ in range(50):
                assert waiting() <= 2 * server.hub.limits.waiting_messages + 1
                db.ping()
            time.sleep(0.1)
        assert 0 < sent == before < 199_999, "the server still reads"
        assert db.query("flood", limit=1).num_rows == 1
        line.shutdown(socket.SHUT_RDWR)
        floods.join()
