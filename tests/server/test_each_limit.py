"""Each limit of a query, a session, a tenant and a text, on a server with one worker, two and three.

What exceeds a limit is stopped alone. Its error names the limit, its value and how to raise it; the session goes on,
and so do the other sessions and tenants. It leaves no dataflow, no index and no use behind, on any worker.
The limits of messages, which no worker sees, are in test_bad_clients.py, test_session.py and tests/pgwire.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import psycopg
import pytest

import kpg
from kpg.api import usage_groups
from kpg.client.connection import Connection
from kpg.server.running_server import RunningServer, default_limits
from kpg.server.session_limits import SessionLimits
from kpg.server.tokens import tokens_of
from kpg.service import Service
from kpg.service.limits import GroupLimits, TextLimits
from tests.server.serving import ADMIN, PATIENCE, USER, served

ROWS = 3_000  # of the sides of products, and of each worker's share of `wide`
TEXTS = TextLimits(characters=60_000, rules=100, facts=40, literals=60)
ANSWER_RULES, PLAN_SECONDS, PLAN_BYTES, QUERIES = 70, 1.2, 64 << 20, 4
RULES, RELATIONS = 400, 30  # stored by one tenant; the tests of other limits store fewer
NO_LIMIT = GroupLimits()
LEAVING_SECONDS = 5.0  # in which the server drops what a client has held
GROUP_LIMITS = {
    "kept_rows": 7_000,
    "kept_bytes": 120_000,
    "step_rows": 100_000,
    "first_seconds": 0.01,
    "cpu_percent": 0.0001,
}
LEVELS = ("session", "tenant")
GROUPS = [f"{kind}_{name}" for kind in LEVELS for name in GROUP_LIMITS]
TENANTS = {f"token-of-{name}": name.replace("_", "") for name in (*GROUPS, "calm_tenant")}
TOKENS = tokens_of([("admin", ADMIN), ("user", USER), *(("user", *pair) for pair in TENANTS.items())])


@pytest.fixture(scope="module", params=[1, 2, 3], ids=["one worker", "two workers", "three workers"])
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    """A server with small limits of texts and sessions, and two relations."""
    limits = replace(
        default_limits(), text=TEXTS, answer_rules=ANSWER_RULES, plan_seconds=PLAN_SECONDS, plan_bytes=PLAN_BYTES,
        stored_rules=RULES, stored_relations=RELATIONS,
    )  # fmt: skip
    sessions = SessionLimits(queries=QUERIES)
    with served(sessions, tokens=TOKENS, workers=request.param, limits=limits, pg_port=0) as server:
        with kpg.connect(server.url, token=ADMIN) as db:
            for name, rows in (("big", ROWS), ("big2", ROWS), ("wide", ROWS * request.param)):
                db.create_relation(name, {"x": int})
                db.grant(name, "*", "read")
                put(server, name, np.arange(rows))
            db.create_relation("small", {"x": int})
            db.grant("small", "*", "read")
            db.grant("small", "*", "write")
            db.create_attribute(":item/size", int)
            db.insert(":item/size", [(row, row) for row in range(ROWS)])
            db.create_relation("sizes", {"k": int, "n": int})
            db.insert("sizes", [(0, 0)])
            db.insert("small", [(0,)])
            db.register("pairs(x, y) :- big(x), big2(y). bounded(x) :- small(x). bounded(y) :- bounded(x), y = x + 1.")
            db.register(
                "sized(k, x, y) :- sizes(k, n), big(x), x < n, big2(y), y < n. "
                "counted(k, x) :- sizes(k, x). counted(k, y) :- counted(k, x), x > 10, y = x + 1."
            )
            db.sql("CREATE TABLE copied (a bigint, b bigint); SELECT count(*) FROM copied")
        yield server


def put(server: RunningServer, name: str, rows: Any) -> None:
    server.hub.engine.run(lambda service: service.put(name, {"x": rows})).result(PATIENCE)


class CalmClient:
    """A client that follows an answer, whatever others do."""

    number = 0

    def __init__(self, url: str, token: str) -> None:
        self._db = kpg.connect(url, token=token)
        self._answer = self._db.interest("small")
        self._answer.rows()

    def check(self) -> None:
        """Insert a row, and receive it."""
        CalmClient.number -= 1
        self._db.insert("small", [(CalmClient.number,)])
        assert (CalmClient.number,) in self._answer.rows()
        self._db.remove("small", [(CalmClient.number,)])

    def close(self) -> None:
        self._db.close()


@contextmanager
def calm_clients(server: RunningServer) -> Iterator[None]:
    """Let a client without a tenant and one of another tenant work before and after the block, which leaves nothing."""
    before = held_by(server)
    clients = [CalmClient(server.url, token) for token in (USER, "token-of-calm_tenant")]
    try:
        for client in clients:
            client.check()
        yield
        for client in clients:
            client.check()
    finally:
        for client in clients:
            client.close()
    end = time.monotonic() + LEAVING_SECONDS
    while (after := held_by(server)) != before and time.monotonic() < end:
        time.sleep(0.01)  # until the server has noticed that the clients are gone
    assert after == before


def held_by(server: RunningServer) -> object:
    """The dataflows and indexes on each worker, the rules, and the rows that sessions and tenants keep."""

    def request(service: Service) -> object:
        service._inspector.forget()
        description = service.db.describe()
        workers = [
            (
                sorted(dataflow["name"] for dataflow in worker["dataflows"]),
                sorted((index["name"], index["dataflow"]) for index in worker["arrangements"]),
            )
            for worker in description.get("workers", [description])
        ]
        kept = sum(row["kept_rows"] for row in service.inspect("usage").to_pylist())
        return workers, kept, len(service.interests), len(service.sql.followed())

    return server.hub.engine.run(request).result(PATIENCE)


@contextmanager
def refused(name: str, value: float, option: str | None = None) -> Iterator[None]:
    """Check the error of a limit."""
    with pytest.raises(kpg.ResourceError) as raised:
        yield
    text = str(raised.value)
    assert name in text, text
    assert f"{value:,}" in text or f"{value:g}" in text, text
    assert f"kpg serve --max-{option or name.replace('_', '-')} N" in text, text


# Queries


def raised_query(**limits: float) -> Callable[[Connection], object]:
    return lambda db: db.query("pairs", limit=1, limits=limits)


QUERY_LIMITS: dict[str, tuple[float, str]] = {
    "product_rows": (1_000_000, "pairs"),
    "relations": (1, "pairs"),
    "step_rows": (100_000, "pairs"),
    "kept_rows": (50_000, "pairs"),
    "kept_bytes": (500_000, "pairs"),
    "first_seconds": (0.02, "pairs"),
    "rounds": (50, "bounded"),
}


@pytest.mark.parametrize("how", ["query", "interest"])
@pytest.mark.parametrize("name", QUERY_LIMITS)
def test_a_query_over_a_limit_of_its_own_is_stopped_alone(server: RunningServer, name: str, how: str) -> None:
    value, rule = QUERY_LIMITS[name]
    with calm_clients(server), kpg.connect(server.url, token=USER) as wild:
        if rule == "bounded":
            wild.insert("small", [(1,)])
        own = wild.interest("big", limits={})
        with refused(name, value):
            if how == "query":
                wild.query(rule, limit=1, limits={name: value})
            else:
                wild.interest(rule, limits={name: value}).rows()
        assert len(own.rows()) == ROWS
        assert wild.query("wide", limit=1).num_rows == 1
        wild.remove("small", [(1,)])


# Each way to ask, over each limit

PAIRS = "p(x, y) :- big(x), big2(y)."
COUNTING = "q(x) :- small(x). q(y) :- q(x), y = x + 1."
PAIRS_EDN = "[:find ?a ?b :where [?a :item/size ?c] [?b :item/size ?d]]"
PAIRS_PLAN = {
    "Join": {
        "variables": [],
        "left_plan": {"NameExpr": [[0], "big"]},
        "right_plan": {"NameExpr": [[1], "big2"]},
    }
}
PAIRS_SQL = "SELECT a.x, b.x AS y FROM big a, big2 b"
COUNTING_SQL = "WITH RECURSIVE t (x) AS (SELECT 1 UNION SELECT x + 1 FROM t) SELECT x FROM t"
EACH_X = [{"x": x} for x in range(ROWS)]
Ask = Callable[[Connection, dict[str, float]], object]
WAYS: dict[str, Ask] = {
    "Datalog": lambda db, limits: db.query(PAIRS, language="datalog", limit=1, limits=limits),
    "EDN": lambda db, limits: db.query(PAIRS_EDN, language="edn", limit=1, limits=limits),
    "JSON": lambda db, limits: db.query(
        json.dumps({"rules": [{"name": "p", "plan": PAIRS_PLAN}]}), language="plan", limit=1, limits=limits
    ),
    "private": lambda db, limits: db.interest("pairs", sharing="nothing", limits=limits).rows(),
    "shared": lambda db, limits: db.interest("pairs", sharing="answers", limits=limits).rows(),
    "arguments": lambda db, limits: db.interest("pairs", arguments=EACH_X, limits=limits).rows(),
    "SQL": lambda db, limits: db.sql(PAIRS_SQL, limits=limits),
}
RECURSIVE_WAYS: dict[str, Ask] = {
    "Datalog": lambda db, limits: db.query(COUNTING, language="datalog", limit=1, limits=limits),
    "private": lambda db, limits: db.interest("bounded", sharing="nothing", limits=limits).rows(),
    "arguments": lambda db, limits: db.interest("bounded", arguments={"x": 5}, limits=limits).rows(),
    "SQL": lambda db, limits: db.sql(COUNTING_SQL, limits=limits),
}
CASES = [
    (name, way, ask) for name in QUERY_LIMITS for way, ask in (RECURSIVE_WAYS if name == "rounds" else WAYS).items()
]


@pytest.mark.parametrize(("name", "way", "ask"), CASES, ids=[f"{name}-{way}" for name, way, _ in CASES])
def test_each_way_to_ask_has_each_limit(server: RunningServer, name: str, way: str, ask: Ask) -> None:
    value, _ = QUERY_LIMITS[name]
    with calm_clients(server), kpg.connect(server.url, token=USER) as wild:
        wild.insert("small", [(1,)])
        with refused(name, value):
            ask(wild, {name: value})
        assert wild.query("wide", limit=1).num_rows == 1
        wild.remove("small", [(1,)])


@contextmanager
def query_limits(server: RunningServer, **limits: float) -> Iterator[None]:
    """Let all queries that begin in this block have other limits: over PostgreSQL's protocol no request sets them."""

    def replaced(service: Service) -> Any:
        before, service.guard.limits = service.guard.limits, service.guard.limits.replaced(limits)
        return before

    def restored(before: Any) -> Callable[[Service], None]:
        return lambda service: setattr(service.guard, "limits", before)

    before = server.hub.engine.run(replaced).result(PATIENCE)
    try:
        yield
    finally:
        server.hub.engine.run(restored(before)).result(PATIENCE)


