"""Tokens of tenants: namespaces and grants over the network, beside a client without a tenant."""

from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import kpg
from kpg.server.tokens import read_tokens, tokens_of
from tests.server.serving import ADMIN, served

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
