"""The HTTP endpoints: health, schema, metrics in Prometheus' format, one-shot queries, and errors with reasons."""

import contextlib
import http.client
import json
import re
from pathlib import Path

import jsonschema
import pytest

from kpg.server.server_metrics import SERVER_FAMILIES
from tests.server.serving import PATIENCE, USER, served

BEARER = {"Authorization": f"Bearer {USER}"}


def ask(server, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    """Status, type and body."""
    connection = http.client.HTTPConnection(server.url.removeprefix("ws://"), timeout=PATIENCE)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.headers["Content-Type"], answer.read().decode()


def test_readiness_needs_no_token(server, db):
    db.create_relation("healthy", {"x": int})
    time = db.insert("healthy", [(1,)])
    status, kind, body = ask(server, "/readyz")
    assert status == 200 and kind == "application/json"
    assert json.loads(body) == {"status": "ok", "time": time, "sessions": 1}


def test_a_process_that_responds_is_healthy(server):
    assert ask(server, "/healthz")[::2] == (200, '{"status":"ok"}\n')


def test_the_schema_is_given_out(server):
    status, _, body = ask(server, "/schema")
    assert status == 200
    jsonschema.Draft202012Validator.check_schema(json.loads(body))


def test_metrics_are_in_the_format_of_prometheus(server, db):
    db.ping()
    status, kind, body = ask(server, "/metrics", **BEARER)
    assert status == 200 and kind.startswith("text/plain; version=0.0.4")
    sample = re.compile(r'^[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? [0-9.e+-]+$')
    lines = body.splitlines()
    assert [line for line in lines if not (line.startswith(("# HELP ", "# TYPE ")) or sample.match(line))] == []
    samples = [line for line in lines if not line.startswith("#")]
    typed = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
    names = {re.split(r"[{ ]", line)[0] for line in samples}
    histograms = {name for name, kind in typed.items() if kind == "histogram"}
    assert {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")} <= names
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in names} == set(typed)
    assert "kpg_sessions 1.0" in samples and 'kpg_requests_total{outcome="ok",type="ping"} 1.0' in samples


def test_histograms_count_every_request_below_its_duration(server, db):
    for _ in range(5):
        db.ping()
    _, _, body = ask(server, "/metrics", **BEARER)
    counts = [
        (float(bound), float(value))
        for bound, value in re.findall(r'kpg_request_seconds_bucket\{type="ping",le="(.*)"\} (.*)', body)
    ] or [
        (float(bound), float(value))
        for bound, value in re.findall(r'kpg_request_seconds_bucket\{le="(.*)",type="ping"\} (.*)', body)
    ]
    assert counts == sorted(counts) and counts[-1][0] == float("inf") and counts[-1][1] >= 5
    total = re.search(r'kpg_request_seconds_count\{type="ping"\} (.*)', body)
    assert total is not None and float(total[1]) == counts[-1][1]


def test_a_reply_and_its_line_in_the_log_have_an_id(server, caplog):
    caplog.set_level("DEBUG", logger="kpg.server")
    connection = http.client.HTTPConnection(server.url.removeprefix("ws://"), timeout=PATIENCE)
    connection.request("GET", "/query?text=nothing", headers=BEARER)
    answer = connection.getresponse()
    id_ = answer.headers["X-Request-Id"]
    lines = [record for record in caplog.records if getattr(record, "members", {}).get("request") == id_]
    assert [(line.levelname, line.members["status"], line.members["path"]) for line in lines] == [
        ("INFO", 404, "/query")
    ]


def test_every_metric_is_on_the_page(server):
    page = (Path(__file__).parent.parent.parent / "docs" / "server.md").read_text()
    assert [name for name in SERVER_FAMILIES if f"`{name}`" not in page] == []


def test_a_query_is_answered_as_the_message_would_be(server, db):
    db.create_relation("asked", {"x": int, "name": str})
    time = db.insert("asked", [(1, "ann"), (2, "bob")])
    status, _, body = ask(server, "/query?text=asked&limit=1", **BEARER)
    assert status == 200
    assert json.loads(body) == {
        "columns": [{"name": "x", "type": "int64"}, {"name": "name", "type": "string"}],
        "rows": [[1, "ann"]], "time": time, "cut": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "method", "status", "says"),
    [
        ("/query?text=nothing_here", "GET", 404, "nothing_here"),
        ("/query", "GET", 400, "the member 'text' is missing"),
        ("/query?text=x&limit=many", "GET", 400, "limit is not a whole number"),
        ("/query?text=x&colour=red", "GET", 400, "no such member"),
        ("/nope", "GET", 404, "/healthz"),
        ("/query?text=x", "DELETE", 405, "the method DELETE is not supported"),
    ],
)
def test_errors_have_a_status_and_a_reason(server, path, method, status, says):
    answered, _, body = ask(server, path, method, **BEARER)
    assert answered == status and says in body


@pytest.mark.parametrize("size", [1, 5_000_000])
@pytest.mark.parametrize("method", ["POST", "PUT", "GET"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_with_a_body_gets_a_status(server, method, size, chunked):
    connection = http.client.HTTPConnection(server.url.removeprefix("ws://"), timeout=PATIENCE)
    body = iter([b"x" * size]) if chunked else b"x" * size
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may not read all before it answers
        connection.request(method, "/query?text=x", body, headers=BEARER, encode_chunked=chunked)
    answer = connection.getresponse()
    expected = {"GET": 413, "PUT": 405, "POST": 400}[method]
    assert answer.status == (411 if chunked and method != "GET" else expected) and answer.read()


@pytest.mark.parametrize("length", ["0", " 0 "])
def test_an_empty_body_is_none(server, length):
    assert ask(server, "/readyz", **{"Content-Length": length})[0] == 200


def test_without_a_token_a_site_that_is_made_to_point_here_gets_nothing():
    with served(open_to_all=True) as server:
        assert ask(server, "/readyz")[0] == 200
        assert ask(server, "/query?text=x", Host="evil.example:8340")[0] == 403
        assert ask(server, "/readyz", Host="[::1]:8340")[0] == ask(server, "/readyz", Host="localhost")[0] == 200


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": USER}])
@pytest.mark.parametrize("path", ["/metrics", "/query?text=x"])
def test_rows_and_metrics_need_a_token(server, path, headers):
    status, _, body = ask(server, path, **headers)
    assert status == 401 and "Bearer" in json.loads(body)["error"]["hint"]