def pg_connection(server: RunningServer) -> Any:
    return psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user="any", password=USER, dbname="kpg", autocommit=True
    )


STATEMENTS = {
    "SELECT": [PAIRS_SQL],
    "INSERT": [f"INSERT INTO copied {PAIRS_SQL}"],
    "UPDATE": ["UPDATE copied SET b = (SELECT max(a.x + b.x) FROM big a, big2 b WHERE a.x + b.x <> copied.a)"],
    "cursor": ["BEGIN", f"DECLARE c CURSOR FOR {PAIRS_SQL}"],
    "SUBSCRIBE": ["BEGIN", f"DECLARE c CURSOR FOR SUBSCRIBE ({PAIRS_SQL})", "FETCH 3 FROM c"],
    "view": [f"CREATE MATERIALIZED VIEW seen AS {PAIRS_SQL}", "SELECT count(*) FROM seen"],
}
PG_CASES = [(name, "SELECT") for name in QUERY_LIMITS] + [("step_rows", kind) for kind in list(STATEMENTS)[1:]]


@pytest.mark.parametrize(("name", "kind"), PG_CASES)
def test_statements_over_the_protocol_of_postgresql_have_each_limit(
    server: RunningServer, name: str, kind: str
) -> None:
    value, _ = QUERY_LIMITS[name]
    statements = [COUNTING_SQL] if name == "rounds" else STATEMENTS[kind]
    with pg_connection(server) as calm:
        calm.execute("DELETE FROM copied")
        calm.execute("INSERT INTO copied VALUES (1, 2)")
        with calm_clients(server), pg_connection(server) as wild:
            with query_limits(server, **{name: value}), pytest.raises(psycopg.Error) as raised:
                for statement in statements:
                    wild.execute(statement)
            text = f"{raised.value} {raised.value.diag.message_detail} {raised.value.diag.message_hint}"
            assert name in text and f"--max-{name.replace('_', '-')} N" in text, text
            assert f"{value:,}" in text or f"{value:g}" in text, text
            assert raised.value.sqlstate == "54000" or name == "product_rows", raised.value.sqlstate
            wild.execute("ROLLBACK")
            wild.execute("DROP MATERIALIZED VIEW IF EXISTS seen")
            assert wild.execute("SELECT count(*) FROM big").fetchone() == (ROWS,)
            assert calm.execute("SELECT a, b FROM copied").fetchall() == [(1, 2)]


