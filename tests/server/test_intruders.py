"""Hostile clients: their requests cost little, read no file, and reach no other tenant."""

import json
import socket
import threading
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import kpg
from kpg.errors import OverLimit
from kpg.observe.sinks import open_sink
from kpg.protocol.message_codec import read
from kpg.server.session_limits import SessionLimits
from kpg.service.templates import TOKEN
from tests.server.serving import PATIENCE, USER, served
from tests.server.test_bad_clients import closing, greeted, said, stranger


def fetched(server, path, **headers):
    """A page as the user's token gets it."""
    web = server.url.replace("ws", "http", 1)
    with urlopen(Request(web + path, headers={"Authorization": f"Bearer {USER}", **headers}), timeout=PATIENCE) as page:
        return page.read()


def test_a_member_given_twice_among_many_is_found_in_one_pass():
    members = ",".join(f'"{number}":0' for number in range(50_000))
    began = time.process_time()
    with pytest.raises(kpg.ProtocolError, match="'49999' is given twice"):
        read(f'{{{members},"49999":1}}')
    assert time.process_time() - began < 5  # it was a minute and more


def test_of_a_stranger_nothing_large_is_read(server):
    with stranger(server) as connection:
        connection.send(json.dumps({"type": "hello", "id": 0, "version": 1, "token": "x" * 20_000}))
        assert said(connection)["failure"]["error"] == "ResourceError"
        assert closing(connection) == 1009


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\udc00\ud800"])
def test_half_a_surrogate_pair_is_refused(server, db, text):
    with stranger(server) as connection:
        greeted(connection)
        column = {"name": "x", "type": "int64"}
        connection.send(json.dumps({"type": "create_relation", "id": 1, "name": text, "columns": [column]}))
        assert said(connection)["failure"]["what"] == "$: a text holds half of a character"
        connection.send(json.dumps({"type": "query", "id": 2, "text": "\U0001f600"}))  # two escapes, one character
        assert said(connection)["failure"]["error"] == "UndefinedName"
    assert isinstance(db.catalog(), list | tuple)


@pytest.mark.parametrize("language", ["register", "query"])
def test_a_text_of_a_client_reads_no_file_of_the_server(db, tmp_path, language):
    secret = tmp_path / "tokens.txt"
    secret.write_text("admin the-secret-of-the-admin\n")
    for text in (f'.include "{secret}"', f'#include "{secret}"'):
        with pytest.raises(kpg.ParseError) as caught:
            db.register(text) if language == "register" else db.query(text, language="datalog")
        assert caught.value.what.endswith("files are not included here")
        assert "the-secret" not in str(caught.value)


@pytest.mark.parametrize("directive", [
    '.input r(filename="FILE")', '.input r(IO=sqlite, dbname="FILE")', '.output p(filename="FILE")',
    ".output p(IO=stdout)",
    '.comp C { .decl s(x: symbol) .input s(filename="FILE") }\n.init c = C',
])  # fmt: skip
def test_a_text_of_a_client_names_no_file_of_the_server(db, tmp_path, directive):
    file = tmp_path / "tokens.txt"
    text = f".decl r(x: symbol)\n{directive.replace('FILE', str(file))}\n.decl p(x: symbol)\np(x) :- r(x).\n"
    with pytest.raises(kpg.ParseError, match="no files are read or written"):
        db.register(text)
    assert not file.exists()


def test_the_token_of_another_tenant_cannot_be_forged(db):
    with pytest.raises(kpg.SchemaMismatch, match="cannot be the name of a column"):
        db.create_relation("forged", {TOKEN: int, "x": int})


@pytest.mark.parametrize("name", ["a\nb", "a\x00b", "\x1b[2J"])
def test_names_have_no_control_characters(db, name):
    with pytest.raises(kpg.SchemaMismatch):
        db.create_relation(name, {"x": int})
    with pytest.raises(kpg.SchemaMismatch):
        db.create_relation("controlled", {name: int})


