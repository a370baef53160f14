"""Tenants on one dataflow: each sees exactly what a naive evaluation gives it, independent of the others."""

from collections import Counter
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kpg
from kpg.errors import Closed
from kpg.service import Change, Interest, Service
from tests.service.conftest import dataflows_of

TC = "tc(x, y) :- edge(x, y). tc(x, z) :- tc(x, y), edge(y, z)."
NODES = st.integers(0, 4)
ACTIONS = st.one_of(
    st.tuples(st.just("connect"), NODES, st.sampled_from(["tenants", "tenants", "tenants", "nothing", "answers"])),
    st.tuples(st.just("disconnect"), st.integers(0, 9)),
    st.tuples(st.just("ask"), st.integers(0, 9), NODES),
    st.tuples(st.just("forget"), st.integers(0, 9), NODES),
    st.tuples(st.just("put"), st.lists(st.tuples(NODES, NODES, st.sampled_from([1, 1, -1])), max_size=4)),
    st.tuples(st.just("take"), st.integers(0, 9)),
)


def reach(edges: set, start: int) -> set:
    """The rows of tc that start somewhere."""
    reached, queue = set(), [start]
    for node in queue:
        new = {y for x, y in edges if x == node} - reached
        reached |= new
        queue += new
    return {(start, y) for y in reached}


class Naive:
    """The arguments of a tenant, and the rows it has received."""

    def __init__(self, interest, argument):
        self.interest = interest
        self.arguments = {argument}
        self.received = Counter()

    def take(self):
        for row, time, diff in self.interest.take():
            assert time < self.interest.upto
            self.received[row] += diff

    def check(self, edges):
        self.take()
        expected = set().union(*(reach(edges, argument) for argument in self.arguments))
        assert {row: n for row, n in self.received.items() if n} == dict.fromkeys(expected, 1)


@pytest.mark.parametrize(("workers", "examples"), [(1, 40), (2, 12), (3, 8)])
def test_no_tenant_sees_the_rows_of_another_and_each_sees_its_own(service_on, workers, examples):
    """A12.1, A12.3, A12.4: random connects, disconnects, argument changes and data changes."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(ACTIONS, max_size=14))
    def check(actions):
        with service_on(workers) as service:
            perform(service, actions)

    check()


def perform(service, actions):
    """Perform actions of tenants, and compare what each has received with a naive evaluation."""
    service.create_relation("edge", {"x": int, "y": int})
    service.register(TC)
    edges, tenants, owners = set(), [], count()
    for action, *given_ in actions:
        tenant = tenants[given_[0] % len(tenants)] if action in CHOOSE and tenants else None
        if action == "connect":
            argument, sharing = given_
            interest = service.interest("tc", arguments={"x": argument}, owner=next(owners), sharing=sharing)
            tenants.append(Naive(interest, argument))
        elif action == "put":
            service.transact([Change("edge", (x, y), diff) for x, y, diff in given_[0]])
            for x, y, diff in given_[0]:
                (edges.add if diff > 0 else edges.discard)((x, y))
        elif tenant is None:
            continue
        elif action == "disconnect":
            tenants.remove(tenant)
            service.drop_owner(tenant.interest.owner)
        elif action == "take":
            tenant.take()
        elif tenant.interest.sharing != "answers":
            change = {"x": given_[1]}
            if action == "ask":
                service.add_arguments(tenant.interest, change)
                tenant.arguments.add(given_[1])
            elif given_[1] in tenant.arguments:
                service.remove_arguments(tenant.interest, change)
                tenant.arguments.discard(given_[1])
    service.advance()
    for tenant in tenants:
        tenant.check(edges)
    service.close()
    assert [name for name in dataflows_of(service.db) if name != "edge"] == []
    assert set(service.db.inputs) <= {"edge"}


CHOOSE = {"disconnect", "ask", "forget", "take"}


def test_a_thousand_arguments_are_one_dataflow():
    """A12.2, A11: an argument is a row of an input."""
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.put("edge", [(x, x + 1) for x in range(0, 200, 2)])
        service.register(TC)
        interests = [service.interest("tc", arguments={"x": x}, owner=x) for x in range(200)]
        changes = [list(interest.take()) for interest in interests]
        assert [len(taken) for taken in changes] == [1, 0] * 100
        assert len(db.worker.dataflows) == 3  # the edges, the parameters, the tenants
        service.put("edge", [(1, 2)])
        assert [len(interest.take()) for interest in interests] == [2, 2] + [0] * 198
        for owner in range(200):
            service.drop_owner(owner)
        assert len(db.worker.dataflows) == 1


def test_the_cost_of_an_epoch_depends_on_its_changes_and_not_on_the_number_of_tenants(monkeypatch):
    """A12.4: only tenants with changes receive something, and only their own changes."""
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.register("next(x, y) :- edge(x, y).")
        interests = [service.interest("next", arguments={"x": x % 100}, owner=x) for x in range(300)]
        service.advance()
        receivers = []
        push = Interest.push
        monkeypatch.setattr(Interest, "push", lambda self, *block: (receivers.append(self.owner), push(self, *block)))
        steps = db.worker.steps
        service.put("edge", [(7, 1), (7, 2), (500, 1)])
        assert sorted(receivers) == [7, 107, 207] and db.worker.steps - steps < 30
        assert [len(interests[x].take()) for x in (7, 8, 107)] == [2, 0, 2]


def test_results_for_tenants_that_left_are_dropped():
    """A12.4: the token of a tenant that left is not used again."""
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.register("next(x, y) :- edge(x, y).")
        stays, goes = (service.interest("next", arguments={"x": x}, owner=x) for x in (1, 2))
        service.drop_owner(2)
        comes = service.interest("next", arguments={"x": 3}, owner=2)
        service.put("edge", [(1, 1), (2, 2), (3, 3)])
        assert [row for row, _, _ in stays.take()] == [(1, 1)] and [row for row, _, _ in comes.take()] == [(3, 3)]
        assert comes.id != goes.id
        with pytest.raises(Closed):
            goes.take()


def test_sql_of_one_session_runs_while_arguments_of_another_wait_for_an_epoch(workers, service_on):
    with service_on(workers) as service:
        service.create_relation("edge", {"x": "int64", "y": "int64"})
        service.register(TC)
        service.transact([Change("edge", (1, 2))])
        first = service.interest("tc", arguments={"x": 1}, owner=1, sharing="tenants")
        second = service.interest("tc", arguments={"x": 2}, owner=1, sharing="tenants")  # its argument is pending
        service.execute_sql("CREATE TABLE t (id int PRIMARY KEY)", owner=2)
        service.execute_sql("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t", owner=2)
        assert service.execute_sql("SELECT * FROM v", owner=2).table.to_pylist() == [{"n": 0}]
        for interest in (first, second):
            service.uninterest(interest)
        service.execute_sql("DROP MATERIALIZED VIEW v; DROP TABLE t", owner=2)
