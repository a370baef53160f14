"""Clients without WebSocket: writes, queries and changes over HTTP, with the same rights and guarantees."""

import http.client
import json
import socket
import time
from collections.abc import Iterator

import pytest
from websockets.sync.client import connect

from kpg.server import http_endpoints
from kpg.server.session import RefusedMessage, decode_request
from kpg.server.session_limits import SessionLimits
from tests.server.serving import ADMIN, PATIENCE, USER, served

BEARER = {"Authorization": f"Bearer {USER}"}


def connection_to(server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(server.url.removeprefix("ws://"), timeout=PATIENCE)


def post(server, path: str, members: object, token: str = USER) -> tuple[int, dict]:
    """Return the status and the JSON of a reply."""
    connection = connection_to(server)
    body = members if isinstance(members, bytes) else json.dumps(members).encode()
    connection.request("POST", path, body, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


class Events:
    """A stream of server-sent events."""

    def __init__(self, server, query: str, last: str | None = None) -> None:
        self._connection = connection_to(server)
        headers = BEARER | ({"Last-Event-ID": last} if last else {})
        self._connection.request("GET", f"/changes?{query}", headers=headers)
        self._lines = self._connection.getresponse()
        self.status = self._lines.status
        self.last = last

    def __iter__(self) -> Iterator[tuple[str, dict]]:
        event: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                event[name] = value
            elif "data" in event:
                self.last = event.get("id", self.last)
                yield event["event"], json.loads(event["data"])
                event = {}

    def close(self) -> None:
        self._lines.close()
        self._connection.close()


def test_writes_and_queries_need_no_websocket(server):
    columns = [{"name": "x", "type": "int64"}, {"name": "text", "type": "string"}]
    assert post(server, "/create_relation", {"name": "posted", "columns": columns})[0] == 200
    write = {
        "changes": [{"relation": "posted", "rows": [[1, "a"], [2**53 - 1, "ü"]]}],
        "origin": {"writer": "h", "batch": 1},
    }
    status, done = post(server, "/transact", write)
    assert status == 200 and post(server, "/transact", write)[1] == done  # applied once
    status, rows = post(server, "/query", {"text": "posted", "arguments": [{"x": 1}]})
    assert status == 200 and rows["rows"] == [[1, "a"]] and rows["columns"] == columns
    assert post(server, "/sql", {"text": "SELECT count(*) AS n FROM posted"}, ADMIN)[1]["rows"] == [[2]]
    assert post(server, "/register", {"text": "twice(y) :- posted(x, _), y = x * 2."})[1] == {"names": ["twice"]}
    assert "twice" in post(server, "/explain", {"name": "twice"})[1]["text"]


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/transact", b"{", 400, "not JSON"),
        ("/transact", b"[]", 400, "not a JSON object"),
        ("/transact", b"\xff", 400, "not UTF-8"),
        ("/transact", {"changes": [], "colour": "red"}, 400, "no such member"),
        ("/query", {"text": "nothing_of_this_name"}, 404, "nothing_of_this_name"),
        ("/advance", {}, 405, "POST"),
        ("/shutdown", {}, 405, "POST"),
    ],
)
def test_a_bad_request_gets_a_status_and_a_reason(server, path, body, status, says):
    answered, reply = post(server, path, body)
    assert answered == status and says in json.dumps(reply)


def test_a_transaction_of_sql_does_not_outlive_its_request(server):
    post(server, "/sql", {"text": "CREATE TABLE tx (x int)"}, ADMIN)
    assert post(server, "/sql", {"text": "BEGIN; INSERT INTO tx VALUES (1)"}, ADMIN)[1]["in_transaction"]
    assert post(server, "/sql", {"text": "SELECT x FROM tx"}, ADMIN)[1]["rows"] == []


def test_a_web_page_of_another_site_cannot_write(server):
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        connection = connection_to(server)
        connection.request("POST", "/transact", b'{"changes": []}', headers=BEARER | headers)
        assert connection.getresponse().status == 403


def test_changes_come_as_events_and_continue_after_the_last_one_received(server, db):
    db.create_relation("streamed", {"x": int})
    db.insert("streamed", [(1,)])
    events = Events(server, "name=streamed")
    stream = iter(events)
    kind, interested = next(stream)
    assert kind == "interested" and interested["columns"] == [{"name": "x", "type": "int64"}]
    assert next(stream)[1]["rows"] == [[1]]
    db.insert("streamed", [(2,)])
    assert next(stream)[1]["rows"] == [[2]]
    events.close()
    db.insert("streamed", [(3,)])
    again = Events(server, "name=streamed", events.last)
    stream = iter(again)
    assert next(stream)[1]["resumed"] is True
    changes = next(stream)[1]
    assert changes["rows"] == [[3]] and changes["step"] == 3  # neither 1 nor 2 comes again
    again.close()


def test_past_the_bounds_events_begin_again_with_a_reset():
    with served(SessionLimits(hold_seconds=0.05)) as server:
        columns = [{"name": "x", "type": "int64"}]
        post(server, "/create_relation", {"name": "n", "columns": columns})
        post(server, "/transact", {"changes": [{"relation": "n", "rows": [[1]]}]})
        events = Events(server, "name=n")
        stream = iter(events)
        next(stream), next(stream)
        events.close()
        deadline = time.monotonic() + PATIENCE
        while server.hub.served.by_number and time.monotonic() < deadline:
            time.sleep(0.01)
        again = iter(Events(server, "name=n", events.last))
        assert "resumed" not in next(again)[1]
        assert next(again)[1]["reset"] is True


def test_events_need_a_token_a_name_and_an_id_of_this_server(server):
    connection = connection_to(server)
    connection.request("GET", "/changes?name=x")
    assert connection.getresponse().status == 401
    assert Events(server, "nam=x").status == 400
    assert Events(server, "name=nothing_of_this_name").status == 404
    assert Events(server, "name=x", "nonsense").status == 400


def test_arguments_of_events_are_json(server, db):
    db.create_relation("pair", {"x": int, "y": int})
    db.insert("pair", [(1, 2), (3, 4)])
    stream = iter(Events(server, "name=pair&arguments=%7B%22x%22%3A3%7D"))
    next(stream)
    assert next(stream)[1]["rows"] == [[3, 4]]


def test_a_query_ends_with_its_connection(server):
    """A client that goes away does not leave a session behind."""
    host, port = server.url.removeprefix("ws://").split(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall(
            f"GET /query?text=x&as_of=999999 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {USER}\r\n\r\n".encode()
        )
        wait_for(lambda: len(server.hub.clients) > 0)
    wait_for(lambda: not server.hub.clients)


def wait_for(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    "head",
    [
        "POST /transact HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n",
        "POST /transact HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n",
        "GET /healthz HTTP/1.1\r\nHost: x\r\n folded: y\r\n",
        "GET  /healthz HTTP/1.1\r\nHost: x\r\n",
        "GET /healthz HTTP/9.9\r\nHost: x\r\n",
        "\x00\x01\x02\r\n",
    ],
)
def test_a_request_that_could_be_read_in_two_ways_is_refused(server, head):
    host, port = server.url.removeprefix("ws://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
        line.sendall(f"{head}\r\n".encode())
        assert line.recv(4096).startswith(b"HTTP/1.1 400 ")


def fill_many(db) -> list[list[object]]:
    """Create a relation whose rows take 15 messages, and more than the buffers of a socket hold."""
    rows = [[x, "text " * 80] for x in range(30_000)]
    db.create_relation("many", {"x": int, "text": str})
    db.insert("many", rows)
    return rows


def test_many_rows_are_sent_as_their_client_reads_them(server, db, monkeypatch):
    """A client that does not read holds a session, and pages that are not made yet; one that is gone holds nothing."""
    expected = fill_many(db)
    status, reply = post(server, "/query", {"text": "many"})
    assert (status, list(reply)) == (200, ["columns", "rows", "time"]) and sorted(reply["rows"]) == expected
    assert post(server, "/query", {"text": "many", "limit": 3_000})[1]["cut"] is True
    sql = post(server, "/sql", {"text": "SELECT x, text FROM many ORDER BY x"}, ADMIN)[1]
    assert sql["rows"] == expected and sql["tag"] == "SELECT 30000"
    before = len(server.hub.clients)
    made: list[str] = []
    encode = http_endpoints.rows_json
    monkeypatch.setattr(http_endpoints, "rows_json", lambda rows: made.append(encode(rows)) or made[-1])
    silent = connection_to(server)
    silent.request("GET", "/query?text=many", headers=BEARER)
    wait_for(lambda: len(server.hub.clients) == before + 1)
    wait_for(lambda: made)
    for x in range(50):
        db.insert("many", [(-1 - x, "")])
    assert len(server.hub.clients) == before + 1
    assert len(made) < 13  # of 16 pages
    head = connection_to(server)
    head.request("HEAD", "/query?text=many", headers=BEARER)
    assert head.getresponse().status == 200
    silent.close()
    wait_for(lambda: len(server.hub.clients) == before)


@pytest.mark.parametrize("is_websocket", [True, False], ids=["WebSocket", "HTTP"])
def test_a_large_message_is_decoded_and_refused_outside_the_event_loop(server, is_websocket):
    """Its CPU time is that of another thread, also if the mistake is at its end."""
    rows = ",".join(f"[{x},{x}]" for x in range(200_000))
    text = f'{{"type":"transact","id":7,"changes":[{{"relation":"none","rows":[{rows},1]}}]}}'
    clock = time.pthread_getcpuclockid(server._thread.ident)

    def refused() -> dict:
        if is_websocket:
            with connect(server.url, max_size=None) as line:
                line.send(json.dumps({"type": "hello", "id": 0, "version": 1, "token": USER}))
                line.recv(PATIENCE)
                line.send(text)
                return json.loads(line.recv(PATIENCE))
        return post(server, "/transact", text.replace('"type":"transact","id":7,', "").encode())[1]

    began = time.clock_gettime(clock)
    reply = refused()
    used = time.clock_gettime(clock) - began
    assert "a row is a list of values" in json.dumps(reply) and reply.get("id") == (7 if is_websocket else None)
    began = time.thread_time()
    assert isinstance(decode_request(text), RefusedMessage)
    assert used < (time.thread_time() - began) / 2
