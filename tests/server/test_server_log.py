"""The log of a server: one object or line for each record, with members, and nothing below its level."""

import json
import logging

import pytest

from kpg.server.server_log import LOGGER, LogSettings, begin_log, log


@pytest.fixture(autouse=True)
def restored_loggers():
    root = logging.getLogger("kpg")
    state = root.handlers[:], root.level, root.propagate
    yield
    root.handlers[:], root.propagate = state[0], state[2]
    root.setLevel(state[1])


def fail() -> None:
    try:
        raise ValueError("a bug")
    except ValueError:
        LOGGER.exception("a request failed", extra={"members": {"request": "7-3"}})


def test_lines_of_json_have_members(capsys):
    begin_log(LogSettings("info", "json"))
    log(logging.DEBUG, "not shown", request="1-1")
    log(logging.INFO, "request", request="7-2", outcome="ok", seconds=0.25)
    fail()
    first, second = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert first.pop("time").endswith("Z")
    assert first == {"level": "info", "message": "request", "request": "7-2", "outcome": "ok", "seconds": 0.25}
    assert second["level"] == "error" and second["request"] == "7-3" and "ValueError: a bug" in second["error"]


def test_lines_of_text_are_for_people(capsys):
    begin_log(LogSettings("warning", "text"))
    log(logging.INFO, "not shown")
    log(logging.WARNING, "look here", sessions=2)
    fail()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].split(" ", 1)[1] == "warning look here sessions=2"
    assert "error a request failed request=7-3" in lines[1] and lines[-1] == "ValueError: a bug"
