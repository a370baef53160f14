"""`kpg serve --config`: every option has a key, values are checked, and the command line takes precedence."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

import kpg
from kpg.cli import make_parser
from kpg.server.config_file import read_config
from kpg.server.serve_command import DEFAULTS, LIMITS, add_options, settings_of

FILE = """
directory = "data"
[address]
host = "0.0.0.0"
port = 9000
tls-cert = "cert.pem"
tls-key = "/etc/key.pem"
origin = ["https://a.example", "https://b.example"]
[access]
token-file = "tokens"
no-token = false
[limits]
max-rows = 7
max_session_kept_rows = 9
[engine]
workers = 3
history = 4
max-lag = 5
sinks = "sinks"
functors = "functors.py"
[operation]
log-level = "info"
log-format = "json"
shutdown-seconds = 8
"""


def settings(*arguments: str):
    return settings_of(make_parser().parse_args(["serve", *arguments]))


def test_a_file_sets_what_the_command_line_does_not(tmp_path):
    path = tmp_path / "kpg.toml"
    path.write_text(FILE)
    read = settings("--config", str(path), "--port", "8340", "--max-pending", "3")
    assert read.directory == tmp_path / "data" and read.token_file == tmp_path / "tokens"
    assert (read.address.host, read.address.port) == ("0.0.0.0", 8340)
    assert read.address.tls_cert == tmp_path / "cert.pem" and read.address.tls_key == Path("/etc/key.pem")
    assert read.address.origins == ("https://a.example", "https://b.example")
    assert read.session_limits.rows == 7 and read.session_limits.pending == 3
    assert read.limits.session.kept_rows == 9
    assert (read.workers, read.history, read.max_lag, read.shutdown_seconds) == (3, 4, 5, 8)
    assert (read.log.level, read.log.format) == ("info", "json")
    assert settings(str(tmp_path / "other"), "--config", str(path)).directory == tmp_path / "other"


def test_bytes_may_have_a_unit(tmp_path):
    path = tmp_path / "kpg.toml"
    path.write_text('max-message-bytes = "32M"\nmax-hold-bytes = 1000')
    read = settings("--config", str(path), "--max-memory", "8G")
    assert (read.session_limits.message_bytes, read.session_limits.hold_bytes) == (32 << 20, 1000)
    assert read.memory == read.limits.memory == 8 << 30


def test_every_option_has_a_key_and_a_default(tmp_path):
    parser = argparse.ArgumentParser(add_help=False)
    add_options(parser)
    options = {action.dest for action in parser._actions} - {"config"}
    assert options == DEFAULTS.keys() | {f"max_{name.replace('-', '_')}" for name, *_ in LIMITS}
    path = tmp_path / "kpg.toml"
    lines = [f"{name.replace('_', '-')} = {example(name)}" for name in sorted(options)]
    path.write_text("\n".join(lines))
    assert read_config(path, add_options).keys() == options
    path.write_text("")
    assert without_memory(settings("--config", str(path))) == without_memory(settings())


def without_memory(read):
    """Settings without the limit that follows the free memory of the moment."""
    return replace(read, memory=None, limits=replace(read.limits, memory=None))


def example(name: str) -> str:
    words = {"log_level": '"debug"', "log_format": '"text"', "origin": '["https://a.example"]', "no_token": "true"}
    texts = ("directory", "host", "tls_cert", "tls_key", "token_file", "pg_users", "spark", "sinks", "functors")
    return words.get(name, '"x"' if name in texts else "7")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prt = 1", "unknown setting 'prt'"),
        ("config = 'other.toml'", "unknown setting 'config'"),
        ("port = 'x'", "port in .* cannot be 'x'"),
        ("port = [1]", "port in .* takes one value"),
        ("port = true", "port in .* cannot be True"),
        ("port = 65536", "port in .* cannot be 65536"),
        ("pg = -1", "pg in .* cannot be -1"),
        ("max-memory = '8 G B'", "max-memory in .* cannot be '8 G B'"),
        ("max-rows = 0", "max-rows in .* cannot be 0"),
        ("no-token = 1", "no-token in .* must be true or false"),
        ("origin = 'https://a.example'", "origin in .* takes a list"),
        ("log-level = 'loud'", "log-level in .* cannot be 'loud'"),
        ("port = ", "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path, text, message):
    path = tmp_path / "kpg.toml"
    path.write_text(text)
    with pytest.raises(kpg.InputError, match=message):
        settings("--config", str(path))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(kpg.Unavailable, match="nothing.toml"):
        settings("--config", str(tmp_path / "nothing.toml"))
