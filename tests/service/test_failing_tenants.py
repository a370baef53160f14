"""A tenant that exceeds a limit or fails on a row does so alone; the others get each change once, and no false one."""

import time
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kpg
from kpg.api.waiting_requests import WaitingRequests
from kpg.errors import DataError, KpgError, OverLimit, TooManyRounds
from kpg.service import Change, Interest, Limits, Service
from kpg.service.dataflows import MAX_PARTS
from kpg.service.limits import QueryLimits
from kpg.service.tenant_parts import TenantPart, TokenFilter
from tests.service.conftest import ServiceOn

# The recursion ends for every x without a row in `wild`.
RULES = "up(x, y) :- edge(x, y). up(x, z) :- up(x, y), wild(x), z = y + 1."
NODES = st.integers(0, 5)
ACTIONS = st.one_of(
    st.tuples(st.just("join"), NODES),
    st.tuples(st.just("leave"), st.integers(0, 9)),
    st.tuples(st.just("ask"), st.integers(0, 9), NODES),
    st.tuples(st.just("edge"), NODES, NODES, st.sampled_from([1, 1, -1])),
    st.tuples(st.just("wild"), NODES),
    st.tuples(st.just("read"), st.integers(0, 9)),
)


class Tenant:
    """A tenant: its arguments, and the rows that it has received."""

    def __init__(self, interest: Interest, argument: int) -> None:
        self.interest = interest
        self.arguments = {argument}
        self.received: Counter[tuple[int, int]] = Counter()
        self.failed = False
        self.diverged = False  # at some time; the interest stays failed

    def read(self, edges: set[tuple[int, int]], wild: set[int]) -> None:
        """Compare the rows so far; every change must insert a missing row or remove a present one."""
        try:
            changes = list(self.interest.take())
        except KpgError as error:
            assert isinstance(error, TooManyRounds)
            self.failed = True
        if self.failed:
            return
        for row, _, diff in changes:
            self.received[row] += diff
            assert self.received[row] in (0, 1), f"a false change of {row}"
        assert len({row for row, _, _ in changes}) == len(changes) or len({time for _, time, _ in changes}) > 1
        assert self.diverges(edges, wild) is False
        expected = {row for row in edges if row[0] in self.arguments}
        assert {row for row, count in self.received.items() if count} == expected

    def diverges(self, edges: set[tuple[int, int]], wild: set[int]) -> bool:
        return any(x in wild and x in self.arguments for x, _ in edges)


@pytest.mark.parametrize(("workers", "count"), [(1, 30), (2, 4), (3, 4)])
def test_only_tenants_that_diverge_fail(service_on: ServiceOn, workers: int, count: int) -> None:
    @settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(actions=st.lists(ACTIONS, max_size=14))
    def check(actions: list[tuple[object, ...]]) -> None:
        with service_on(workers, limits=Limits(rounds=20)) as service:
            play(service, actions)

    check()


def play(service: Service, actions: list[tuple[object, ...]]) -> None:
    """Let tenants join, leave and ask, and compare what they receive."""
    for name, columns in (("edge", {"x": int, "y": int}), ("wild", {"x": int})):
        service.create_relation(name, columns)
    service.register(RULES)
    edges, wild = {(node, node + 10) for node in range(3)}, set[int]()
    service.transact([Change("edge", row) for row in edges])
    tenants: list[Tenant] = []
    for kind, *values in actions:
        live = [tenant for tenant in tenants if not tenant.failed]
        match kind, values:
            case "join", [x]:
                tenants.append(Tenant(service.interest("up", arguments={"x": x}), x))
            case "leave", [at] if tenants:
                service.uninterest(tenants.pop(at % len(tenants)).interest)
            case "ask", [at, x] if live:
                tenant = live[at % len(live)]
                if tenant.interest.error is None:
                    service.add_arguments(tenant.interest, {"x": x})
                    tenant.arguments.add(x)
            case "edge", [x, y, diff]:
                service.transact([Change("edge", (x, y), diff)])
                (edges.add if diff > 0 else edges.discard)((x, y))
            case "wild", [x]:
                service.transact([Change("wild", (x,))])
                wild.add(x)
            case "read", [at] if live:
                live[at % len(live)].read(edges, wild)
        service.advance()
        for tenant in tenants:
            tenant.diverged |= tenant.diverges(edges, wild)
    for tenant in tenants:
        tenant.read(edges, wild)
        assert tenant.failed == tenant.diverged


