"""Queries that share dataflows have their own limits: the limits of a client stop no query of another one."""

from collections.abc import Callable, Iterator

import pytest

from kpg.errors import OverLimit
from kpg.service import Interest, Limits, Service
from kpg.service.limits import GroupLimits
from tests.service.conftest import ServiceOn, dataflows_of

CHAIN = 39  # nodes after the first one, all reached: 780 paths
PATHS = CHAIN * (CHAIN + 1) // 2
ROWS = 8_000  # of a relation, on each worker: enough to be measured always

pytestmark = pytest.mark.parametrize("workers", [1, 2, 3])  # three work in slices


@pytest.fixture
def service(service_on: ServiceOn, workers: int) -> Iterator[Service]:
    """A service with a graph of one edge, and its paths."""
    with service_on(workers) as service:
        service.create_relation("edge", {"x": int, "y": int})
        service.put("edge", [(0, 1)])
        service.register("path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z). far(x, y) :- path(x, y).")
        yield service


def grow(service: Service) -> None:
    """Add the other edges of the chain."""
    service.put("edge", [(node, node + 1) for node in range(1, CHAIN)])


def stopped(interest: Interest, limit: str) -> bool:
    """Whether an interest has exceeded a limit."""
    try:
        interest.take()
    except OverLimit as error:
        assert limit in str(error.detail)
        return True
    return False


@pytest.mark.parametrize("first", ["attacker", "victim"])
@pytest.mark.parametrize(("name", "sharing"), [("path", "auto"), ("path", "answers"), ("far", "answers")])
def test_the_lower_limit_of_one_client_stops_no_other(service: Service, name: str, sharing: str, first: str) -> None:
    interests = {}
    for owner in ["attacker", "victim"] if first == "attacker" else ["victim", "attacker"]:
        limits = {"step_rows": 60} if owner == "attacker" else None
        interests[owner] = service.interest(name, owner=owner, sharing=sharing, limits=limits)
        assert len(interests[owner].take()) == 1
    grow(service)
    assert len(interests["victim"].take()) == PATHS - 1
    assert stopped(interests["attacker"], "step_rows")
    service.uninterest(interests["attacker"])
    service.put("edge", [(-1, 0)])
    assert len(interests["victim"].take()) == CHAIN + 1


@pytest.mark.parametrize("first", ["attacker", "victim"])
def test_the_lower_limit_of_one_tenant_stops_no_other(service: Service, first: str) -> None:
    interests = {}
    for owner in ["attacker", "victim"] if first == "attacker" else ["victim", "attacker"]:
        limits, x = ({"step_rows": 60}, 0) if owner == "attacker" else (None, 5)
        interests[owner] = service.interest("path", arguments={"x": x}, owner=owner, limits=limits)
        interests[owner].take()
    grow(service)
    assert len(interests["victim"].take()) == CHAIN - 5
    assert stopped(interests["attacker"], "step_rows")
    service.uninterest(interests["attacker"])
    service.put("edge", [(CHAIN, CHAIN + 1)])
    assert len(interests["victim"].take()) == 1


def test_the_lower_limit_of_a_shape_stops_no_other(service: Service, workers: int) -> None:
    service.create_attribute(":item/size", int)
    for name, size in (("attacked", 1), ("other", 2)):
        service.register(f"[:find ?e :where [?e :item/size {size}]]", language="edn", name=name)
    attacker = service.interest("attacked", owner="attacker", sharing="tenants", limits={"step_rows": 60})
    victim = service.interest("other", owner="victim", sharing="tenants")
    attacker.take(), victim.take()
    service.put(":item/size", [(entity, 1 + entity % 2) for entity in range(200 * workers)])
    assert len(victim.take()) == 100 * workers


@pytest.mark.parametrize("arguments", [None, {"x": 0}])
def test_a_later_client_may_raise_limits(service: Service, arguments: dict[str, int] | None) -> None:
    for step_rows in (60, None, 10**6):
        limits = {} if step_rows is None else {"step_rows": step_rows}
        interest = service.interest("path", arguments=arguments, owner=step_rows, limits=limits)
        interest.take()
    grow(service)
    assert len(interest.take()) == (PATHS if arguments is None else CHAIN) - 1


def test_a_query_reads_no_answer_that_has_other_limits(service: Service) -> None:
    attacker = service.interest("path", owner="attacker", limits={"step_rows": 60})
    attacker.take()
    grow(service)
    assert service.query("path", owner="victim").num_rows == PATHS
    assert service.query("path", owner="victim", arguments={"x": 0}).num_rows == CHAIN


SHARED: dict[str, Callable[[Service, dict[str, float | None] | None], Interest]] = {
    "an answer": lambda service, limits: service.interest("path", limits=limits),
    "shared answers": lambda service, limits: service.interest("far", sharing="answers", limits=limits),
    "tenants": lambda service, limits: service.interest("path", arguments={"x": 0}, limits=limits),
}


