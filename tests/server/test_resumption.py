"""Clients that lose their connection: no change is lost or repeated, and no transaction is applied twice."""

import asyncio
import json
import random
import threading
import time
from collections import Counter

import pytest
from websockets.sync.client import connect as raw

import kpg
from kpg.server.session_limits import SessionLimits
from tests.server.cutting_proxy import CuttingProxy
from tests.server.serving import ADMIN, PATHS, PATIENCE, USER, served

TRANSACTIONS = 60
LONGEST = 6_000  # bytes of a connection through the proxy; hello takes 500, and all rows together 3,000


class Writer(threading.Thread):
    """Writes through a proxy, each batch with its origin, and knows the rows at each time."""

    def __init__(self, proxy: CuttingProxy, seed: int) -> None:
        super().__init__(daemon=True)
        self.rows_at: dict[int, Counter] = {}
        self.failure: BaseException | None = None
        self._proxy = proxy
        self._chance = random.Random(seed)

    def run(self) -> None:
        try:
            with kpg.connect(self._proxy.url, token=USER) as db:
                self._proxy.start_cutting(LONGEST)
                rows: Counter = Counter()
                for batch in range(TRANSACTIONS):
                    changes = self._changes(rows)
                    at = db.transact([("n", row, diff) for row, diff in changes], origin=("writer", batch))
                    for row, diff in changes:
                        rows[row] += diff
                    self.rows_at[at] = +rows
        except BaseException as error:
            self.failure = error

    def _changes(self, rows: Counter) -> list[tuple[tuple[int, str], int]]:
        added = [((self._chance.randrange(20), "x" * self._chance.randrange(9)), 1) for _ in range(3)]
        removed = [(row, -1) for row in self._chance.sample(sorted(+rows), min(2, len(+rows)))]
        return added + removed


def check_steps(steps, rows_at: dict[int, Counter], first: int) -> Counter:
    """Each step leads from the answer at one time to the answer at a later one."""
    rows: Counter = Counter()
    upto = first
    for step in steps:
        assert not step.reset and step.upto >= upto
        assert all(upto - 1 <= time < step.upto for _, time, _ in step), "a change came twice"
        for row, _, diff in step:
            rows[row] += diff
        assert all(count > 0 for count in (+rows).values()) and not -rows
        rows = +rows
        assert rows == rows_at.get(step.upto - 1, Counter())
        upto = step.upto
    return rows


def prepared(server) -> int:
    with kpg.connect(server.url, token=USER) as db:
        db.create_relation("n", {"x": int, "text": str}, semantics="raw")
        db.register("doubled(x, text) :- n(x, text).")
        return db.insert("n", []) or 0


@pytest.mark.parametrize("seed", [1, 2])
def test_a_subscriber_over_a_cut_connection_sees_the_answer_at_each_time(seed):
    with (
        served() as server,
        CuttingProxy(server.url, seed) as cut,
        CuttingProxy(server.url, seed) as line,
    ):
        first = prepared(server)
        writer = Writer(line, seed)
        with kpg.connect(cut.url, token=USER) as db:
            cut.start_cutting(LONGEST)
            follows = db.interest("n", credit=random.Random(seed).choice([1, 2, 8]))
            writer.start()
            steps = []
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline and (writer.is_alive() or sum_of(steps) != final(writer)):
                try:
                    steps.append(follows.next(timeout=0.5))
                except kpg.TimeNotReached:
                    continue
            writer.join(PATIENCE)
            assert writer.failure is None and len(writer.rows_at) == TRANSACTIONS
            assert check_steps(steps, writer.rows_at, first) == final(writer)
            assert Counter(follows.rows()) == final(writer)
        assert cut.cuts > 1 and line.cuts > 1  # and yet nothing was noticed
        with kpg.connect(server.url, token=USER) as db:
            assert Counter(map(tuple, map(dict.values, db.query("n").to_pylist()))) == final(writer)