SHARED_LIMITS: dict[str, tuple[float, str]] = {
    "step_rows": (100_000, "sized"),
    "kept_rows": (50_000, "sized"),
    "kept_bytes": (500_000, "sized"),
    "first_seconds": (0.05, "sized"),
    "rounds": (50, "counted"),
}


@pytest.mark.parametrize("name", SHARED_LIMITS)
def test_of_tenants_that_share_a_dataflow_the_one_over_a_limit_is_stopped(server: RunningServer, name: str) -> None:
    """Two clients with cheap arguments, and one whose argument makes their dataflow exceed the limit."""
    value, rule = SHARED_LIMITS[name]
    with calm_clients(server), kpg.connect(server.url, token=ADMIN) as admin:
        admin.insert("sizes", [(1, 1), (2, 2), (3, ROWS)])
        cheap = [kpg.connect(server.url, token=USER) for _ in range(2)]
        limits = {name: value, "product_rows": 10**9}
        answers = [db.interest(rule, arguments={"k": k}, limits=limits) for k, db in enumerate(cheap, 1)]
        expected = [len(answer.rows()) for answer in answers]
        assert expected == ([1, 4] if rule == "sized" else [1, 1])
        with kpg.connect(server.url, token=USER) as wild, refused(name, value):
            wild.interest(rule, arguments={"k": 3}, limits=limits).rows()
        admin.insert("sizes", [(1, 3)])  # the cheap ones still follow their answers
        wanted = {"sized": {(1, x, y) for x in range(3) for y in range(3)}, "counted": {(1, 1), (1, 3)}}[rule]
        assert set(answers[0].rows()) == wanted
        assert len(answers[1].rows()) == expected[1]
        for db in cheap:
            db.close()
        admin.remove("sizes", [(1, 1), (1, 3), (2, 2), (3, ROWS)])


