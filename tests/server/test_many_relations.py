"""A server with many rules and relations: others are served while one client lists them all."""

import json
from urllib.request import Request, urlopen

import pytest

import kpg
from kpg.protocol.message_codec import encode_result
from kpg.server import hub, request_handlers
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


def test_the_catalogue_is_listed_and_written_in_parts(server, monkeypatch):
    pauses, written = [], []
    monkeypatch.setattr(request_handlers, "pause", lambda: pauses.append(1))

    def recording(relations):
        written.append(len(relations))
        return encode_result(relations)

    monkeypatch.setattr(hub, "encode_result", recording)
    with kpg.connect(server.url, token=USER) as db:
        listed = {relation.name: relation for relation in db.catalog()}
    assert {f"r{number}" for number in range(RULES)} | {"base", "sys_rule"} <= listed.keys()
    assert listed["r7"].role == "rule" and listed["base"].role == "relation"
    assert [column.name for column in listed["base"].columns] == ["x", "y"]
    assert len(pauses) >= len(listed) // request_handlers.RELATIONS_PER_PAUSE
    assert sum(written) == len(listed) and max(written) <= hub.RELATIONS_PER_PART


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