@pytest.mark.parametrize(("workers", "tenants"), [(1, 2), (1, 9), (1, 40), (2, 5), (3, 5)])
def test_a_new_tenant_over_a_limit_leaves_the_others_alone(service_on: ServiceOn, workers: int, tenants: int) -> None:
    with service_on(workers, limits=Limits(query=QueryLimits(step_rows=20_000))) as service:
        service.create_relation("edge", {"x": int, "y": int})
        service.register("big(x, y, z) :- edge(x, y), edge(x, z).")
        service.put("edge", [(0, y) for y in range(1_000)] + [(x, 0) for x in range(1, tenants + 1)])
        calm = [service.interest("big", arguments={"x": x}) for x in range(1, tenants + 1)]
        for x, interest in enumerate(calm, 1):
            assert [row for row, _, _ in interest.take()] == [(x, 0, 0)]
        wild = service.interest("big", arguments={"x": 0})
        with pytest.raises(OverLimit, match="step_rows|rows for one time"):
            wild.take()
        for interest in calm:
            assert len(interest.take()) == 0
        service.uninterest(wild)
        service.put("edge", [(x, 1) for x in range(1, tenants + 1)])
        for interest in calm:
            assert len(interest.take()) == 3
        late = service.interest("big", arguments={"x": 1})
        assert len(late.take()) == 4


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_new_tenant_does_not_use_the_limits_of_the_others(service_on: ServiceOn, workers: int) -> None:
    tenants = range(1, 41)
    with service_on(workers, limits=Limits(query=QueryLimits(step_rows=20_000))) as service:
        service.create_relation("edge", {"x": int, "y": int})
        service.register("big(x, y, z) :- edge(x, y), edge(x, z).")
        service.put("edge", [(0, y) for y in range(250)] + [(x, 0) for x in tenants])
        calm = [service.interest("big", arguments={"x": x}) for x in tenants]
        for interest in calm:
            assert len(interest.take()) == 1
        wild = service.interest("big", arguments={"x": 0})  # 62,500 rows, of 40 times 20,000
        with pytest.raises(OverLimit, match="rows for one time"):
            wild.take()
        service.uninterest(wild)
        service.put("edge", [(x, y) for x in tenants for y in range(1, 30)])  # 36,000 rows, for all tenants together
        for interest in calm:
            assert len(interest.take()) == 899


def test_all_tenants_diverge_at_once_and_each_gets_its_own_error() -> None:
    with kpg.open() as db:
        service = Service(db, limits=Limits(rounds=20))
        service.create_relation("edge", {"x": int, "y": int})
        service.create_relation("wild", {"x": int})
        service.register(RULES)
        service.put("edge", [(x, 0) for x in range(20)])
        interests = [service.interest("up", arguments={"x": x}) for x in range(20)]
        assert all(len(interest.take()) == 1 for interest in interests)
        service.transact([Change("wild", (7,)), Change("wild", (11,)), Change("edge", (3, 1))])
        for x, interest in enumerate(interests):
            if x in (7, 11):
                with pytest.raises(TooManyRounds):
                    interest.take()
            else:
                assert len(interest.take()) == (x == 3)
        dataflows = len(db.worker.dataflows)
        for interest in interests:
            service.uninterest(interest)
        assert len(db.worker.dataflows) < dataflows
        assert not [name for name in db.inputs if name.startswith("parameters")]


def parts_of(service: Service) -> list[TenantPart]:
    (shared,) = service.tenants.dataflows.values()
    return shared._parts