def set_window(seconds: float) -> Callable[[Service], object]:
    """Return a request that sets the window over which shares of CPU time are measured, on all workers."""

    def request(service: Service) -> object:
        if service.db.is_single_worker:
            return set_window_here(service.db, seconds)
        return service.db.call_workers("tests.server.test_each_limit:set_window_here", seconds=seconds)

    return request


def set_window_here(db: object, seconds: float) -> None:
    """On a worker: set the window."""
    usage_groups.SHARE_WINDOW_SECONDS = seconds  # type: ignore[misc]


@contextmanager
def short_windows(server: RunningServer) -> Iterator[None]:
    server.hub.engine.run(set_window(0.0)).result(PATIENCE)
    try:
        yield
    finally:
        server.hub.engine.run(set_window(10.0)).result(PATIENCE)


def test_a_query_that_uses_too_much_cpu_time_later_is_stopped_alone(server: RunningServer) -> None:
    with calm_clients(server), short_windows(server), kpg.connect(server.url, token=USER) as wild:
        wild.register("sums(x, y) :- wide(x), small(z), y = x + z.")
        interest = wild.interest("sums", limits={"cpu_percent": 0.0001})
        written = []
        with refused("cpu_percent", 0.0001):
            interest.rows()  # already too much, if other work comes between
            for number in range(1_000, 1_020):
                wild.insert("small", [(number,)])
                written.append((number,))
                interest.rows()
        assert wild.query("wide", limit=1).num_rows == 1
        wild.remove("small", written)
        interest.close()
        wild.unregister("sums")


def test_users_may_raise_each_limit_a_hundred_times(server: RunningServer) -> None:
    limits = {"rounds": 1_000, "product_rows": 10_000_000, "relations": 32, "first_seconds": 60}
    with kpg.connect(server.url, token=USER) as db, kpg.connect(server.url, token=ADMIN) as admin:
        for name, value in limits.items():
            assert db.query("wide", limit=1, limits={name: 100 * value}).num_rows == 1
            for more in (101 * value, None) if name != "rounds" else (101 * value,):  # None: those of the server
                with pytest.raises(kpg.NotAuthorised, match=name):
                    db.query("wide", limit=1, limits={name: more})
                assert admin.query("wide", limit=1, limits={name: more}).num_rows == 1