def test_a_name_too_long_for_a_message_is_refused_and_the_catalogue_can_still_be_listed(db):
    db.create_relation("short", {"x": int})
    for text in (f"{'a' * 1_001}(x) :- short(x).", f"q({'x' * 1_001}) :- short({'x' * 1_001})."):
        with pytest.raises(kpg.ParseError, match="cannot be a name"):
            db.register(text)
    db.catalog()


def test_a_text_nested_too_deep_is_an_error_of_the_text(db):
    db.create_relation("short", {"x": int})
    with pytest.raises(kpg.ParseError, match="deep"):
        db.register(f"deep(x) :- short(x), x = {'(' * 50_000}1{')' * 50_000}.")


def test_a_text_too_long_is_refused_before_it_delays_other_clients(db):
    began = time.process_time()
    for text in ("".join(f"f({number}).\n" for number in range(20_000)), "f(1).\n" * 200_000):
        with pytest.raises(OverLimit, match="a text"):
            db.register(text)
    assert time.process_time() - began < 10  # it was a minute and more


def test_a_text_that_doubles_each_round_fails_before_it_fills_the_memory(db):
    db.create_relation("seed", {"s": str})
    db.insert("seed", [("0123456789",)])
    db.register("bomb(s) :- seed(s). bomb(t) :- bomb(s), t = cat(s, s).")
    with pytest.raises(kpg.DataError, match="text longer than 16,777,216"):
        db.query("bomb", limit=1)
    db.register("wide(t) :- seed(s), t = cat(s, s).")
    assert db.query("wide").to_pylist() == [{"t": "01234567890123456789"}]


def test_a_reader_who_gave_up_before_its_time_came_does_not_end_the_engine(server, db):
    engine = server.hub.engine
    gate = threading.Event()
    engine.run(lambda service: gate.wait())  # so that it cannot be done with the first before that is cancelled
    assert engine.run_as_of(10**9, 0.0, lambda service: None).cancel()
    waits = engine.run_as_of(10**9, 0.1, lambda service: None)  # due after that one
    gate.set()
    with pytest.raises(kpg.TimeNotReached):
        waits.result(PATIENCE)
    db.ping()


def test_a_page_that_waits_for_a_time_says_so_before_its_connection_is_cut():
    with (
        served(SessionLimits(greeting_seconds=1.0, wait_seconds=3.0)) as server,
        kpg.connect(server.url, token=USER) as db,
    ):
        db.create_relation("edge", {"x": int})
        with pytest.raises(HTTPError) as caught:
            fetched(server, "/query?text=edge&as_of=99")
        assert caught.value.code == 503


def test_a_number_of_the_address_that_is_too_long_is_the_asker_s_mistake(server):
    with pytest.raises(HTTPError) as caught:
        fetched(server, f"/query?text=edge&limit={'9' * 5_000}")
    assert caught.value.code == 400


def test_a_page_of_another_site_cannot_cause_work(server):
    assert fetched(server, "/readyz", **{"Sec-Fetch-Site": "none"})
    with pytest.raises(HTTPError) as caught:
        fetched(server, "/readyz", **{"Sec-Fetch-Site": "cross-site"})
    assert caught.value.code == 403


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "a\x00b", "x" * 900, "."])
def test_a_sink_is_a_file_of_its_directory_or_refused(tmp_path, name):
    with pytest.raises(kpg.InputError, match="is not the name of a file"):
        open_sink({"type": "file", "path": name}, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "head",
    [
        "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nAuthorization: Bearer y\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nUpgrade: websocket\r\n",
        "GET /readyz HTTP/1.1\r\nHost: x\r\nHost: y\r\n",
        "GET http://[bad/metrics HTTP/1.1\r\nHost: x\r\n",
    ],
)
def test_a_request_of_two_meanings_is_refused_as_bad(server, head):
    host, port = server.url.removeprefix("ws://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(f"{head}\r\n".encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")
