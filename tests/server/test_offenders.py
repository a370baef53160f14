"""Offenders beside a client that behaves well: each is refused or stopped, and the other client works on.

The latency of the other client is compared with its own before the offender began.
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import kpg
from kpg.bench.offenders import EDN_CHARACTERS, long_edn, long_programs, parentheses
from kpg.client.connection import Connection
from kpg.server.running_server import RunningServer
from tests.server.serving import ADMIN, PATHS, PATIENCE, USER, served

ROWS = 12_000
MILLION = 1_000_000
DELAY_SECONDS = 0.1  # of the median: a limit on a busy machine, where an engine that is blocked takes seconds
DELAY_TIMES = 5  # of the undisturbed median, if the machine is so busy that this is more
STOPPED_SECONDS = 90.0  # a limit on a busy machine; on an idle one each offender ends within two seconds


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """A server with the default limits, two large relations and two of a million rows."""
    with served() as server:
        with kpg.connect(server.url, token=ADMIN) as db:
            db.create_relation("edge", {"x": int, "y": int})
            db.register(PATHS)
            for name in ("big", "big2"):
                db.create_relation(name, {"x": int})
                db.insert(name, [(row,) for row in range(ROWS)])
            for name in ("million", "million2"):
                db.create_relation(name, {"x": int})
                rows = {"x": np.arange(MILLION)}
                server.hub.engine.run(lambda service, name=name, rows=rows: service.put(name, rows)).result(PATIENCE)
            db.create_relation("start", {"x": int, "y": int})
            db.create_attribute(":item/price", int)
        yield server


@pytest.fixture(scope="module")
def url(server: RunningServer) -> str:
    """The address of the server."""
    return server.url


class CalmClient:
    """Inserts and follows an answer on a thread of its own, and checks every change and its latency."""

    def __init__(self, url: str) -> None:
        self._db = kpg.connect(url, token=USER)
        self._answer = self._db.interest("path")
        self._end = threading.Event()
        self.latencies: list[float] = []  # from an insert or a removal to its change
        self.undisturbed = 0.0  # the median latency before the offender begins
        self._measured = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        try:
            self._answer.rows()
            while not self._end.is_set() or not self.latencies:
                for change, rows in ((self._db.insert, [(1, 2)]), (self._db.remove, [])):
                    began = time.perf_counter()
                    change("edge", [(1, 2)])
                    assert self._answer.rows() == rows
                    self.latencies.append(time.perf_counter() - began)
                if not self._measured.is_set() and len(self.latencies) >= 10:
                    self.undisturbed = statistics.median(self.latencies)
                    self.latencies.clear()
                    self._measured.set()
        except BaseException as error:
            self.failure = error
        finally:
            self._measured.set()

    def __enter__(self) -> "CalmClient":
        self._thread.start()
        self._measured.wait()
        return self

    def __exit__(self, *ignored: object) -> None:
        self._end.set()
        self._thread.join()
        self._db.close()
        assert self.failure is None, self.failure
        assert statistics.median(self.latencies) < self.undisturbed + max(DELAY_SECONDS, DELAY_TIMES * self.undisturbed)


def product(db: Connection) -> object:
    return db.query("p(x, y) :- big(x), big2(y).", language="datalog")


def computed_key(db: Connection) -> object:
    return db.query("p(x) :- big(x), big2(y), x + y = 7.", language="datalog")


def million_pairs(db: Connection) -> object:
    return db.query("cp3(x) :- million(x), million2(y), x + y = 7.", language="datalog")


def million_product(db: Connection) -> object:
    return db.query("p(x, y) :- million(x), million2(y).", language="datalog")


def large_product(db: Connection) -> object:
    limits = {"product_rows": 200_000_000, "step_rows": 10_000_000}
    return db.query("p(x, y) :- big(x), big2(y), x < 8000, y < 8000.", language="datalog", limits=limits)


def divergence(db: Connection) -> object:
    return db.query("n(1). n(y) :- n(x), y = x + 1.", language="datalog")


def counter_in_rounds(db: Connection) -> object:
    limits = {"rounds": 100_000, "first_seconds": 0.1}
    return db.query("n(1). n(y) :- n(x), y = x + 1.", language="datalog", limits=limits)


def unknown_names(db: Connection) -> object:
    clauses = " ".join(f"[?x :a {number}]" for number in range(EDN_CHARACTERS // 15))
    return db.query(f"[:find ?x :where {clauses}]", language="edn")


def long_text(db: Connection) -> object:
    return long_edn(db, 8.0, None)


def many_parentheses(db: Connection) -> object:
    return parentheses(db, 1.0, None)


def batch_of_programs(db: Connection) -> object:
    return long_programs(db, 1.0, None)


def alternatives(db: Connection) -> object:
    return db.register("many(x) :- big(x)" + ", (x > 1 ; x < 3)" * 13 + ".")


def many_rules(db: Connection) -> object:
    db.register(" ".join(f"r{number + 1}(x) :- r{number}(x)." for number in range(1_000)) + " r0(x) :- big(x).")
    return db.interest("r1000")


def sql_product(db: Connection) -> object:
    return db.sql("SELECT count(*) FROM big a, big2 b WHERE a.x + b.x = 7")


OFFENDERS: tuple[tuple[Callable[[Connection], object], type[kpg.KpgError], str], ...] = (
    (product, kpg.OverLimit, "--max-product-rows"),
    (computed_key, kpg.OverLimit, "--max-product-rows"),
    (large_product, kpg.OverLimit, "--max-step-rows"),
    (divergence, kpg.TooManyRounds, "rounds"),
    (million_pairs, kpg.OverLimit, "--max-product-rows"),
    (million_product, kpg.OverLimit, "--max-product-rows"),
    (counter_in_rounds, kpg.OverLimit, "--max-first-seconds"),
    (unknown_names, kpg.OverLimit, "--max-text-literals"),
    (long_text, kpg.OverLimit, "--max-"),
    (many_parentheses, kpg.ParseError, "nested too deep"),
    (batch_of_programs, kpg.ParseError, "end of the text"),
    (alternatives, kpg.OverLimit, "--max-plan-seconds"),
    (many_rules, kpg.OverLimit, "--max-answer-rules"),
    (sql_product, kpg.OverLimit, "--max-product-rows"),
)


@pytest.mark.parametrize("offender", OFFENDERS, ids=lambda offender: offender[0].__name__)
def test_an_offender_is_stopped_while_another_client_works(
    url: str, offender: tuple[Callable[[Connection], object], type[kpg.KpgError], str]
) -> None:
    offend, error, named = offender
    with CalmClient(url), kpg.connect(url, token=USER) as wild:
        began = time.monotonic()
        with pytest.raises(error) as raised:
            offend(wild)
        assert time.monotonic() - began < STOPPED_SECONDS
        assert named in str(raised.value)
        assert wild.query("big", limit=1).num_rows == 1  # its session goes on


def query_names(server: RunningServer) -> list[str]:
    """Return the names of the dataflows that compute `endless`."""
    work = server.hub.engine.run(lambda service: [flow.name for flow in service.db.worker.dataflows.values()])
    return [name for name in work.result(PATIENCE) if "endless" in name]


@pytest.mark.parametrize("end", ["release", "disconnect"])
def test_a_working_query_that_ends_delays_nobody(server: RunningServer, end: str) -> None:
    """It would run for hours: 10^12 pairs. It ends with its interest, or with its client."""
    wild = kpg.connect(server.url, token=ADMIN)
    if "endless_pairs" not in {entry.name for entry in wild.catalog()}:
        wild.register("endless_pairs(x) :- million(x), million2(y), x + y = 7.")
    with CalmClient(server.url):
        interest = wild.interest(
            "endless_pairs", limits={"product_rows": None, "step_rows": None, "first_seconds": None}
        )
        time.sleep(0.5)
        assert query_names(server)
        began = time.monotonic()
        if end == "release":
            interest.close()
        else:
            wild.close()
        while query_names(server):
            assert time.monotonic() - began < STOPPED_SECONDS
            time.sleep(0.01)
    wild.close()


def test_users_raise_limits_of_their_queries_and_admins_lift_them(url: str) -> None:
    rule = "p(x, y) :- big(x), big2(y), x < 2."
    for token, limit in ((USER, 10**9), (ADMIN, None)):
        with kpg.connect(url, token=token) as db:
            rows = db.query(rule, language="datalog", limits={"product_rows": limit})
            assert rows.num_rows == 2 * ROWS
    with kpg.connect(url, token=USER) as db:
        for limit in (None, 10**12):
            with pytest.raises(kpg.NotAuthorised, match="product_rows"):
                db.query(rule, language="datalog", limits={"product_rows": limit})
        with pytest.raises(kpg.InputError, match="not a number"):
            db.query(rule, language="datalog", limits={"product_rows": "many"})


def test_a_tenant_that_diverges_leaves_the_others_on_its_dataflow_alone(url: str) -> None:
    with CalmClient(url), kpg.connect(url, token=USER) as db, kpg.connect(url, token=USER) as wild:
        db.create_relation("step", {"x": int, "y": int})
        db.create_relation("endless", {"x": int})
        db.register("up(x, y) :- step(x, y). up(x, z) :- up(x, y), endless(x), z = y + 1.")
        db.insert("step", [(x, 0) for x in range(11)])
        db.insert("endless", [(10,)])
        tenants = [db.interest("up", arguments={"x": x}) for x in range(10)]
        for x, tenant in enumerate(tenants):
            assert tenant.rows() == [(x, 0)]
        offender = wild.interest("up", arguments={"x": 10})
        db.insert("step", [(x, 1) for x in range(10)])
        for x, tenant in enumerate(tenants):
            assert sorted(tenant.rows()) == [(x, 0), (x, 1)]
        with pytest.raises(kpg.TooManyRounds):
            offender.rows()
        db.insert("step", [(3, 2)])
        assert sorted(tenants[3].rows()) == [(3, 0), (3, 1), (3, 2)] and sorted(tenants[4].rows()) == [(4, 0), (4, 1)]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_light_answer_is_not_stopped_for_the_epochs_of_a_burst(workers: int) -> None:
    """Clients close more epochs than `--max-lag` before it gets its turn beside a heavy query, which is stopped."""
    limits = {"product_rows": 10**9, "step_rows": 10**9}
    with served(max_lag=3, workers=workers) as server, kpg.connect(server.url, token=USER) as db:
        for name in ("light", "left", "right"):
            db.create_relation(name, {"x": int})
        db.register("counted(n) :- n = count : {light(_)}.")
        db.register("pairs(x, y) :- left(x), right(y), (x * y) % 99991 = 7.")
        for name in ("left", "right"):
            db.insert(name, [(row,) for row in range(1_500)])
        light, heavy = db.interest("counted"), db.interest("pairs", limits=limits)
        assert len(light.rows()) <= 1 and heavy.rows()

        def write(first: int) -> None:
            with kpg.connect(server.url, token=USER) as other:
                for number in range(first, first + 100):
                    other.transact([("light", (number,)), ("left", (-number,)), ("right", (-number,))])

        writers = [threading.Thread(target=write, args=(10_000 * (number + 1),)) for number in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while light.rows() != [(400,)]:  # a read waits only a second for the writes of others
            assert time.monotonic() < deadline