@pytest.mark.parametrize(("workers", "tenants"), [(1, 300), (2, 20), (3, 20)])
def test_an_old_tenant_that_diverges_is_found_by_the_rows_that_circulate(
    service_on: ServiceOn, workers: int, tenants: int
) -> None:
    """Of many tenants without new arguments one is divided at the first attempt, and the others have their change."""
    with service_on(workers, limits=Limits(rounds=50)) as service:
        service.create_relation("edge", {"x": int, "y": int})
        service.create_relation("wild", {"x": int})
        service.register(RULES)
        service.put("edge", [(1_000 + x, 0) for x in range(tenants)])
        interests = [service.interest("up", arguments={"x": 1_000 + x}) for x in range(tenants)]
        assert all(len(interest.take()) == 1 for interest in interests)
        service.transact([Change("wild", (1_007,)), Change("edge", (1_003, 1))])
        for x, interest in enumerate(interests):
            if x == 7:
                with pytest.raises(TooManyRounds):
                    interest.take()
            else:  # at once, without a later advance
                assert [row for row, _, _ in interest.take()] == [(1_003, 1)] * (x == 3)
        assert len(parts_of(service)) == 2
        service.put("edge", [(1_000 + x, 2) for x in range(tenants)])
        assert all(len(interest.take()) == 1 for x, interest in enumerate(interests) if x != 7)


