"""`kpg serve` as a process of its own: what it prints, that it ends in good order, and what it refuses."""

import re
import signal

import pytest

import kpg
from kpg.cli import main, make_parser
from tests.server.serving import PATIENCE, USER, served
from tests.server.serving_process import TOKEN, process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_order(number, tmp_path):
    """Connections are closed, acknowledged transactions are on disk, the exit status is 0."""
    with process(str(tmp_path / "db")) as (server, url):
        db = kpg.connect(url, token=TOKEN, reconnect=0)
        db.create_relation("edge", {"x": int})
        db.register("twice(y) :- edge(x), y = x * 2.")
        db.insert("edge", [(7,)])
        server.send_signal(number)
        with pytest.raises((kpg.Unreachable, kpg.Closed), match="the server is shutting down"):
            while True:
                db.ping()
        out, err = server.communicate(timeout=PATIENCE)
        assert server.returncode == 0 and "ending: closing connections" in out and not err
    with served(directory=tmp_path / "db") as server, kpg.connect(server.url, token=USER) as db:
        assert [entry.name for entry in db.catalog() if entry.role == "rule"] == ["twice"]
        assert db.query("twice").to_pylist() == [{"y": 14}]


def test_a_new_token_is_printed_once_and_works():
    with process(token="") as (server, url):
        lines = [next(server.stdout) for _ in range(4)]
        assert f"kpg: console: {url.replace('ws', 'http', 1)}/\n" in lines
        (token,) = [match[1] for line in lines if (match := re.search(r"token \(shown once\): (\S+)", line))]
        with pytest.raises(kpg.NotAuthorised):
            kpg.connect(url, token="another-token")
        with kpg.connect(url, token=token) as db:
            db.shutdown()
        server.communicate(timeout=PATIENCE)
        assert server.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--host", "0.0.0.0", "--no-token"], "listens on this machine alone"),
        (["--token-file", "no-such-file"], "cannot read the tokens"),
        (["--tls-cert", "cert.pem"], "both a certificate and its key"),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_hint(arguments, says, capsys, monkeypatch):
    monkeypatch.delenv("KPG_TOKEN", raising=False)
    assert main(["serve", "--port", "0", *arguments]) == 1
    assert says in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(server, capsys):
    port = server.url.rsplit(":", 1)[1]
    assert main(["serve", "--no-token", "--port", port]) == 1
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
    assert main(["serve", "--no-token", "--port", "0", "--pg", port]) == 1
    said = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port}" in said and "--pg" in said


@pytest.mark.parametrize("option", ["--port", "--pg"])
def test_a_port_out_of_range_is_refused(option, capsys):
    with pytest.raises(SystemExit):
        main(["serve", option, "99999"])
    assert f"{option}: must be between 0 and 65535" in capsys.readouterr().err


def test_the_help_teaches_by_examples(capsys):
    with pytest.raises(SystemExit):
        make_parser().parse_args(["serve", "--help"])
    shown = capsys.readouterr().out
    assert "kpg serve --token-file" in shown and "--max-rows" in shown and "SIGTERM" in shown