@pytest.mark.parametrize("name", ["product_rows", "relations", "step_rows", "kept_rows", "kept_bytes", "rounds"])
@pytest.mark.parametrize("value", [2**53, 2**63 - 1, 1e18, 1e300, float("inf")])
def test_a_limit_may_be_larger_than_any_query_needs(server: RunningServer, name: str, value: float) -> None:
    with kpg.connect(server.url, token=ADMIN) as admin:
        assert admin.query("wide", limit=1, limits={name: value}).num_rows == 1
        assert admin.query("w(x) :- wide(x).", language="datalog", limit=1, limits={name: value}).num_rows == 1
        assert admin.sql("SELECT count(*) FROM wide", limits={name: value}).num_rows == 1


def test_a_limit_that_is_no_number_of_rows_is_refused_by_its_name(server: RunningServer) -> None:
    with kpg.connect(server.url, token=ADMIN) as admin:
        for value, problem in ((2.5, "whole number"), (0.0, "positive"), (-1, "positive"), (float("nan"), "positive")):
            with pytest.raises(kpg.InputError, match=f"the limit step_rows must be .*{problem}"):
                admin.query("wide", limit=1, limits={"step_rows": value})
        assert admin.query("wide", limit=1, limits={"first_seconds": 2.5}).num_rows == 1
        assert admin.query("wide", limit=1, limits={"first_seconds": 1e300}).num_rows == 1


# Sessions and tenants


@contextmanager
def group_limits(server: RunningServer, kind: str, **limits: float) -> Iterator[None]:
    """Limit the sessions, or the tenants, that begin to work in this block."""

    def replaced(limits: GroupLimits) -> Callable[[Service], None]:
        def request(service: Service) -> None:
            service.limits = replace(service.limits, **{kind: limits})  # type: ignore[arg-type]

        return request

    server.hub.engine.run(replaced(GroupLimits(**limits))).result(PATIENCE)  # type: ignore[arg-type]
    try:
        yield
    finally:
        server.hub.engine.run(replaced(NO_LIMIT)).result(PATIENCE)


@contextmanager
def read_by_two(server: RunningServer, **limits: float) -> Iterator[tuple[Connection, Any, Any, Callable[[int], None]]]:
    """Let two clients read one answer, the first with limits; also yield the first, and a function that adds rows."""
    with kpg.connect(server.url, token=ADMIN) as admin:
        admin.register("doubled(k, y) :- sizes(k, n), y = n * 2. own(x, y) :- wide(x), y = x * 2.")
        written = []

        def write(rows: int) -> None:
            written.extend((number, number) for number in range(1, rows + 1))
            admin.insert("sizes", written)

        with kpg.connect(server.url, token=USER) as first, kpg.connect(server.url, token=USER) as second:
            answers = [first.interest("doubled", limits=limits), second.interest("doubled")]
            assert [answer.rows() for answer in answers] == [[(0, 0)], [(0, 0)]]
            yield first, *answers, write
        admin.remove("sizes", written)
        admin.unregister("doubled")


def test_the_limits_of_a_request_stop_no_other_client(server: RunningServer) -> None:
    with calm_clients(server), read_by_two(server, step_rows=100) as (_, limited, other, write):
        write(ROWS)
        assert len(other.rows()) == ROWS + 1
        with refused("step_rows", 100):
            limited.rows()


def test_an_answer_that_two_sessions_read_counts_for_neither(server: RunningServer) -> None:
    with (
        calm_clients(server),
        group_limits(server, "session", kept_rows=10_000),
        read_by_two(server) as (first, *answers, write),
    ):
        assert len(first.interest("own", sharing="nothing").rows()) == ROWS * server.settings.workers
        rows = 8_000 * server.settings.workers
        write(rows)
        assert [len(answer.rows()) for answer in answers] == [rows + 1, rows + 1]


