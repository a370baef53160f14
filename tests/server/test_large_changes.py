"""Large changes of an interest: they are taken in parts, between which other requests run, and none is lost."""

import threading

import numpy as np
import pyarrow as pa
import pytest

import kpg
from tests.server.serving import PATIENCE, USER, served

ROWS = 40_000
PARTS = ROWS >> 12  # at least, in which rows are decoded


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request):
    with served(workers=request.param) as running:
        with kpg.connect(running.url, token=USER) as db:
            db.create_relation("name", {"x": int, "text": str})
            db.insert("name", pa.table({"x": np.arange(ROWS), "text": [f"text {row}" for row in range(ROWS)]}))
            db.register("named(x, t) :- name(x, t).")
        yield running


@pytest.fixture
def turns(server, monkeypatch):
    """Return a list that grows with each turn of a request; every pause ends a turn."""
    requests, turns = server.hub.engine._requests, []
    switch = requests._switch

    def counted(request, error=None):
        turns.append(request.session)
        switch(request, error)

    monkeypatch.setattr("kpg.api.waiting_requests.TURN_SECONDS", 0.0)
    monkeypatch.setattr(requests, "_switch", counted)
    return turns


def add(counts, changes):
    """Add changes to the count of each row."""
    for row, _, diff in changes:
        counts[row] = counts.get(row, 0) + diff
        if not counts[row]:
            del counts[row]


def test_large_changes_are_taken_in_turns_of_a_request(server, turns):
    with kpg.connect(server.url, token=USER) as db:
        interest = db.interest("named")
        assert len(interest.next(PATIENCE)) == ROWS
        assert turns.count(None) > PARTS, "the changes were decoded outside of a request that can be left"
        interest.close()


def test_changes_that_arrive_while_others_are_taken_follow_them(server, turns):
    with kpg.connect(server.url, token=USER) as db, kpg.connect(server.url, token=USER) as other:
        interest, counts = db.interest("named"), {}

        def write():
            for number in range(20):
                other.insert("name", [(-1 - number, "new")])
                other.remove("name", [(number, f"text {number}")])

        writer = threading.Thread(target=write)
        writer.start()
        add(counts, interest.next(PATIENCE))
        writer.join()
        want = {(row["x"], row["t"]): 1 for row in other.query("named", limit=2 * ROWS).to_pylist()}
        while counts != want:
            add(counts, interest.next(PATIENCE))
        interest.close()
        for number in range(20):
            other.remove("name", [(-1 - number, "new")])
            other.insert("name", [(number, f"text {number}")])


def test_a_client_that_asks_for_the_rows_gets_those_that_are_being_taken_first(server, turns):
    with kpg.connect(server.url, token=USER) as db:
        interest = db.interest("named")
        db.insert("name", [(-1, "mine")])
        rows = interest.rows()
        assert len(rows) == len(set(rows)) == ROWS + 1 and (-1, "mine") in rows
        interest.close()
        db.remove("name", [(-1, "mine")])


def test_changes_that_were_taken_for_a_request_that_was_cancelled_are_not_lost(server, turns, monkeypatch):
    """A session that ends takes its request with it, in the middle of the changes; another continues the interest."""
    engine = server.hub.engine
    service = engine._service
    with kpg.connect(server.url, token=USER):  # so that the module's relations stay
        interest = engine.run(lambda service: service.interest("named", owner=1_000_000)).result(PATIENCE)
        failures = []

        def take(service):
            try:
                return engine.take(interest)
            except kpg.Closed as error:
                failures.append(error)
                raise

        taking = engine.run(take, session=1_000_000)
        cancelled = []

        def cancel(service):
            while not cancelled:
                if interest.id in engine._taking and turns.count(1_000_000) > 3:
                    cancelled.append(True)
                    engine.cancel(1_000_000)
                service.db.pause_request()

        engine.run(cancel).result(PATIENCE)
        with pytest.raises(kpg.Closed):
            taking.result(PATIENCE)
        assert failures and interest.waiting == ROWS
        assert engine.run(lambda service: engine.take(interest)).result(PATIENCE).table.num_rows == ROWS
        engine.run(lambda service: service.uninterest(interest)).result(PATIENCE)
    assert service.interests.get(interest.id) is None
