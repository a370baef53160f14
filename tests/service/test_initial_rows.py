"""The first rows of an interest are read in parts, while the answer changes, interests come and go, and workers die."""

import os
import signal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kpg
from kpg.api.waiting_requests import WaitingRequests
from kpg.cluster import cluster_reads
from kpg.cluster.cluster_output import ClusterOutput
from kpg.service import Change, Limits, Service

ROWS = 120
PART = 10
KEYS = 12


class Served:
    """A service whose requests a test runs turn by turn, as the engine's thread of a server does."""

    def __init__(self, db):
        self.db, self.requests = db, WaitingRequests()
        db.serve_requests(self.requests)
        self.service = Service(db, limits=Limits(waiting_rows=50))
        self.service.create_relation("number", {"x": int, "text": str})
        self.service.register("present(t, x) :- number(x, t).")
        self.rows = set()

    def start(self, function):
        """Begin a request; return the list that gets its result."""
        results = []
        self.requests.start(lambda: results.append(function()), "client")
        return results

    def turn(self):
        """Let each request that can continue do so once."""
        self.requests.resume(idle=not self.db.work())

    def run(self, function):
        results = self.start(function)
        while not results:
            self.turn()
        return results[0]

    def write(self, keys):
        """Insert rows that are not there, and remove those that are."""
        rows = {(key, f"text {key % 3}") for key in keys}
        changes = [Change("number", row, -1 if row in self.rows else 1) for row in sorted(rows)]
        self.run(lambda: self.service.transact(changes))
        self.rows ^= rows

    def kill(self):
        os.kill(self.db.coordinator.members[1].pid, signal.SIGKILL)

    def received(self, interest, counts):
        """Add the changes of an interest to the count of each row, up to all writes."""
        changes = self.run(interest.take)
        for (text, x), _, diff in changes:
            counts[x, text] = counts.get((x, text), 0) + diff
        assert changes.upto == self.service.time
        return {row for row, count in counts.items() if count}


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def served(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("db")
    with kpg.open(path, **({"workers": 2} if request.param == 2 else {})) as db:
        served = Served(db)
        served.write(range(ROWS))
        yield served


@pytest.fixture
def small_parts(monkeypatch):
    """Let reads pause after a few rows."""
    monkeypatch.setattr(cluster_reads, "TEXT_ROWS_PER_PART", PART)
    monkeypatch.setattr("kpg.api.unread_changes.CHANGES_LIMIT", 2 * PART)
    monkeypatch.setattr("kpg.columns.pause_points.MIN_ASIDE_NUMBERS", 1)
    monkeypatch.setattr("kpg.api.waiting_requests.TURN_SECONDS", 0.0)


steps = st.lists(
    st.one_of(
        st.just("join"),
        st.just("turn"),
        st.just("turn"),
        st.tuples(st.just("leave"), st.integers(0, 3)),
        st.tuples(st.just("take"), st.integers(0, 3)),
        st.tuples(st.just("write"), st.lists(st.integers(0, KEYS), min_size=1, max_size=5, unique=True)),
    ),
    max_size=14,
)


@given(steps, st.integers(0, 60))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_and_later_changes_are_the_answer_whatever_happens_meanwhile(served, small_parts, steps, killed_at):
    """A worker dies before a step, in some of the runs."""
    held, service = [], served.service
    for number, step in enumerate(["join", *steps]):
        if number == killed_at and not served.db.is_single_worker:
            served.kill()
        match step:
            case "join":
                held.append((served.run(lambda: service.interest("present")), {}))
            case "turn":
                served.turn()
            case ("leave", index) if index < len(held):
                interest = held.pop(index)[0]
                served.run(lambda interest=interest: service.uninterest(interest))
            case ("take", index) if index < len(held):
                assert served.received(*held[index]) == served.rows
            case ("write", keys):
                served.write(keys)
    for interest, counts in held:
        assert served.received(interest, counts) == served.rows
        assert all(count in (0, 1) for count in counts.values())
        served.run(lambda interest=interest: service.uninterest(interest))


def test_others_are_served_between_two_parts_of_the_first_rows(served, small_parts):
    """The rows of an interest arrive after many turns, and a row that another client inserts meanwhile before them."""
    if served.db.is_single_worker:
        pytest.skip("the rows are those of one batch, which need not be copied")
    first, counts = served.run(lambda: served.service.interest("present")), {}
    assert served.received(first, counts) == served.rows
    second = served.run(lambda: served.service.interest("present"))
    assert not second.waiting and not second.ready, "the rows were read at once"
    served.write([KEYS])
    assert not second.ready
    assert served.received(first, counts) == served.rows, "a client that has its rows gets the change at once"
    turns = 0
    while not second.ready:
        served.turn()
        turns += 1
    assert turns >= ROWS // (4 * PART)
    assert served.received(second, {}) == served.rows
    for interest in (first, second):
        served.run(lambda interest=interest: served.service.uninterest(interest))


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_a_worker_that_dies_between_two_parts_loses_no_row_and_no_change(served, small_parts, turns):
    if served.db.is_single_worker:
        pytest.skip("there is no other process")
    first, counts = served.run(lambda: served.service.interest("present")), {}
    assert served.received(first, counts) == served.rows
    second = served.run(lambda: served.service.interest("present"))
    served.write([1, 2])
    for _ in range(turns):
        served.turn()
    assert not second.ready
    served.kill()
    served.write([2, 3])
    assert served.received(second, {}) == served.received(first, counts) == served.rows
    for interest in (first, second):
        served.run(lambda interest=interest: served.service.uninterest(interest))


def test_workers_send_the_first_rows_once_and_in_parts(served, small_parts, monkeypatch):
    if served.db.is_single_worker:
        pytest.skip("nothing is sent")
    reported, take = [], ClusterOutput.take
    replies, ask = [], served.db.coordinator.ask

    def counted_take(output, rank, part, failure):
        reported.append(len(part))
        take(output, rank, part, failure)

    def counted_ask(command, blocks=()):
        answered = ask(command, blocks)
        replies.extend(len(block) for reply in answered for block in reply.blocks)
        return answered

    monkeypatch.setattr(ClusterOutput, "take", counted_take)
    monkeypatch.setattr(served.db.coordinator, "ask", counted_ask)
    interest = served.run(lambda: served.service.interest("present"))
    assert served.received(interest, {}) == served.rows
    assert sum(reported) == 0, "changes that the rows include were sent as well"
    assert sum(replies) >= len(served.rows) > 0 and max(replies) <= 8 * PART
    served.run(lambda: served.service.uninterest(interest))


def test_a_query_that_is_asked_once_gets_no_changes_from_workers(served, monkeypatch):
    if served.db.is_single_worker:
        pytest.skip("nothing is sent")
    reported, take = [], ClusterOutput.take

    def counted_take(output, rank, part, failure):
        reported.append(len(part))
        take(output, rank, part, failure)

    monkeypatch.setattr(ClusterOutput, "take", counted_take)
    assert served.run(lambda: served.service.query("present")).num_rows == len(served.rows)
    assert sum(reported) == 0


def test_the_limit_of_rows_holds_for_the_first_rows(served, small_parts):
    limits, served.service._registry.answers.limits = served.service._registry.answers.limits, Limits(rows=50)
    try:
        interest = served.run(lambda: served.service.interest("present"))
        with pytest.raises(kpg.OverLimit):
            served.run(lambda: pytest.raises(kpg.OverLimit, interest.take) and interest.take())
    finally:
        served.service._registry.answers.limits = limits
        served.run(lambda: served.service.uninterest(interest))
