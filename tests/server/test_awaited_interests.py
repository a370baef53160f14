"""An idle interest is not looked at; one with changes, another answer or an error is, whatever happened in between."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.server.awaited_interests import AwaitedInterests
from kpg.service import Service

RULES = "reading(device, place, ratio) :- speed(device, speed), located(device, place), ratio = 100 / speed."
DEVICES = 4


def devices(db):
    service = Service(db)
    service.create_relation("speed", {"device": int, "speed": int}, semantics="cardinality-one", key="device")
    service.create_relation("located", {"device": int, "place": int})
    service.put("located", [(device, 0) for device in range(DEVICES)])
    service.put("speed", [(device, 1) for device in range(DEVICES)])
    service.register(RULES)
    return service


def at_rest(service, sharing="tenants"):
    """Interests that were served, and nothing to take."""
    awaited = AwaitedInterests()
    interests = [
        service.interest("reading", arguments={"device": device}, sharing=sharing) for device in range(DEVICES)
    ]
    for interest in interests:
        interest.take()
    for interest in interests:
        awaited.add(interest)
        assert interest.is_idle
        awaited.rest(interest)
    assert awaited.to_look_at() == []
    return awaited, interests


@pytest.mark.parametrize("sharing", ["tenants", "answers", "nothing"])
def test_only_an_interest_with_changes_is_looked_at(sharing):
    with kpg.open() as db:
        service = devices(db)
        awaited, interests = at_rest(service, sharing)
        service.put("speed", [(2, 5)])
        assert awaited.to_look_at() == [interests[2]] and interests[2].waiting


@pytest.mark.parametrize("sharing", ["tenants", "answers", "nothing"])
def test_an_error_of_the_answer_ends_the_rest_and_so_does_a_refusal(sharing):
    with kpg.open() as db:
        service = devices(db)
        awaited, interests = at_rest(service, sharing)
        service.put("speed", [(1, 0)])  # its ratio cannot be computed
        failing = [interest for interest in awaited.to_look_at() if interest.error is not None]
        assert interests[1] in failing and (sharing == "answers" or failing == [interests[1]])
        interests[3].refuse(kpg.OverLimit("too much"))
        assert interests[3] in awaited.to_look_at()


def test_an_idle_tenant_is_asked_nothing(monkeypatch):
    """The cost of a change does not depend on the number of idle tenants."""
    with kpg.open() as db:
        service = devices(db)
        awaited, interests = at_rest(service)
        asked = []
        for interest in interests:
            interest.answer_error = lambda number=interest.id: asked.append(number)
        service.put("speed", [(0, 7)])
        assert awaited.to_look_at() == [interests[0]] and asked == []


def test_an_interest_whose_own_errors_its_answer_does_not_know_never_rests(tmp_path):
    with kpg.open() as db:
        service = Service(db, sinks=tmp_path)
        service.create_relation("edge", {"x": int})
        interest = service.interest("edge", sink={"type": "file", "path": "edges.jsonl"})
        awaited = AwaitedInterests()
        awaited.add(interest)
        awaited.rest(interest)
        assert awaited.to_look_at() == [interest]


CHANGES = st.lists(
    st.tuples(st.integers(0, DEVICES - 1), st.sampled_from([-1, 0, 1, 2])), max_size=3
)  # a speed of 0 fails, one of -1 removes the device


@settings(max_examples=40)
@given(epochs=st.lists(st.tuples(CHANGES, st.booleans()), max_size=8), sharing=st.sampled_from(["tenants", "nothing"]))
def test_interests_at_rest_are_those_without_news(epochs, sharing):
    """Against a look at every interest, after any changes, errors and recoveries, taken or not."""
    with kpg.open() as db:
        service = devices(db)
        awaited, interests = at_rest(service, sharing)
        for changes, take in epochs:
            for device, speed in changes:
                rows = [(device, max(speed, 1))]
                service.put("speed", rows if speed < 0 else [(device, speed)], diff=-1 if speed < 0 else 1)
            looked_at = awaited.to_look_at()
            assert {interest.id for interest in interests if not interest.is_idle} <= {one.id for one in looked_at}
            for interest in looked_at:
                if take and interest.error is None:
                    interest.take()
                if interest.is_idle:
                    awaited.rest(interest)
