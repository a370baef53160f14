"""Changes for later times take effect at their time, also after a restart."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.service import Change, Service

WRITES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 9)), max_size=8)  # (delay, e, v)


@pytest.mark.parametrize(("workers", "examples"), [(1, 100), (2, 10)])
def test_the_last_write_for_a_time_wins_whenever_it_arrives(service_on, workers, examples):
    @settings(max_examples=min(examples, settings().max_examples))
    @given(WRITES)
    def check(writes):
        with service_on(workers, history=None) as service:
            apply(service, writes)

    check()


def apply(service, writes):
    """Apply writes, some of them for later times, and compare all times with a model."""
    service.create_attribute(":speed", int, semantics="cardinality-one")
    first = service.time
    model: dict[int, list[tuple[int, int]]] = {}  # by time: writes, scheduled ones first
    for delay, entity, value in writes:
        start = service.time
        if delay:
            at = service.transact([Change(":speed", (entity, value))], at=start + delay)
            assert at == start + delay
            model.setdefault(at, []).append((entity, value))
        else:
            model.setdefault(service.transact([Change(":speed", (entity, value))]), []).append((entity, value))
    end = service.advance(service.time + 5)
    state: dict[int, int] = {}
    for time in range(first, end + 1):
        state |= dict(model.get(time, []))
        rows = service.query(":speed", as_of=time).to_pylist()
        assert {row["e"]: row["v"] for row in rows} == state


def test_waiting_changes_survive_a_restart_and_are_applied_once(tmp_path):
    with kpg.open(tmp_path / "db") as db:
        service = Service(db)
        service.create_relation("log", {"text": str, "n": int}, semantics="raw")
        service.transact([Change("log", ("later", 1)), Change("log", ("later", 2))], at=5)
        service.transact([Change("log", ("now", 0))])
    for _ in range(2):
        with kpg.open(tmp_path / "db") as db:
            service = Service(db)
            if service.time < 6:
                service.advance(6)
            rows = service.query("log").to_pylist()
            assert sorted((row["text"], row["n"]) for row in rows) == [("later", 1), ("later", 2), ("now", 0)]


def test_a_past_time_is_refused_and_wrong_changes_are_refused_at_once():
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int})
        service.transact([Change("edge", (1,))])
        with pytest.raises(kpg.TimeTooEarly, match="cannot change relations at 0"):
            service.transact([Change("edge", (2,))], at=0)
        with pytest.raises(kpg.SchemaMismatch):
            service.transact([Change("edge", ("two",))], at=9)


def test_an_interest_sees_the_change_at_its_time():
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.register("loop(x) :- edge(x, x).")
        interest = service.interest("loop")
        service.transact([Change("edge", (1, 1))], at=3)
        service.transact([Change("edge", (2, 2))])
        assert [(row, time) for row, time, _ in interest.take()] == [((2,), 1)]
        service.advance(4)
        assert [(row, time) for row, time, _ in interest.take()] == [((1,), 3)]


def test_a_read_closes_no_time():
    with kpg.open() as db:
        service = Service(db)
        service.create_attribute(":speed", int, semantics="cardinality-one")
        service.transact([Change(":speed", (7, 70))], at=2)
        service.transact([Change(":speed", (7, 60))])
        assert service.query(":speed").to_pylist() == [{"e": 7, "v": 60}] and service.time == 2


def test_changes_of_a_time_that_could_not_be_closed_are_applied_when_it_is(service_on, workers):
    """A transaction that fails while its time is open takes nothing of the scheduled changes with it."""
    with service_on(workers) as service:
        service.create_relation("edge", {"x": int})
        at = service.transact([Change("edge", (1,))], at=service.time + 1)

        def fail(database):
            service._scheduled.apply_due()
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            service.db.transact(fail)
        assert service.advance() == at
        assert service.query("edge").to_pylist() == [{"x": 1}]
