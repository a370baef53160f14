"""What an interest may ask for beside rows: full intervals, a sink instead of a reader, and not to be logged."""

import json

import pytest

import kpg
from kpg.observe.attributes import NAME
from kpg.observe.event_log import EventLog
from kpg.service import Change, Service
from kpg.testing.manual_clock import ManualClock
from tests.query.thesis_query import ARRANGED_TUPLES

RULES = "twice(x) :- number(x), number(y), y = x * 2."


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def service(tmp_path, clock):
    with kpg.open() as db:
        service = Service(db, clock=clock.now, sinks=tmp_path)
        service.create_relation("number", {"x": int})
        service.register(RULES)
        yield service
        service.close()


def put(service: Service, *numbers: int, diff: int = 1) -> None:
    service.transact([Change("number", (number,), diff) for number in numbers])


def test_changes_come_at_full_seconds_and_summed_up(service, clock):
    """A13.6: through an interest; one without a granularity is not held back."""
    clock.advance(10.25)
    slow, quick = service.interest("twice", granularity=1), service.interest("twice")
    put(service, 1, 2)
    put(service, 4)
    put(service, 4, diff=-1)
    assert len(slow.take()) == 0 and slow.waiting == 0 and slow.due_in == 0.75
    assert len(quick.take()) == 3 and quick.due_in is None
    clock.advance(0.75)
    assert slow.waiting == 1 and [(row, diff) for row, _, diff in slow.take()] == [((1,), 1)]
    assert slow.due_in is None
    with pytest.raises(kpg.TypeMismatch):
        service.interest("twice", granularity=0)


def test_changes_go_to_a_file(service, tmp_path):
    """A13.7: named by a client; nothing is left for `take`."""
    interest = service.interest("twice", sink={"type": "file", "path": "twice.jsonl"})
    put(service, 1, 2)
    assert len(interest.take()) == 0
    service.close_input("number")
    records = [json.loads(line) for line in (tmp_path / "twice.jsonl").read_text().splitlines()]
    assert [record["row"] for record in records if "row" in record] == [{"x": 1}] and records[-1] == {"complete": True}
    service.uninterest(interest)
    assert service.db.followers == []


def test_a_sink_with_a_granularity_gets_the_rest_at_the_end(service, clock, tmp_path):
    """A13.6, A13.7: what is held back when all is complete is not lost."""
    clock.advance(0.5)
    service.interest("twice", sink={"type": "file", "path": "twice.jsonl"}, granularity=60)
    put(service, 1, 2)
    assert "row" not in (tmp_path / "twice.jsonl").read_text()
    service.close_input("number")
    records = [json.loads(line) for line in (tmp_path / "twice.jsonl").read_text().splitlines()]
    assert records[-2]["row"] == {"x": 1} and records[-1] == {"complete": True}


def test_epochs_are_timed_without_a_reader(service, tmp_path):
    """A13.5: a latency sink of a client, with arguments, too."""
    service.interest("twice", arguments={"x": 1}, sink={"type": "latency", "path": "epochs.log"})
    before = len((tmp_path / "epochs.log").read_text().splitlines())
    put(service, 1, 2)
    put(service, 3)
    lines = (tmp_path / "epochs.log").read_text().splitlines()
    assert len(lines) == before + 2 and all(float(line) >= 0 for line in lines)


def test_a_sink_that_cannot_write_fails_only_its_own_interest(service):
    class Full:
        def take(self, changes):
            raise kpg.Unavailable("cannot write: no space left")

        def advance(self, frontier):
            pass

        def close(self):
            pass

    full, other = service.interest("twice", sink=Full()), service.interest("twice")
    put(service, 1, 2)
    assert len(other.take()) == 1
    with pytest.raises(kpg.Unavailable, match="no space"):
        full.take()
    service.uninterest(full)


def test_without_a_directory_clients_have_no_sinks(tmp_path):
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("number", {"x": int})
        service.register(RULES)
        with pytest.raises(kpg.Unavailable, match="switched off"):
            service.interest("twice", sink={"type": "latency", "path": "a"})
        assert service.interests == {}


def test_an_interest_can_switch_off_its_own_logging(service):
    """A13.4: what it builds is not in the log; what others build is."""
    with EventLog(service.db, [NAME]) as log:
        silent = service.interest("twice", log=False)
        put(service, 1, 2)
        assert "answer twice" not in {operator.dataflow for operator in log.operators()}
        service.uninterest(silent)
        loud = service.interest("twice")
        assert any("twice" in operator.dataflow for operator in log.operators())
        service.uninterest(loud)


def test_a_client_asks_about_the_db_as_the_thesis_does(service):
    """A13.1, A13.3, A13.4: it picks attributes, registers the query as printed, and follows its answer."""
    asked = [":differential.event/size", ":timely.event.operates/name", ":timely.event.operates/shutdown?"]
    assert service.observe(asked) == tuple(asked) and service.observe(asked) == ()
    service.register(ARRANGED_TUPLES, language="edn", name="alive")
    alive = service.interest("alive", log=False)
    put(service, 1, 2)
    service.advance()
    changes = list(alive.take())
    sizes = {}
    for (name, size), _, diff in changes:
        sizes[name, size] = sizes.get((name, size), 0) + diff
    assert {pair for pair, count in sizes.items() if count} == {("arrange number by x", 2)}
    for _ in range(3):
        service.advance()
    alive.take()
    service.advance()
    assert len(alive.take()) == 0  # at rest
    with pytest.raises(kpg.InUse, match="written by the db itself"):
        service.transact([Change(":timely.event.operates/name", (1, "x"))])


def test_the_log_ends_with_the_service():
    with kpg.open() as db:
        service = Service(db)
        service.observe()
        service.close()
        assert db.recorder is None and not db.inputs
