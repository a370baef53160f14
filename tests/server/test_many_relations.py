"""A server with many rules and relations: others are served while one client lists them all."""

import json
import threading
from urllib.request import Request, urlopen

import pytest

import kpg
from kpg.protocol.message_codec import encode
from kpg.server import listener, request_handlers
from tests.server.serving import PATIENCE, USER, served

RULES = 1_000


def fill(service):
    service.create_relation("base", {"x": int, "y": int})
    for first in range(0, RULES, 50):
        service.register(" ".join(f"r{number}(x) :- base(x, _)." for number in range(first, first + 50)))


@pytest.fixture(scope="module")
def server():
    with served() as server:
        server.hub.engine.run(fill).result(PATIENCE)
        yield server


def test_the_catalogue_is_listed_in_parts_and_written_on_another_thread(server, monkeypatch):
    pauses, writers = [], []
    monkeypatch.setattr(request_handlers, "pause", lambda: pauses.append(threading.current_thread().name))

    def recording(message):
        writers.append((message.kind, threading.current_thread().name))
        return encode(message)

    monkeypatch.setattr(listener, "encode", recording)
    with kpg.connect(server.url, token=USER) as db:
        listed = {relation.name: relation for relation in db.catalog()}
    assert {f"r{number}" for number in range(RULES)} | {"base", "sys_rule"} <= listed.keys()
    assert listed["r7"].role == "rule" and listed["base"].role == "relation"
    assert [column.name for column in listed["base"].columns] == ["x", "y"]
    assert len(pauses) >= len(listed) // request_handlers.RELATIONS_PER_PAUSE
    [writer] = [thread for kind, thread in writers if kind == "catalogued"]
    assert writer.startswith("kpg-decoder")
    others = {thread for kind, thread in writers if kind != "catalogued"}
    assert others and not any(thread.startswith("kpg-decoder") for thread in others)


def test_the_catalogue_over_http_is_the_same(server):
    web = server.url.replace("ws", "http", 1)
    headers = {"Authorization": f"Bearer {USER}"}
    reply = json.load(urlopen(Request(f"{web}/catalog", b"{}", headers), timeout=PATIENCE))
    with kpg.connect(server.url, token=USER) as db:
        assert [relation["name"] for relation in reply["relations"]] == [relation.name for relation in db.catalog()]


def test_rules_that_are_defined_while_the_catalogue_is_listed_do_not_disturb_it(server, monkeypatch):
    with kpg.connect(server.url, token=USER) as db, kpg.connect(server.url, token=USER) as other:
        before = [relation.name for relation in db.catalog()]
        defined = []

        def define():
            if not defined:  # on the engine's thread, as another request would at a pause
                defined.append(server.hub.engine)
                service = fill_service[0]
                service.register("zz(x) :- base(x, _).")
                service.unregister("r1")

        fill_service = []
        server.hub.engine.run(fill_service.append).result(PATIENCE)
        monkeypatch.setattr(request_handlers, "pause", define)
        assert [relation.name for relation in db.catalog()] == before
        monkeypatch.undo()
        after = {relation.name for relation in other.catalog()}
        assert "zz" in after and "r1" not in after


def test_the_catalogue_can_be_queried_and_followed(server):
    with kpg.connect(server.url, token=USER) as db:
        rows = db.query("sys_rule").num_rows
        answer = db.interest("sys_column")
        columns = len(answer.rows())
        db.register("followed(a, b) :- base(a, b).")
        assert db.query("sys_rule").num_rows == rows + 1
        assert len(answer.rows()) == columns + 2
        db.unregister("followed")
        assert len(answer.rows()) == columns
