"""Whose share of the time the dataflow of a query uses: that of its session or tenant, and of all that share it."""

import gc

import pytest

import kpg
from kpg.cluster.rank_commands.query_commands import AddOwnerCommand
from kpg.service import Service

RULES = "q(x, c) :- n(x), c = x + 1. r(x) :- q(x, _)."


@pytest.fixture
def service():
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("n", {"x": int})
        service.register(RULES)
        yield service


def owners(service, *names):
    """Return the sessions or tenants in whose shares dataflows run, by the beginning of the names of these."""
    kinds = {group.owner: name for name, group in service.usage().items()}
    dataflows = [flow for flow in service.db.worker.dataflows.values() if flow.name.startswith(names)]
    assert dataflows
    return [{kinds[owner] for owner in flow.owners} for flow in dataflows]


def session(number):
    return ("session", number)


def test_dataflows_of_one_session_run_in_its_share(service):
    for sharing in ("nothing", "nothing", "auto"):
        service.interest("q", owner=1, sharing=sharing)
    assert owners(service, "answer q") == [{session(1)}] * 3
    assert service.usage()[session(1)].owner.dataflow_count == 3
    for interest in list(service.interests.values()):
        service.uninterest(interest)
    assert service.usage()[session(1)].owner.dataflow_count == 0


def test_base_relations_have_shares_of_their_own(service):
    service.interest("n", owner=1)
    assert owners(service, "n") == [set()]


def test_a_tenant_has_one_share_with_all_its_sessions(service):
    service.grant("q", "acme", "read")
    with service.grants.acting_as("acme"):
        for owner in (1, 2):
            service.interest("q", owner=owner, sharing="nothing")
    assert owners(service, "answer q") == [{("tenant", "acme")}] * 2


@pytest.mark.parametrize("sharing", ["auto", "answers"])
def test_a_shared_answer_runs_in_the_shares_of_all_its_sessions(service, sharing):
    service.interest("r", owner=1, sharing=sharing)
    service.interest("r", owner=2, sharing=sharing)
    names = ("answer r",) if sharing == "auto" else ("answer q", "shared answer r")
    assert owners(service, *names) == [{session(1), session(2)}] * len(names)
    service.drop_owner(2)
    gc.collect()
    assert owners(service, *names) == [{session(1)}] * len(names)


def test_a_dataflow_for_arguments_runs_in_the_shares_of_all_its_sessions(service):
    service.interest("q", owner=1, arguments={"x": 1})
    service.interest("q", owner=2, arguments={"x": 2})
    assert owners(service, "tenants of q") == [{session(1), session(2)}]


def test_an_interest_that_another_session_continues_runs_in_its_share(service):
    interests = [service.interest("q", owner=owner) for owner in (1, 2)]
    lost = "lost"
    service.change_owner(interests[1], lost)
    service.drop_owner(2)
    gc.collect()
    service.adopt(interests[1], 3)
    assert owners(service, "answer q") == [{session(1), session(3)}]
    service.interest("q", owner=4, arguments={"x": 1}, sharing="answers")
    tenants = service.interest("q", owner=4, arguments={"x": 1})
    service.adopt(tenants, 5)
    assert owners(service, "tenants of q") == [{session(4), session(5)}]


def test_an_answer_that_is_filtered_runs_in_the_share_of_its_readers(service):
    service.interest("q", owner=1)
    service.interest("q", owner=2, arguments={"x": 1}, sharing="answers")
    assert owners(service, "answer q", "filter of q") == [{session(1), session(2)}, {session(2)}]


@pytest.mark.parametrize("workers", [2, 3])
def test_sessions_share_answers_on_several_workers(service_on, workers):
    with service_on(workers) as service:
        service.create_relation("n", {"x": int})
        service.register(RULES)
        interests = [
            service.interest("q", owner=owner, sharing=sharing, arguments=arguments)
            for owner in (1, 2)
            for sharing, arguments in (("auto", None), ("answers", None), ("nothing", None), ("auto", {"x": 1}))
        ]
        service.put("n", [(1,)])
        for interest in interests:
            assert interest.take().rows() == [(1, 2)]
        service.drop_owner(1)
        service.put("n", [(2,)])
        assert [interest.take().rows() for interest in interests[4:]] == [[(2, 3)]] * 3 + [[]]


def test_workers_are_told_once_that_a_session_reads_a_shared_answer(service_on, monkeypatch):
    with service_on(2) as service:
        service.create_relation("n", {"x": int})
        service.register(RULES)
        service.put("n", [(1,)])
        service.interest("q", owner=1)
        told, tell = [], service.db.tell_output
        monkeypatch.setattr(
            service.db, "tell_output", lambda output, command: (told.append(command), tell(output, command))
        )
        for _ in range(3):
            for owner in (1, 2):
                assert service.query("q", owner=owner).num_rows == 1
        owners = [command.group.number for command in told if isinstance(command, AddOwnerCommand)]
        assert owners == [service.usage()["session", 2].number]
