"""Sinks and the engine's events, asked for over the wire."""

import json

import pytest

import kpg
from tests.server.serving import ADMIN, PATHS, USER, served


@pytest.fixture
def admin(tmp_path):
    with served(sinks=tmp_path) as server, kpg.connect(server.url, token=ADMIN) as connection:
        connection.create_relation("edge", {"x": int, "y": int})
        connection.register(PATHS)
        yield connection


def test_changes_go_to_a_file_instead_of_the_socket(admin, tmp_path):
    """A13.7: an interest with a sink sends nothing over the connection."""
    number = admin.sink("path", "path.jsonl")
    t = admin.insert("edge", [(1, 2), (2, 3)])
    admin.remove("edge", [(1, 2)])
    admin.uninterest(number)
    lines = [json.loads(line) for line in (tmp_path / "path.jsonl").read_text().splitlines()]
    rows = [(tuple(line["row"].values()), line["time"], line["diff"]) for line in lines if "row" in line]
    assert sorted(rows) == [
        ((1, 2), t, 1), ((1, 2), t + 1, -1), ((1, 3), t, 1), ((1, 3), t + 1, -1), ((2, 3), t, 1)
    ]  # fmt: skip


def test_a_log_of_latencies_has_a_line_for_each_epoch(admin, tmp_path):
    """A13.5: milliseconds since the epoch before, for each that is closed; changes are swallowed."""
    number = admin.sink("path", "path.log", type="latency", log=False)
    for k in range(3):
        admin.insert("edge", [(k, k + 1)])
        admin.query("path")  # waits until the answer includes the write, so that the next one has a line of its own
    admin.uninterest(number)
    figures = (tmp_path / "path.log").read_text().splitlines()
    assert len(figures) >= 3 and all(float(figure) >= 0 for figure in figures)


@pytest.mark.parametrize("path", ["../path.log", "/path.log", "a/b", ".."])
def test_a_sink_stays_in_its_directory(admin, path):
    with pytest.raises(kpg.InputError, match="not the name of a file"):
        admin.sink("path", path)


def test_without_a_directory_there_are_no_sinks_and_users_have_none(tmp_path):
    with served() as server, kpg.connect(server.url, token=ADMIN) as db, kpg.connect(server.url, token=USER) as user:
        db.create_relation("edge", {"x": int})
        with pytest.raises(kpg.Unavailable, match="switched off"):
            db.sink("edge", "edge.log")
        with pytest.raises(kpg.NotAuthorised):
            user.sink("edge", "edge.log")
        with pytest.raises(kpg.NotAuthorised):
            user.observe()


def test_events_of_the_engine_are_attributes_that_clients_ask_about(admin):
    """A14.3: register source."""
    names = admin.observe([":timely.event.operates/name"])
    assert names == (":timely.event.operates/name",)
    admin.interest("path")
    admin.insert("edge", [(1, 2)])
    admin.advance()
    assert admin.query(names[0]).num_rows > 0
