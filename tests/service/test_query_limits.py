"""Limits of single queries: what exceeds one is refused or stopped alone, and says how to raise the limit."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from random import Random
from time import process_time
from typing import Any

import pytest

import kpg
from kpg.errors import InputError, KpgError, OverLimit, ProgramError, TooManyRounds, UndefinedName
from kpg.service import Change, Interest, Limits, Service
from kpg.service.limits import GroupLimits, QueryLimits
from tests.service.conftest import ServiceOn, dataflows_of

ROWS = 3_000


@pytest.fixture
def service(service_on: ServiceOn, workers: int) -> Iterator[Service]:
    """A service with two large relations and a small one."""
    with service_on(workers, limits=Limits(query=QueryLimits(product_rows=1_000_000))) as service:
        for name, rows in (("big", ROWS), ("big2", ROWS), ("small", 10)):
            service.create_relation(name, {"x": int})
            service.put(name, [(row,) for row in range(rows)])
        yield service


PRODUCTS = {
    "binary": "p(x, y) :- big(x), big2(y).",
    "with a condition": "p(x) :- big(x), big2(y), x + y = 7.",
    "of three": "p(x, y, z) :- big(x), small(y), big2(z).",
    "in a recursion": "p(x, y) :- big(x), big2(y). p(x, z) :- p(x, y), p(y, z).",
    "through rules": "q(x) :- big(x), x > 0. r(x) :- big2(x). p(x, y) :- q(x), r(y), small(z), x > z.",
    "negated": "q(x, y) :- big(x), big2(y). p(x) :- small(x), !q(x, x).",
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("joins", ["auto", "binary", "delta"])
def test_a_product_of_large_relations_is_refused_at_planning(service: Service, name: str, joins: str) -> None:
    service.register(PRODUCTS[name])
    calm = service.interest("big", owner="calm")
    calm.take()
    dataflows = len(dataflows_of(service.db))
    with pytest.raises(OverLimit, match="without a common column") as raised:
        service.interest("p", owner="wild", joins=joins)
    assert "product_rows" in str(raised.value.detail)
    assert 'limits={"product_rows": N}' in str(raised.value.hint) and "--max-product-rows" in str(raised.value.hint)
    assert len(dataflows_of(service.db)) == dataflows  # nothing is left of it
    service.transact([Change("big", (-1,))])
    assert [row for row, _, _ in calm.take()] == [(-1,)]


def test_products_with_few_rows_are_planned(service: Service) -> None:
    service.register(
        "p(x, y) :- big(x), small(y). q(x, n) :- small(x), n = count : { big(_) }. one(1). r(x, y) :- big(x), one(y)."
    )
    assert service.query("p").num_rows == 10 * ROWS
    assert service.query("q").num_rows == 10
    assert service.query("r").num_rows == ROWS
    service.register("j(x) :- big(x), big2(x).")
    assert service.query("j").num_rows == ROWS


def test_the_estimated_rows_of_a_product_are_those_that_were_not_removed(service_on: ServiceOn, workers: int) -> None:
    """History keeps each change of the relation with one row."""
    with service_on(workers, history=None, limits=Limits(query=QueryLimits(product_rows=ROWS * ROWS * 2))) as service:
        for name, rows in (("big", ROWS), ("big2", ROWS), ("one", 1)):
            service.create_relation(name, {"x": int})
            service.put(name, [(row,) for row in range(rows)])
        for row in range(1, 10):
            service.transact([Change("one", (row - 1,), -1), Change("one", (row,))])
        service.register("p(x, y) :- big(x), one(z), big2(y), x + y = z.")
        assert sorted(service.query("p").to_pylist(), key=str) == [{"x": x, "y": 9 - x} for x in range(10)]


def test_sql_is_limited_too(service: Service) -> None:
    with pytest.raises(OverLimit, match="without a common column"):
        service.execute_sql("SELECT a.x FROM big a, big2 b WHERE a.x + b.x = 7")
    assert service.execute_sql("SELECT count(*) FROM big a JOIN big2 b ON a.x = b.x").rows() == [(ROWS,)]


EXCEEDED = {
    "step_rows": (100_000, "rows for one time"),
    "kept_rows": (100_000, "rows"),
    "kept_bytes": (100_000, "bytes"),
    "first_seconds": (0.005, "CPU time to its first answer"),
}


@pytest.mark.parametrize("name", EXCEEDED)
def test_a_query_that_uses_too_much_is_stopped_alone(service: Service, name: str) -> None:
    limit, what = EXCEEDED[name]
    service.register("p(x, y) :- big(x), big2(y), x < 1000.")
    calm = service.interest("big", owner="calm")
    calm.take()
    limits = {"product_rows": None, name: limit}
    for ask in (
        lambda: service.query("p", limits=limits),
        lambda: service.interest("p", owner="wild", limits=limits).take(),
    ):
        with pytest.raises(OverLimit, match=what) as raised:
            ask()
        assert name in str(raised.value.detail)
        assert f'limits={{"{name}": N}}' in str(raised.value.hint)
        assert f"--max-{name.replace('_', '-')}" in str(raised.value.hint)
        assert not [output for output in service.db.outputs if output != "answer big"]  # nothing is left of it
    service.transact([Change("big", (-1,))])
    assert [row for row, _, _ in calm.take()] == [(-1,)]
    assert service.query("p", limits={"product_rows": None}).num_rows == 1001 * ROWS


CLOSURES = {
    "levels": "p(x, y) :- edge(x, y). p(x, z) :- p(x, y), edge(y, z).",
    "a composition": "p(x, y) :- edge(x, y). p(x, z) :- p(x, y), p(y, z).",
    "two relations": "p(x, y) :- edge(x, y). p(x, z) :- q(x, y), edge(y, z). q(x, z) :- p(x, y), edge(y, z).",
}
CLOSED_NODES = 2_500  # which reach each other: the closure has six million rows


@pytest.mark.parametrize("name", CLOSURES)
@pytest.mark.parametrize("limit", ["step_rows", "kept_rows", "kept_bytes"])
def test_a_recursion_is_stopped_while_one_operator_derives_its_rows(service: Service, name: str, limit: str) -> None:
    """What the operator keeps counts in the middle of its step, not only what it has sent at the end."""
    service.create_relation("edge", {"x": int, "y": int})
    random = Random(1)
    edges = [(node, (node + 1) % CLOSED_NODES) for node in range(CLOSED_NODES)]
    service.put("edge", edges + [(random.randrange(CLOSED_NODES), random.randrange(CLOSED_NODES)) for _ in edges])
    service.register(CLOSURES[name])
    service.query("p", limit=1, limits={"kept_bytes": None})  # kernels are loaded
    began = process_time()
    service.query("p", limit=1, limits={"kept_bytes": None})
    whole, stopped = process_time() - began, []
    for _ in range(3):  # a collection of garbage, or a kernel that is compiled beside it, may count in one of them
        began = process_time()
        with pytest.raises(OverLimit) as raised:
            service.query("p", limit=1, limits={limit: 50_000 if limit != "kept_bytes" else 2_000_000})
        stopped.append(process_time() - began)
        assert limit in str(raised.value.detail)
    if service.db.is_single_worker:
        assert min(stopped) < whole / 2
    if limit == "kept_rows":
        assert int(re.sub("[^0-9]", "", raised.value.what.split("keeps")[1])) < CLOSED_NODES**2 / 2
    assert service.query("small").num_rows == 10


@pytest.mark.parametrize("limit", ["kept_rows", "kept_bytes"])
def test_the_state_of_an_operator_of_least_values_counts(service: Service, limit: str) -> None:
    service.create_relation("edge", {"x": int, "y": int})
    service.put("edge", [(node // 10, node) for node in range(1, 20_000)])
    service.register("near(y, min(d)) :- small(y), d = 0. near(y, min(c)) :- near(x, d), edge(x, y), c = d + 1.")
    with pytest.raises(OverLimit, match="keeps") as raised:
        interest = service.interest("near", limits={limit: 5_000 if limit == "kept_rows" else 300_000})
        interest.take()
    assert limit in str(raised.value.detail)
    assert service.query("near").num_rows == 20_000


COUNTER = "n(1). n(y) :- n(x), y = x + 1."


@pytest.mark.parametrize("ask", ["query", "interest", "tenant"])
def test_a_recursion_without_a_limit_of_rounds_is_stopped_by_its_cpu_time(service: Service, ask: str) -> None:
    """The rows of facts and of arguments come after the dataflow was complete for the first time."""
    limits = {"rounds": 10**9, "first_seconds": 0.3}
    with pytest.raises(OverLimit, match="seconds of CPU time") as raised:
        if ask == "query":
            service.query(COUNTER, language="datalog", limits=limits)
        elif ask == "interest":
            service.register(COUNTER)
            service.interest("n", limits=limits).take()
        else:
            service.register("up(x, y) :- small(x), y = x. up(x, z) :- up(x, y), z = y + 1.")
            service.interest("up", arguments={"x": 1}, limits=limits).take()
    assert "first_seconds" in str(raised.value.detail)


@pytest.mark.parametrize("workers", [1], indirect=True)
def test_cpu_time_counts_anew_for_each_time(service: Service) -> None:
    """A query is not stopped for what it has used for many times together."""
    service.register("pairs(x, y) :- big(x), small(y).")
    interest = service.interest("pairs", limits={"first_seconds": 0.5, "step_rows": 200_000})
    for value in range(60):
        service.put("big", [(-number,) for number in range(1, 300)], diff=1 if value % 2 == 0 else -1)
    assert len(interest.take()) > 10 * ROWS
    usage = next(flow.usage for flow in service.db.worker.dataflows.values() if flow.name == "answer pairs")
    assert usage.seconds > 0 and usage.rows == 0


def test_a_request_sets_the_rounds_of_its_recursion(service: Service) -> None:
    service.register("up(x) :- small(x). up(y) :- up(x), y = x + 1, y < 500.")
    with pytest.raises(TooManyRounds):
        service.query("up", limits={"rounds": 20})
    assert service.query("up").num_rows == 500


LONG_RECURSIONS = {
    "operator": "WITH RECURSIVE t (x) AS (SELECT x FROM small UNION SELECT x + 1 FROM t WHERE x < 99) SELECT x FROM t",
    "loop": "WITH RECURSIVE t (x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM t WHERE x < 99) SELECT x FROM t",
    "with a limit": "WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 10000) "
    "t (x BIGINT) AS (SELECT x FROM small UNION SELECT x + 1 FROM t WHERE x < 99) SELECT x FROM t",
}


@pytest.mark.parametrize("name", LONG_RECURSIONS)
def test_a_request_sets_the_rounds_of_its_recursion_in_sql(service: Service, name: str) -> None:
    """The limit that a text sets for itself is not above that of the request."""
    with pytest.raises(TooManyRounds, match="within 20 rounds"):
        service.execute_sql(LONG_RECURSIONS[name], limits={"rounds": 20})
    assert len(service.execute_sql(LONG_RECURSIONS[name], limits={"rounds": 500})) == 100
    assert service.execute_sql("SELECT count(*) FROM small").rows() == [(10,)]


def test_a_recursion_that_returns_at_its_limit_fails_at_a_lower_one_of_the_request(service: Service) -> None:
    text = (
        "WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 50) t (x BIGINT) AS (SELECT 1 UNION SELECT x + 1 FROM t) "
    )
    assert service.execute_sql(f"{text} SELECT count(*) FROM t").rows() == [(50,)]
    with pytest.raises(TooManyRounds, match="within 20 rounds"):
        service.execute_sql(f"{text} SELECT count(*) FROM t", limits={"rounds": 20})


@pytest.mark.parametrize("workers", [1], indirect=True)  # the patch does not reach other processes
def test_the_share_of_cpu_time_is_limited_after_the_first_answer(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kpg.api.usage_groups.SHARE_WINDOW_SECONDS", 0.0)
    service.register("pairs(x, y) :- big(x), small(y).")
    calm, wild = service.interest("big"), service.interest("pairs", limits={"cpu_percent": 0.0001})
    assert len(wild.take()) == 10 * ROWS  # the first answer is not limited by it
    for value in range(-3, 0):
        service.transact([Change("big", (value,))])
    with pytest.raises(OverLimit, match="of the CPU time"):
        wild.take()
    assert len(calm.take()) == ROWS + 3


@pytest.mark.parametrize(("limits", "error"), [({"colour": 1}, UndefinedName), ({"step_rows": -1}, InputError)])
def test_wrong_limits_are_refused(service: Service, limits: dict[str, int], error: type[KpgError]) -> None:
    with pytest.raises(error):
        service.interest("big", limits=limits)


ON_WORKERS = pytest.mark.parametrize("workers", [1, 2, 3])  # three work in slices


@ON_WORKERS
@pytest.mark.parametrize("kind", ["session", "tenant"])
def test_the_queries_of_a_session_or_tenant_are_limited_together(
    service_on: ServiceOn, workers: int, kind: str
) -> None:
    """On several workers, on each of them."""
    limits = Limits(**{kind: GroupLimits(kept_rows=25_000)})  # type: ignore[arg-type]
    rows = 10_000 * workers
    with service_on(workers, limits=limits) as service:
        service.create_relation("n", {"x": int})
        service.grant("n", "*", "read")
        service.put("n", [(row,) for row in range(rows)])
        with service.grants.acting_as("acme"):
            service.register(" ".join(f"acme_{number}(x, y) :- n(x), y = x * 2." for number in range(9)))
            interests = []
            with pytest.raises(OverLimit, match=f"the queries of this {kind} keep") as raised:
                for number in range(9):
                    owner = "one" if kind == "session" else number
                    interests.append(service.interest(f"acme_{number}", owner=owner, sharing="nothing"))
                    interests[-1].take()
            assert len(interests) > 1
            assert f"--max-{kind}-kept-rows" in str(raised.value.hint)
            with service.grants.acting_as("globex"):
                calm = service.interest("n", owner="other")
                assert len(calm.take()) == rows
            for interest in interests:
                service.uninterest(interest)
            again = service.interest("acme_8", owner="one", sharing="nothing")  # what was released does not count
            assert len(again.take()) == rows


@ON_WORKERS
@pytest.mark.parametrize("kind", ["session", "tenant"])
def test_queries_that_are_too_small_to_be_measured_add_up(service_on: ServiceOn, workers: int, kind: str) -> None:
    limits = Limits(**{kind: GroupLimits(kept_rows=5_000)})  # type: ignore[arg-type]
    with service_on(workers, limits=limits) as service:
        service.create_relation("n", {"x": int})
        service.grant("n", "*", "read")
        service.put("n", [(row,) for row in range(500 * workers)])
        with service.grants.acting_as("acme"):
            for number in range(30):
                service.register(f"acme_{number}(x, y) :- n(x), y = x * 2 + {number}.")
            kept: list[Interest] = []
            with pytest.raises(OverLimit, match=f"the queries of this {kind} keep"):
                for number in range(30):
                    kept.append(service.interest(f"acme_{number}", owner="one"))
                    kept[-1].take()
            assert 5 <= len(kept) <= 20


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("use", ["kept_rows", "step_rows", "first_seconds", "cpu_percent"])
def test_a_session_over_a_limit_on_one_worker_may_ask_for_more(service_on: ServiceOn, workers: int, use: str) -> None:
    """Each worker knows its own share. If one refused to install a query that others install, all would be lost."""
    with service_on(workers, limits=Limits(session=GroupLimits(**{use: 10_000}))) as service:
        service.create_relation("n", {"x": int})
        service.put("n", [(row,) for row in range(900)])
        service.register(" ".join(f"p{number}(x, y) :- n(x), y = x * 2 + {number}." for number in range(4)))
        first, other = (service.interest(f"p{number}", owner=owner) for number, owner in enumerate(["one", "two"]))
        assert len(first.take()) == len(other.take()) == 900
        use_more = f"{use_more_on_the_last_worker.__module__}:{use_more_on_the_last_worker.__name__}"
        service.db.call_workers(use_more, use=use)
        asked: list[Interest] = []
        for ask in (
            lambda: asked.append(service.interest("p2", owner="one")) or asked[-1].take(),
            lambda: service.query("p3", owner="one"),
            lambda: service.execute_sql("SELECT x + 1 FROM n GROUP BY x", owner="one"),
        ):
            with suppress(OverLimit):  # stopped with its first rows, or before
                ask()
            assert service.query("p3", owner="two").num_rows == 900
        service.put("n", [(-1,)])
        assert len(other.take()) == 1
        dataflows_of(service.db)  # the same on all workers
        service.drop_owner("one")
        again = service.interest("p2", owner="one")  # another session, which counts anew
        assert len(again.take()) == 901


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("how", ["shared answer", "SQL"])
def test_a_query_on_an_answer_that_one_worker_has_just_stopped_is_refused(
    service_on: ServiceOn, workers: int, how: str
) -> None:
    """The others have not heard of it yet, and build the query. All go on, and build the same from then on."""
    with service_on(workers) as service:
        service.create_relation("n", {"x": int})
        service.put("n", [(row,) for row in range(100)])
        service.register("calm(x) :- n(x), x > 50.")
        calm = service.interest("calm", owner="calm")
        assert len(calm.take()) == 49
        if how == "SQL":
            service.execute_sql("CREATE MATERIALIZED VIEW base AS SELECT x, x * 2 AS y FROM n")
            stopped, ask = "base", lambda: service.execute_sql("SELECT y, count(*) FROM base GROUP BY y", owner="one")
        else:
            service.register("base(x, y) :- n(x), y = x * 2.")
            service.register("last(x) :- base(x, _), x > 7.")
            service.interest("base", owner="one", sharing="answers").take()
            stopped, ask = "answer base", lambda: service.interest("last", owner="one", sharing="answers").take()
        fail = f"{fail_on_some_workers.__module__}:{fail_on_some_workers.__name__}"
        assert all(service.db.call_workers(fail, name=stopped, last=True)), dataflows_of(service.db)
        with pytest.raises(OverLimit, match="stopped by a test"):
            ask()
        service.db.call_workers(fail, name=stopped, last=False)  # now the others hear of it
        service.put("n", [(100,)])
        assert len(calm.take()) == 1 and service.query("calm").num_rows == 50
        assert service.query("p(x, y) :- n(x), n(y), x + y < 3.", language="datalog").num_rows == 6
        service.drop_owner("one")
        if how == "SQL":
            service.execute_sql("DROP MATERIALIZED VIEW base")


def fail_on_some_workers(db: Any, name: str, last: bool) -> bool:
    """On a worker: stop a dataflow, on the last one or on all others, without a message to peers."""
    flows = [flow for flow in db.worker.dataflows.values() if flow.name == name]
    if (db.worker.index == db.worker.peers - 1) == last:
        for flow in flows:
            db.worker.fail(flow, OverLimit("stopped by a test"), from_peer=True)
    return bool(flows)


def use_more_on_the_last_worker(db: Any, use: str) -> None:
    """On a worker: count more use than the limits allow, on the last one only."""
    if db.worker.index < db.worker.peers - 1:
        return
    groups = {
        group.number: group for flow in db.worker.dataflows.values() for group in getattr(flow.usage, "groups", ())
    }
    first = groups[min(groups)]
    first.window.start -= 1_000.0
    name = {"cpu_percent": "seconds"}.get(use, use)
    setattr(first, name, getattr(first, name) + 10**6)


@ON_WORKERS
@pytest.mark.parametrize(
    ("limit", "what"),
    [
        ({"step_rows": 50_000}, "produce .* rows for one time"),
        ({"first_seconds": 0.001}, "take .* seconds of CPU time for one time"),
    ],
)
def test_the_work_of_a_session_is_limited_together(
    service_on: ServiceOn, workers: int, limit: dict[str, float], what: str
) -> None:
    limits = Limits(session=GroupLimits(**limit))  # type: ignore[arg-type]
    with service_on(workers, limits=limits) as service:
        for name in ("n", "m"):
            service.create_relation(name, {"x": int})
            service.put(name, [(row,) for row in range(2_000)])
        for ask in (
            lambda: service.query("p(x, y) :- n(x), m(y).", language="datalog", owner="one"),
            lambda: service.execute_sql("SELECT n.x FROM n, m WHERE (n.x + m.x) % 5 > 0", owner="one"),
        ):
            with pytest.raises(OverLimit, match=f"the queries of this session {what}") as raised:
                ask()
            (name,) = limit
            assert f"--max-session-{name.replace('_', '-')}" in str(raised.value.hint)
        assert service.query("p(x, y) :- n(x), m(y), x < 500.", language="datalog").num_rows == 1_000_000
        for group in groups_of(service):
            assert group["step_rows"] == 0 and group["kept_rows"] == 0 and abs(group["first_seconds"]) < 1e-6
        service.drop_owner("one")
        assert workers == 1 or not groups_of(service)


def groups_of(service: Service) -> list[dict[str, Any]]:
    """What the queries of sessions and tenants use, on each worker."""
    if service.db.is_single_worker:
        return [asdict(group) for group in service._usage.values()]
    workers = service.db.describe()["workers"]
    return [group for worker in workers for group in worker["usage_groups"]]


@pytest.mark.parametrize(("workers", "tenants"), [(1, 20), (2, 20)])
def test_a_dataflow_that_tenants_share_counts_for_none_of_their_sessions(
    service_on: ServiceOn, workers: int, tenants: int
) -> None:
    with service_on(workers, limits=Limits(session=GroupLimits(kept_rows=1_000))) as service:
        service.create_relation("e", {"x": int, "y": int})
        service.put("e", [(row % tenants, row) for row in range(5_000)])
        service.register("r(x, y) :- e(x, y), y > 0.")
        interests = [service.interest("r", arguments={"x": x}, owner=x) for x in range(tenants)]
        assert sum(len(interest.take()) for interest in interests) == 4_999


def test_the_share_of_cpu_time_of_a_session_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpg.api.usage_groups.SHARE_WINDOW_SECONDS", 0.0)
    monkeypatch.setattr("kpg.api.usage_guard.MEASURE_ROWS", 0)
    service = Service(kpg.open(), limits=Limits(session=GroupLimits(cpu_percent=0.0001)))
    service.create_relation("n", {"x": int})
    service.put("n", [(row,) for row in range(2_000)])
    calm = service.interest("n")
    service.register("m(x, y) :- n(x), y = x * 2.")
    with pytest.raises(OverLimit, match="the queries of this session use") as raised:
        service.interest("m", owner="one").take()
    assert "--max-session-cpu-percent" in str(raised.value.hint)
    assert len(calm.take()) == 2_000
    service.db.close()


DOUBLED = "WITH c0 AS (SELECT x FROM big)" + "".join(
    f", c{number} AS (SELECT a.x FROM c{number - 1} a JOIN c{number - 1} b ON a.x = b.x)" for number in range(1, 60)
)


@pytest.mark.parametrize(
    "text",
    [
        f"{DOUBLED} SELECT * FROM c59",  # 2^59 relations
        "SELECT t0.x FROM " + ", ".join(f"big t{number}" for number in range(40)),
        "SELECT x FROM big WHERE " + " AND ".join(["EXISTS (SELECT 1 FROM small s WHERE s.x = big.x)"] * 40),
    ],
    ids=["common tables", "joins", "subqueries"],
)
def test_queries_of_too_many_relations_are_refused_before_they_are_planned(service: Service, text: str) -> None:
    with pytest.raises(OverLimit, match="relations") as raised:
        service.execute_sql(text)
    assert "--max-relations" in str(raised.value.hint)
    assert service.execute_sql("SELECT count(*) FROM small").rows() == [(10,)]


def test_a_rule_of_too_many_atoms_is_refused_unless_the_request_allows_them(service: Service) -> None:
    chain = ", ".join(f"e(x{number}, x{number + 1})" for number in range(34))
    service.create_relation("e", {"x": int, "y": int})
    service.register(f"long(x0) :- {chain}.")
    with pytest.raises(OverLimit, match="34 relations"):
        service.query("long")
    assert service.query("long", limits={"relations": 40}).num_rows == 0


@pytest.mark.parametrize("depth", [50, 150, 200, 300, 1_000])
def test_deep_expressions_are_computed_or_refused(service: Service, depth: int) -> None:
    try:
        assert service.execute_sql(f"SELECT x{' + 1' * depth} FROM small WHERE x = 0").rows() == [(depth,)]
    except ProgramError as error:
        assert "nested too deeply" in error.what
