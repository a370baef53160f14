"""Tokens of tenants: namespaces and grants over the network, beside a client without a tenant."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import kpg
from kpg.server.tokens import read_tokens, tokens_of
from kpg.service import Service
from kpg.service.planner_process import PlannerProcess
from tests.server.serving import ADMIN, PATIENCE, USER, served

ACME, GLOBEX = "the-token-of-acme", "the-token-of-globex"
TOKENS = tokens_of([("admin", ADMIN), ("user", ACME, "acme"), ("user", GLOBEX, "globex")])


def test_tenants_share_what_they_grant_and_nothing_else() -> None:
    with (
        served(tokens=TOKENS) as server,
        kpg.connect(server.url, token=ACME) as acme,
        kpg.connect(server.url, token=GLOBEX) as globex,
        kpg.connect(server.url, token=ADMIN) as admin,
    ):
        acme.create_relation("acme_data", {"x": int})
        acme.insert("acme_data", [(1,)])
        with pytest.raises(kpg.UndefinedName):
            globex.query("acme_data")
        with pytest.raises(kpg.NotAuthorised, match="namespace"):
            globex.create_relation("data", {"x": int})
        assert [entry.name for entry in globex.catalog()] == []
        acme.grant("acme_data", "globex", "read")
        follows = globex.interest("acme_data")
        assert follows.rows() == [(1,)]
        with pytest.raises(kpg.NotAuthorised, match="may not write"):
            globex.insert("acme_data", [(2,)])
        admin.insert("acme_data", [(3,)])
        assert sorted(follows.rows()) == [(1,), (3,)]
        acme.revoke("acme_data", "globex", "read")
        with pytest.raises(kpg.UndefinedName):
            globex.query("acme_data")

        def status(token: str, page: str, text: str) -> int:
            url = server.url.replace("ws", "http", 1) + page
            try:
                with urlopen(Request(url, headers={"Authorization": f"Bearer {token}"})) as reply:
                    assert text in reply.read().decode()
                    return int(reply.status)
            except HTTPError as error:
                assert text not in error.read().decode()
                return error.code

        pages = {"/query?text=acme_data": "[[1],[3]]", "/metrics": "acme_data"}
        statuses = {
            page: [status(token, page, text) for token in (ADMIN, ACME, GLOBEX)] for page, text in pages.items()
        }
        assert statuses == {"/query?text=acme_data": [200, 200, 404], "/metrics": [200, 401, 401]}


def limit_memory(db: Any, limit: int | None) -> None:
    """On a worker: set the limit of its memory."""
    db.memory.limit = limit


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_memory_names_the_largest_relations_to_no_tenant(workers: int) -> None:
    def set_limit(limit: int | None) -> Callable[[Service], object]:
        where = f"{limit_memory.__module__}:{limit_memory.__name__}"
        if workers == 1:
            return lambda service: limit_memory(service.db, limit)
        return lambda service: service.db.call_workers(where, limit=limit)

    with (
        served(tokens=TOKENS, workers=workers) as server,
        kpg.connect(server.url, token=ACME) as acme,
        kpg.connect(server.url, token=GLOBEX) as globex,
        kpg.connect(server.url, token=ADMIN) as admin,
    ):
        acme.create_relation("acme_hidden", {"x": int})
        acme.insert("acme_hidden", [(x,) for x in range(1_000)])
        globex.create_relation("globex_data", {"x": int})
        globex.insert("globex_data", [(1,)])
        globex.register("globex_rule(x, y) :- globex_data(x), y = x + 1.")
        follows = globex.interest("globex_rule")
        follows.rows()
        server.hub.engine.run(set_limit(1)).result(PATIENCE)
        seen = []
        for ask in (
            lambda db: db.query("globex_rule"),
            lambda db: db.query("globex_data"),
            lambda db: db.interest("globex_rule", arguments={"x": 1}).rows(),
            lambda db: db.insert("globex_data", [(2,)]),
            lambda db: follows.rows(),
        ):
            try:
                ask(globex)
            except kpg.KpgError as error:
                seen.append(str(error))
            try:
                ask(admin)
            except kpg.KpgError as error:
                seen.append(f"admin: {error}")
        server.hub.engine.run(set_limit(None)).result(PATIENCE)
        assert any("over the memory limit" in text for text in seen if not text.startswith("admin"))
        assert any("acme_hidden" in text for text in seen)  # to whoever may read it
        assert not [text for text in seen if "acme_hidden" in text and not text.startswith("admin")]


def test_a_token_file_names_tenants(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"admin {ADMIN}\nuser {ACME} acme\nuser some-other-token\n")
    tokens = read_tokens(tmp_path / "tokens")
    holders = [tokens.holder(token) for token in (ADMIN, ACME, "some-other-token")]
    assert [(holder.role, holder.tenant) for holder in holders if holder] == [
        ("admin", None), ("user", "acme"), ("user", None),
    ]  # fmt: skip
    for line in ("user the-token-of-x a_b", "admin the-token-of-x acme", "user the-token-of-x 1a"):
        (tmp_path / "tokens").write_text(line + "\n")
        with pytest.raises(kpg.InputError, match="tokens:1"):
            read_tokens(tmp_path / "tokens")


def test_long_texts_of_one_token_are_planned_in_the_turns_of_one_user(monkeypatch: pytest.MonkeyPatch) -> None:
    users: list[object] = []
    submit = PlannerProcess.submit

    def record(planner: PlannerProcess, *arguments: Any) -> Any:
        users.append(arguments[-1])
        return submit(planner, *arguments)

    monkeypatch.setattr(PlannerProcess, "submit", record)
    tokens = tokens_of([("admin", ADMIN), ("user", USER), ("user", ACME, "acme"), ("user", GLOBEX, "globex")])
    with served(tokens=tokens) as server:
        names = ("a", "b", "c", "acme_a", "acme_b", "globex_a")
        for name, token in zip(names, (ADMIN, USER, USER, ACME, ACME, GLOBEX), strict=True):
            with kpg.connect(server.url, token=token) as client:
                client.register(" ".join(f"{name}({number})." for number in range(500)))
    admin, first, second, acme, again, globex = users
    assert first == second != admin and acme == again != globex
    assert len(set(users)) == 4


def test_without_tokens_each_session_is_a_user_of_its_own() -> None:
    assert tokens_of([]).holder(None).user is None
    with kpg.open() as db:
        planner = Service(db).planner
        with planner.serving_user(None), planner.serving(7):
            assert planner.user == ("client", 7)