@pytest.mark.parametrize("kind", SHARED)
def test_queries_with_equal_limits_share_a_dataflow(service: Service, kind: str) -> None:
    """It does not matter whether a request names a limit that is the default."""
    interests = [SHARED[kind](service, None)]
    before = dataflows_of(service.db)
    query, rounds = service.limits.query, service.limits.rounds
    for limits in (
        {},
        {"kept_rows": query.kept_rows},
        {"rounds": rounds},
        {"rounds": None},
        {"first_seconds": 60, "cpu_percent": None},
    ):
        interests.append(SHARED[kind](service, limits))
    assert dataflows_of(service.db) == before
    interests.append(SHARED[kind](service, {"kept_rows": 50}))
    once = dataflows_of(service.db)
    assert len(once) > len(before)
    interests.append(SHARED[kind](service, {"kept_rows": 50.0}))
    assert dataflows_of(service.db) == once
    for interest in interests:
        service.uninterest(interest)
    assert not service.answers.answers and not service.tenants.dataflows


def test_explain_names_the_limits_of_each_dataflow(service: Service) -> None:
    for limits in (None, {"kept_rows": 50, "first_seconds": 2.5}):
        service.interest("path", limits=limits).take()
        service.interest("path", arguments={"x": 0}, limits=limits).take()
    lines = service.explain("path").splitlines()
    assert "one answer for all, from base relations: 1 interests, 0 queries built on it" in lines
    assert "one dataflow for arguments (x): 1 tenants" in lines
    own = "with the limits kept_rows 50, first_seconds 2.5"
    assert f"one answer for all {own}, from base relations: 1 interests, 0 queries built on it" in lines
    assert f"one dataflow for arguments (x) {own}: 1 tenants" in lines


# Sessions and tenants


def declare(service: Service, workers: int) -> None:
    """Declare relations and rules of which any tenant may read some."""
    for name in ("grows", "large"):
        service.create_relation(name, {"x": int})
    service.put("grows", [(1,)])
    service.put("large", [(row,) for row in range(ROWS * workers)])
    service.register("near(x, y) :- grows(x), y = x * 2. above(x, y) :- near(x, y), x > -1.")
    service.register("next(x, y) :- near(x, y), x < 1000000. own(x, y) :- large(x), y = x * 2.")
    for name in ("near", "above", "next", "own"):
        service.grant(name, "*", "read")


def grow_answer(service: Service, workers: int) -> int:
    """Let the shared answer keep more, which with `own` is too much for one session; return the number of new rows."""
    rows = ROWS * workers
    service.put("grows", [(row,) for row in range(2, rows)])
    return rows - 2


WAYS_TO_READ = {
    "the answer": ("auto", "above", None),
    "the answer from shared ones": ("answers", "above", None),
    "another answer from shared ones": ("answers", "next", None),
    "a filter": ("auto", "above", {"x": 7}),
}


@pytest.mark.parametrize("way", WAYS_TO_READ)
def test_an_answer_that_others_read_does_not_count_for_the_session_that_asked_first(
    service_on: ServiceOn, workers: int, way: str
) -> None:
    first_sharing, name, arguments = WAYS_TO_READ[way]
    sharing = first_sharing if arguments is None else "answers"
    with service_on(workers, limits=Limits(session=GroupLimits(kept_rows=ROWS * 3 // 2))) as service:
        declare(service, workers)
        first = service.interest("above", owner="first", sharing=first_sharing)
        first.take()
        victim = service.interest(name, owner="victim", sharing=sharing, arguments=arguments)
        own = service.interest("own", owner="first", sharing="nothing")
        assert len(own.take()) == ROWS * workers
        victim.take()
        rows = grow_answer(service, workers)
        assert len(victim.take()) == (rows if arguments is None else 1)
        if name == "above":  # else the first session keeps too much
            assert len(first.take()) == rows
            service.put("large", [(-1,)])
            assert len(own.take()) == 1


def test_an_answer_that_only_one_session_reads_counts_for_it(service_on: ServiceOn, workers: int) -> None:
    with service_on(workers, limits=Limits(session=GroupLimits(kept_rows=ROWS * 3 // 2))) as service:
        declare(service, workers)
        own = service.interest("own", owner="first", sharing="nothing")
        own.take()
        shared = [service.interest("above", owner="first") for _ in range(3)]
        for interest in shared:
            interest.take()
        grow_answer(service, workers)
        with pytest.raises(OverLimit, match="the queries of this session keep"):
            shared[0].take()


@pytest.mark.parametrize("other", ["one", "two"])
def test_sessions_of_one_tenant_do_not_evade_its_limit_by_sharing(
    service_on: ServiceOn, workers: int, other: str
) -> None:
    """Two sessions read an answer. If they are of one tenant, it counts for this tenant, and otherwise for none."""
    with service_on(workers, limits=Limits(tenant=GroupLimits(kept_rows=ROWS * 3 // 2))) as service:
        declare(service, workers)
        shared = []
        for session, tenant in enumerate(["one", other]):
            with service.grants.acting_as(tenant):
                shared.append(service.interest("above", owner=session))
                shared[-1].take()
        with service.grants.acting_as("one"):
            own = service.interest("own", owner=0, sharing="nothing")
            own.take()
        rows = grow_answer(service, workers)
        for interest in shared:
            if other == "one":
                with pytest.raises(OverLimit, match="the queries of this tenant keep"):
                    interest.take()
            else:
                assert len(interest.take()) == rows
