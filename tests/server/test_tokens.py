"""Tokens: their sources, their roles, and that error messages never contain them."""

import pytest

import kpg
from kpg.server.listener import ListenAddress
from kpg.server.running_server import Settings
from kpg.server.tokens import Tokens, read_tokens, tokens_of


def test_a_file_gives_each_token_its_role(tmp_path):
    (tmp_path / "tokens").write_text("# ours\n\nadmin aaaaaaaa1\nuser  bbbbbbbb2\n")
    known = read_tokens(tmp_path / "tokens")
    assert [known.role(token) for token in ("aaaaaaaa1", "bbbbbbbb2", "bbbbbbbb", None, "")] == [
        "admin", "user", None, None, None
    ]  # fmt: skip


WRONG = ["root sesame-sesame", "admin", "admin shrt1", "justatokenalone", "user with spaces-in-it"]


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_is_named_and_not_repeated(tmp_path, line):
    (tmp_path / "tokens").write_text(f"admin aaaaaaaa1\n{line}\n")
    with pytest.raises(kpg.InputError, match="tokens:2") as caught:
        read_tokens(tmp_path / "tokens")
    assert line == "admin" or line.split()[-1] not in str(caught.value)


def test_a_file_that_is_missing_or_empty_is_refused(tmp_path):
    with pytest.raises(kpg.Unavailable, match="cannot read the tokens"):
        read_tokens(tmp_path / "none")
    (tmp_path / "empty").write_text("# nothing\n")
    with pytest.raises(kpg.InputError, match="holds no token"):
        read_tokens(tmp_path / "empty")


def test_every_token_is_compared_even_after_a_match(monkeypatch):
    compared = []
    monkeypatch.setattr("kpg.server.tokens.hmac.compare_digest", lambda a, b: compared.append(a) or a == b)
    assert tokens_of([("admin", "first"), ("user", "second"), ("user", "third")]).role("first") == "admin"
    assert len(compared) == 3


def test_without_tokens_every_client_is_admin():
    assert Tokens().role(None) == "admin"


def test_beyond_this_machine_a_token_is_needed():
    with pytest.raises(kpg.InputError, match="listens on this machine alone"):
        Settings(address=ListenAddress(host="0.0.0.0"), open_to_all=True).resolve_tokens()


def test_a_token_comes_from_the_environment_or_is_generated(monkeypatch):
    monkeypatch.setenv("KPG_TOKEN", "from-the-environment")
    tokens, fresh = Settings().resolve_tokens()
    assert tokens.role("from-the-environment") == "admin" and fresh is None
    monkeypatch.delenv("KPG_TOKEN")
    tokens, fresh = Settings().resolve_tokens()
    assert tokens.role(fresh) == "admin" and tokens.role("") is None