def final(writer: Writer) -> Counter:
    return writer.rows_at[max(writer.rows_at)] if writer.rows_at else Counter()


def sum_of(steps) -> Counter:
    rows: Counter = Counter()
    for step in steps:
        for row, _, diff in step:
            rows[row] += diff
    return +rows


def test_many_subscriptions_of_one_asyncio_connection_are_continued():
    async def work(cut: CuttingProxy, direct: str) -> None:
        async with (
            await kpg.connect_async(cut.url, token=USER) as db,
            await kpg.connect_async(direct, token=USER) as other,
        ):
            cut.start_cutting(6_000)
            answers = [await db.interest(name) for name in ("n", "doubled", "n")]
            want: Counter = Counter()
            for number in range(40):
                row = (number % 7, "y" * number)
                at = await other.insert("n", [row])
                want[row] += 1
                await asyncio.gather(*[read_until(answer, at + 1) for answer in answers])
                assert (await db.query("n", as_of=at)).num_rows == want.total()
            for answer in answers:
                assert Counter(await answer.rows()) == want

    async def read_until(answer, upto: int) -> None:
        while answer.upto < upto:
            step = await answer.next(timeout=PATIENCE)
            assert not step.reset

    with served() as server, CuttingProxy(server.url, 5) as cut:
        prepared(server)
        asyncio.run(work(cut, server.url))
        assert cut.cuts > 1


@pytest.mark.parametrize("limits", [SessionLimits(hold_seconds=0.1), SessionLimits(hold_bytes=1_000)])
def test_past_the_bounds_a_subscription_is_reset_to_a_snapshot(limits):
    with served(limits) as server, CuttingProxy(server.url) as line, kpg.connect(server.url, token=USER) as other:
        prepared(server)
        other.insert("n", [(1, "a"), (2, "b")])
        with kpg.connect(line.url, token=USER) as db:
            follows = db.interest("n")
            assert len(follows.next(timeout=PATIENCE)) == 2
            line.accepts = False
            line.cut()
            wait_for(lambda: server.hub.lost)  # the server has noticed
            other.transact([("n", (1, "a"), -1), *[("n", (x, "c" * 100)) for x in range(50)]])
            wait_for(lambda: not server.hub.lost)
            assert not server.hub.served.by_number
            line.accepts = True
            step = follows.next(timeout=PATIENCE)
            assert step.reset and len(step) == 51
            assert sorted(follows.rows()) == sorted(row for row, _, _ in step)
            other.insert("n", [(5, "e")])
            assert [row for row, _, _ in follows.next(timeout=PATIENCE)] == [(5, "e")]