def test_suspects_that_are_innocent_cost_attempts_and_no_rows() -> None:
    """The circulating values are arguments of others: the parts without them are divided in ranges."""
    with kpg.open() as db:
        service = Service(db, limits=Limits(rounds=40))
        service.create_relation("edge", {"x": int, "y": int})
        service.create_relation("wild", {"x": int})
        service.register(RULES)
        service.put("edge", [(x, 0) for x in range(60)])
        interests = [service.interest("up", arguments={"x": x}) for x in range(60)]
        for interest in interests:
            interest.take()
        service.transact([Change("wild", (x,)) for x in range(45, 57)] + [Change("edge", (2, 9))])
        for x, interest in enumerate(interests):
            if 45 <= x < 57:
                with pytest.raises(TooManyRounds):
                    interest.take()
            else:
                assert len(interest.take()) == (x == 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_texts_as_arguments_are_divided_too(service_on: ServiceOn, workers: int) -> None:
    """Workers have symbols of their own, so there the circulating values say nothing about texts."""
    with service_on(workers, limits=Limits(rounds=20)) as service:
        service.create_relation("edge", {"x": str, "y": int})
        service.create_relation("wild", {"x": str})
        service.register(RULES)
        names = [f"tenant {number}" for number in range(12)]
        service.put("edge", [(name, 0) for name in names])
        interests = [service.interest("up", arguments={"x": name}) for name in names]
        assert all(len(interest.take()) == 1 for interest in interests)
        service.transact([Change("wild", (names[5],)), Change("edge", (names[3], 1))])
        for name, interest in zip(names, interests, strict=True):
            if name == names[5]:
                with pytest.raises(TooManyRounds):
                    interest.take()
            else:
                assert len(interest.take()) == (name == names[3])
        if workers == 1:
            assert len(parts_of(service)) == 2


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_new_tenants_share_one_dataflow_after_the_newest_tenant_has_diverged(
    service_on: ServiceOn, workers: int
) -> None:
    """A part that has failed gets no new tenants, also if it was the one for new tenants."""
    with service_on(workers, limits=Limits(rounds=20)) as service:
        service.create_relation("edge", {"x": int, "y": int})
        service.create_relation("wild", {"x": int})
        service.register(RULES)
        service.put("edge", [(x, 0) for x in range(9)])
        service.put("wild", [(8,)])
        offender = service.interest("up", arguments={"x": 8})
        with pytest.raises(TooManyRounds):
            offender.take()
        others = [service.interest("up", arguments={"x": x}) for x in range(4)]
        assert all(len(interest.take()) == 1 for interest in others)
        assert len({interest.dataflow for interest in others}) == 1
        with pytest.raises(TooManyRounds):
            offender.take()
        service.put("edge", [(x, 1) for x in range(9)])
        assert all(len(interest.take()) == 1 for interest in others)
        service.uninterest(offender)
        assert len(parts_of(service)) == 1


QUOTIENTS = "quotient(x, z) :- edge(x, y), z = 12 / y."
QUOTIENT_ACTIONS = st.one_of(
    st.tuples(st.just("join"), NODES),
    st.tuples(st.just("leave"), st.integers(0, 9)),
    st.tuples(st.just("ask"), st.integers(0, 9), NODES),
    st.tuples(st.just("edge"), NODES, st.integers(0, 3), st.sampled_from([1, 1, -1])),
    st.tuples(st.just("read"), st.integers(0, 9)),
)


class QuotientTenant:
    """A tenant of quotients: its arguments, and the rows that it has received."""

    def __init__(self, interest: Interest, argument: int) -> None:
        self.interest = interest
        self.arguments = {argument}
        self.received: Counter[tuple[int, int]] = Counter()

    def read(self, edges: set[tuple[int, int]]) -> None:
        """Compare the rows so far, and whether the answer has a value."""
        asked = {(x, y) for x, y in edges if x in self.arguments}
        fails = any(y == 0 for _, y in asked)
        if fails:
            with pytest.raises(DataError):
                self.interest.take()
            assert isinstance(self.interest.error, DataError)
            return
        changes = self.interest.take()
        assert self.interest.error is None
        for row, _, diff in changes:
            self.received[row] += diff
            assert self.received[row] in (0, 1), f"a false change of {row}"
        assert {row for row, count in self.received.items() if count} == {(x, 12 // y) for x, y in asked}


@pytest.mark.parametrize(("workers", "count"), [(1, 40), (2, 12), (3, 8)])
def test_a_row_that_fails_is_an_error_of_its_tenants_only(service_on: ServiceOn, workers: int, count: int) -> None:
    @settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(actions=st.lists(QUOTIENT_ACTIONS, max_size=14))
    def check(actions: list[tuple[object, ...]]) -> None:
        with service_on(workers) as service:
            play_quotients(service, actions)

    check()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_is_there_when_the_time_of_its_row_is_closed(service_on: ServiceOn, workers: int) -> None:
    with service_on(workers) as service:
        service.create_relation("edge", {"x": int, "y": int})
        service.register(QUOTIENTS)
        service.put("edge", [(x, 1) for x in range(4)])
        interests = [service.interest("quotient", arguments={"x": x}) for x in range(4)]
        for interest in interests:
            interest.take()
        for failing in range(4):
            service.put("edge", [(failing, 0)])
            assert [isinstance(interest.error, DataError) for interest in interests] == [x == failing for x in range(4)]
            service.put("edge", [(failing, 0)], diff=-1)
            assert [interest.error for interest in interests] == [None] * 4


def play_quotients(service: Service, actions: list[tuple[object, ...]]) -> None:
    """Let tenants join, leave and ask, while divisors become zero and are removed."""
    service.create_relation("edge", {"x": int, "y": int})
    service.register(QUOTIENTS)
    edges = {(node, 1 + node % 3) for node in range(6)}
    service.transact([Change("edge", row) for row in edges])
    tenants = [QuotientTenant(service.interest("quotient", arguments={"x": x}), x) for x in range(3)]
    for kind, *values in actions:
        match kind, values:
            case "join", [x]:
                tenants.append(QuotientTenant(service.interest("quotient", arguments={"x": x}), x))
            case "leave", [at] if tenants:
                service.uninterest(tenants.pop(at % len(tenants)).interest)
            case "ask", [at, x] if tenants:
                tenant = tenants[at % len(tenants)]
                service.add_arguments(tenant.interest, {"x": x})
                tenant.arguments.add(x)
            case "edge", [x, y, diff]:
                service.transact([Change("edge", (x, y), diff)])
                (edges.add if diff > 0 else edges.discard)((x, y))
            case "read", [at] if tenants:
                service.advance()
                tenants[at % len(tenants)].read(edges)
    service.advance()
    for tenant in tenants:
        tenant.read(edges)


@pytest.mark.parametrize("failing", [0, 7, 63])
def test_an_old_tenant_among_many_fails_alone_and_recovers(failing: int) -> None:
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.register(QUOTIENTS)
        service.put("edge", [(x, 1) for x in range(64)])
        interests = [service.interest("quotient", arguments={"x": x}) for x in range(64)]
        assert all(len(interest.take()) == 1 for interest in interests)
        service.put("edge", [(failing, 0)])
        for x, interest in enumerate(interests):
            if x == failing:
                with pytest.raises(DataError, match="division by zero"):
                    interest.take()
            else:
                assert len(interest.take()) == 0
        service.put("edge", [(x, 2) for x in range(64)])
        service.put("edge", [(failing, 0)], diff=-1)
        assert all([row for row, _, _ in interest.take()] == [(x, 6)] for x, interest in enumerate(interests))


def test_tenants_that_all_fail_do_not_get_a_dataflow_each() -> None:
    with kpg.open() as db:
        service = Service(db)
        service.create_relation("edge", {"x": int, "y": int})
        service.register(QUOTIENTS)
        service.put("edge", [(x, 0) for x in range(200)])
        interests = [service.interest("quotient", arguments={"x": x}) for x in range(200)]
        for interest in interests:
            with pytest.raises(DataError):
                interest.take()
        assert len(db.worker.dataflows) < 3 * MAX_PARTS


def test_a_session_that_exceeded_a_limit_is_alone_and_waits_from_then_on() -> None:
    with kpg.open() as db:
        service = Service(db, limits=Limits(rounds=20))
        for name, columns in (("edge", {"x": int, "y": int}), ("wild", {"x": int})):
            service.create_relation(name, columns)
        service.put("edge", [(1, 1), (2, 2)])
        service.put("wild", [(2,)])
        service.register(RULES)
        calm = service.interest("up", arguments={"x": 1}, owner="calm")
        shared, began = [], 0.0
        for _ in range(3):
            wild = service.interest("up", arguments={"x": 2}, owner="wild")
            assert not shared or time.monotonic() - began > 0.1  # it waited
            with pytest.raises(TooManyRounds):
                wild.take()
            service.uninterest(wild)
            began = time.monotonic()
            shared.append(calm.dataflow)
        assert [row for row, _, _ in calm.take()] == [(1, 1)]
        assert len(set(shared)) == 1  # divided once
        service.drop_owner("wild")
        began = time.monotonic()
        other = service.interest("up", arguments={"x": 1}, owner="wild")  # another session of this name
        assert time.monotonic() - began < 0.1 and [row for row, _, _ in other.take()] == [(1, 1)]


class NoWrites(WaitingRequests):
    """Requests of a session that has written nothing, and does not wait for the writes of others."""

    last_write = -1
    is_serving = True
    read_wait_seconds = 0.0


@pytest.mark.parametrize("how", ["join", "ask"])
@pytest.mark.parametrize("workers", [1, 2])
def test_arguments_that_another_session_closes_are_answered_or_fail(workers: int, how: str) -> None:
    """A write of another session moves the clock past new arguments; their tenant never reads an empty answer."""
    with kpg.open(workers=workers) as db:
        db.serve_requests(NoWrites())
        service = Service(db, limits=Limits(rounds=300))
        for name, columns in (("edge", {"x": int, "y": int}), ("wild", {"x": int})):
            service.create_relation(name, columns)
        service.register(RULES)
        service.put("edge", [(x, 0) for x in range(6)])
        service.put("wild", [(5,)])
        calm = service.interest("up", arguments={"x": 0})
        assert len(calm.take()) == 1
        other, offender = [service.interest("up", arguments={"x": 1 if how == "ask" else x}) for x in (4, 5)]
        if how == "ask":
            assert len(other.take()) == len(offender.take()) == 1
            service.add_arguments(other, {"x": 4})
            service.add_arguments(offender, {"x": 5})
        service.put("edge", [(0, 1)])
        for _ in range(2):
            with pytest.raises(TooManyRounds):
                offender.take()
        assert [row for row, _, _ in other.take()] == [(4, 0)]
        service.add_arguments(other, {"x": 3})
        service.put("edge", [(0, 2)])
        assert [row for row, _, _ in other.take()] == [(3, 0)]
        service.uninterest(offender)
        service.close()


@given(
    tokens=st.lists(st.integers(0, 200), min_size=2, max_size=40, unique=True),
    data=st.data(),
)
def test_a_split_gives_each_token_to_one_part_and_new_tokens_to_the_first(
    tokens: list[int], data: st.DataObject
) -> None:
    suspects = data.draw(st.lists(st.sampled_from(tokens), unique=True, max_size=12))
    filters = TokenFilter().split(tokens, suspects)
    for token in tokens:
        assert sum(one.matches(token) for one in filters) == 1
    assert [one.matches(max(tokens) + 1) for one in filters] == [True] + [False] * (len(filters) - 1)
    assert all(any(one.matches(token) for token in tokens) for one in filters)
    again = filters[0].split([token for token in tokens if filters[0].matches(token)] + [500, 501], [])
    assert sum(one.matches(500) for one in again) == 1 and not any(
        one.matches(token) for one in again for token in tokens if not filters[0].matches(token)
    )