@pytest.mark.parametrize("kind", LEVELS)
@pytest.mark.parametrize("name", GROUP_LIMITS)
def test_a_session_or_tenant_over_a_limit_is_stopped_alone(server: RunningServer, name: str, kind: str) -> None:
    """A tenant uses two sessions. The first queries stay; the one that exceeds the limit ends."""
    value, token = GROUP_LIMITS[name], f"token-of-{kind}_{name}"
    prefix = TENANTS[token]
    with (
        calm_clients(server),
        group_limits(server, kind, **{name: value}),
        short_windows(server),
        kpg.connect(server.url, token=token) as first,
        kpg.connect(server.url, token=token) as second,
    ):
        first.register(" ".join(f"{prefix}_{number}(x, y) :- wide(x), y = x * 2 + {number}." for number in range(4)))
        first.register(f"{prefix}_pairs(x, y) :- big(x), big2(y).")
        sessions = [first, first] if kind == "session" else [first, second]
        kept = []
        with refused(f"{kind}_{name}", value, f"{kind}-{name.replace('_', '-')}"):
            if name.startswith("kept"):
                for number in range(4):
                    kept.append(sessions[number % 2].interest(f"{prefix}_{number}"))
                    assert len(kept[-1].rows()) == ROWS * server.settings.workers
            else:
                sessions[1].query(f"{prefix}_pairs", limit=1)
        if name.startswith("kept"):
            assert 2 <= len(kept) < 4
            for interest in kept[:-1]:  # the last one has failed
                assert len(interest.rows()) == ROWS * server.settings.workers
                interest.close()
            with suppress(kpg.OverLimit):
                kept[-1].close()
            assert len(first.interest(f"{prefix}_3").rows()) == ROWS * server.settings.workers
        assert first.query("small", limit=1).num_rows == second.query("small", limit=1).num_rows == 1


def test_the_interests_of_a_session_are_limited(server: RunningServer) -> None:
    with calm_clients(server), kpg.connect(server.url, token=USER) as wild:
        held = [wild.interest("small") for _ in range(QUERIES)]
        with refused("queries", QUERIES):
            wild.interest("small")
        held[0].close()
        wild.interest("small")


def rules(first: int, count: int) -> str:
    return " ".join(f"own_{number}(x) :- small(x), x > {number}." for number in range(first, first + count))


def test_the_rules_and_relations_of_all_sessions_are_limited(server: RunningServer) -> None:
    names = []
    with calm_clients(server):
        for _ in range(RULES // 100 - 1):  # each connection counts what those before it have stored
            with kpg.connect(server.url, token=USER) as wild:
                names.append(wild.register(rules(100 * len(names), 100))[0])
        with kpg.connect(server.url, token=USER) as wild:
            with refused("stored_rules", RULES):
                wild.register(rules(RULES, 100))
            wild.unregister(names[0])
            names[0] = wild.register(rules(RULES, 100))[0]
            for name in names:
                wild.unregister(name)
            with refused("stored_relations", RELATIONS):
                for number in range(RELATIONS):
                    wild.create_relation(f"own_relation_{number}", {"x": int})
            wild.create_relation("own_relation_0", {"x": int})  # exists


# Texts


def facts(count: int) -> str:
    return ".decl f(x: number) " + " ".join(f"f({number})." for number in range(count))


TEXT_LIMITS: dict[str, tuple[float, str]] = {
    "text_characters": (TEXTS.characters, "a(x) :- small(x). //" + " " * TEXTS.characters),
    "text_rules": (TEXTS.rules, " ".join(f"a{number}(x) :- small(x), x > {number}." for number in range(101))),
    "text_facts": (TEXTS.facts, facts(41)),
    "text_literals": (TEXTS.literals, "a(x) :- " + ", ".join(f"x > {number}" for number in range(60)) + ", small(x)."),
    "answer_rules": (
        ANSWER_RULES,
        "a0(x) :- small(x). " + " ".join(f"a{n + 1}(x) :- a{n}(x), x != {n}." for n in range(71)) + " a(x) :- a71(x).",
    ),
    "plan_seconds": (PLAN_SECONDS, " ".join(f"{name}(x) :- small(x){', (x > 1 ; x < 3)' * 13}." for name in "bcdea")),
}


@pytest.mark.parametrize("name", TEXT_LIMITS)
def test_a_text_over_a_limit_is_refused_alone(server: RunningServer, name: str) -> None:
    value, text = TEXT_LIMITS[name]
    with calm_clients(server), kpg.connect(server.url, token=USER) as wild:
        began = time.monotonic()
        with refused(name, value):
            wild.query(text, language="datalog", limit=1)
        assert time.monotonic() - began < PATIENCE
        assert wild.query("wide", limit=1).num_rows == 1