def wait_for(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_lost_connection_is_continued_with_the_arguments_it_has_now():
    with served() as server, CuttingProxy(server.url) as line, kpg.connect(server.url, token=USER) as other:
        other.create_relation("edge", {"x": int, "y": int})
        other.register(PATHS)
        other.insert("edge", [(1, 2), (2, 3), (7, 8)])
        with kpg.connect(line.url, token=USER) as db:
            follows = db.interest("path", arguments={"x": 1})
            follows.add({"x": 7})
            assert sorted(follows.rows()) == [(1, 2), (1, 3), (7, 8)]
            line.cut()
            other.insert("edge", [(8, 9)])
            assert sorted(follows.rows()) == [(1, 2), (1, 3), (7, 8), (7, 9)]
            line.cut()
            wait_for(lambda: server.hub.lost)
            server.hub.call_soon(server.hub.lost.drop_oldest)
            wait_for(lambda: not server.hub.lost)  # so the client asks again, with all its arguments
            assert sorted(follows.rows()) == [(1, 2), (1, 3), (7, 8), (7, 9)]
            follows.remove({"x": 1})
            assert sorted(follows.rows()) == [(7, 8), (7, 9)]


def test_a_request_that_is_not_repeatable_fails_and_the_connection_goes_on():
    with served() as server, CuttingProxy(server.url) as line, kpg.connect(line.url, token=USER) as db:
        prepared(server)
        db.ping()
        line.cut_at_next_byte()
        with pytest.raises(kpg.Unreachable, match="before the reply") as caught:
            db.insert("n", [(1, "a")])
        assert "may have taken effect" in caught.value.hint
        line.cut_at_next_byte()
        assert db.insert("n", [(2, "a")], origin=("w", 1)) is not None
        line.cut_at_next_byte()
        assert db.query("n").to_pylist() == [{"x": 2, "text": "a"}]


def test_a_loss_that_was_noticed_before_a_request_does_not_fail_it():
    with served() as server, CuttingProxy(server.url) as line, kpg.connect(line.url, token=USER) as db:
        prepared(server)
        line.cut()
        wait_for(lambda: db._socket.protocol.state.name == "CLOSED")
        db.insert("n", [(1, "a")])
        assert db.query("n").num_rows == 1


def test_a_transaction_of_sql_that_was_cut_is_rolled_back_and_its_rest_is_not_committed():
    with served() as server, CuttingProxy(server.url) as line, kpg.connect(line.url, token=ADMIN) as db:
        db.sql("CREATE TABLE t (x int)")
        db.sql("BEGIN")
        db.sql("INSERT INTO t VALUES (1)")
        line.cut()
        db.ping()
        with pytest.raises(kpg.Unreachable, match="rolled the transaction back"):
            db.sql("INSERT INTO t VALUES (2)")
        db.sql("INSERT INTO t VALUES (3)")
        assert db.sql("SELECT x FROM t").to_pylist() == [{"x": 3}]


def test_a_client_that_does_not_reconnect_says_so_at_once():
    with served() as server, CuttingProxy(server.url) as line:
        db = kpg.connect(line.url, token=USER, reconnect=0)
        line.cut()
        with pytest.raises(kpg.Unreachable, match="cannot reach"):
            db.ping()
        wait_for(lambda: not server.hub.clients)
        assert not server.hub.lost


def test_interests_of_a_client_that_says_goodbye_are_dropped_at_once():
    with served() as server, kpg.connect(server.url, token=USER) as db:
        prepared(server)
        with kpg.connect(server.url, token=USER) as leaving:
            leaving.interest("n").next(timeout=PATIENCE)
        wait_for(lambda: len(server.hub.clients) == 1)
        assert not server.hub.lost and not server.hub.served.by_number
        assert db.ping() is not None


def test_only_the_same_rights_continue_an_interest():
    with served() as server, kpg.connect(server.url, token=USER) as db:
        prepared(server)
        db.interest("n").next(timeout=PATIENCE)
        (served_interest,) = server.hub.served.by_number.values()
        request = {"type": "interest", "id": 1, "name": "n", "key": "k" * 20, "step": 0}
        with raw(server.url, proxy=None) as mine, raw(server.url, proxy=None) as foreign:
            for socket, token in ((mine, USER), (foreign, ADMIN)):
                socket.send(json.dumps({"type": "hello", "id": 0, "version": 1, "token": token}))
                socket.recv(PATIENCE)
                socket.send(json.dumps(request))
            numbers = [json.loads(socket.recv(PATIENCE))["interest"] for socket in (mine, foreign)]
            assert len({served_interest.interest.id, *numbers}) == 3


def test_lost_sessions_give_way_to_new_ones():
    with served(SessionLimits(sessions=2)) as server, CuttingProxy(server.url) as line:
        prepared(server)
        lost = kpg.connect(line.url, token=USER)
        lost.interest("n").next(timeout=PATIENCE)
        line.accepts = False
        line.cut()
        wait_for(lambda: server.hub.lost and not server.hub.clients)
        with kpg.connect(server.url, token=USER), kpg.connect(server.url, token=USER) as second:
            assert second.ping() is not None and not server.hub.lost
        lost.close()
