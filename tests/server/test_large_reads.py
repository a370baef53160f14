"""Large reads: the rows of one answer are decoded in parts, between which other requests run."""

import time

import numpy as np
import pyarrow as pa
import pytest

import kpg
from kpg.server.listener import encode
from tests.server.serving import USER, served

ROWS = 60_000
MAX_PART_CPU_SECONDS = 0.05  # of the engine's thread: about 2 ms, and 10 to 15 ms for all rows at once


@pytest.fixture(scope="module")
def server():
    with served() as running:
        with kpg.connect(running.url, token=USER) as db:
            db.create_relation("name", {"x": int, "text": str})
            db.insert("name", pa.table({"x": np.arange(ROWS), "text": [f"text {row}" for row in range(ROWS)]}))
            db.register("named(x, t) :- name(x, t).")
        yield running


@pytest.mark.parametrize("query", ["name", "named"])
def test_the_rows_of_a_read_are_decoded_in_parts(server, query, monkeypatch):
    requests = server.hub.engine._requests
    parts, switch = [], requests._switch

    def measured(request, error=None):
        began = time.thread_time()
        switch(request, error)
        parts.append(time.thread_time() - began)

    with kpg.connect(server.url, token=USER) as db:
        want = db.query(query, limit=ROWS)
        monkeypatch.setattr("kpg.api.waiting_requests.TURN_SECONDS", 0.0)
        monkeypatch.setattr(requests, "_switch", measured)
        assert db.query(query, limit=ROWS).sort_by("x").equals(want.sort_by("x"))
    assert len(parts) > ROWS >> 12
    assert max(parts) < MAX_PART_CPU_SECONDS * 4  # tests share their machine


def test_other_connections_are_served_between_two_messages_of_a_large_answer(server, monkeypatch):
    turns, sent, stopped = [0], [], []

    def count_turn():
        turns[0] += 1
        if not stopped:
            server.hub.loop.call_soon(count_turn)

    def encode_in_turn(message):
        sent.append(turns[0])
        return encode(message)

    monkeypatch.setattr("kpg.server.listener.encode", encode_in_turn)
    with kpg.connect(server.url, token=USER) as db:
        server.hub.loop.call_soon_threadsafe(count_turn)
        try:
            assert db.query("named", limit=ROWS).num_rows == ROWS
        finally:
            stopped.append(True)
    assert len(sent) > 5
    assert len(set(sent)) == len(sent)
