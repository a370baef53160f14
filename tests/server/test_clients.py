"""Clients and a server over real sockets: what is asked, followed, refused, and what others notice of it: nothing."""

import asyncio
import datetime
import threading
import time
from decimal import Decimal
from uuid import UUID

import pytest

import kpg
from kpg.server.session_limits import SessionLimits
from tests.server.serving import ADMIN, PATHS, PATIENCE, USER, served


@pytest.fixture
def names(request):
    """Names of relations that no other test of the module uses."""
    stem = request.node.name.split("[")[0].removeprefix("test_")[:40].replace("-", "_")
    return f"e_{stem}", f"p_{stem}"


def paths(db, names):
    """A relation of edges, and its paths."""
    edge, path = names
    db.create_relation(edge, {"x": int, "y": int})
    return db.register(PATHS.replace("edge", edge).replace("path", path))


def test_changes_reach_every_interested_client(server, db, names):
    """A14.1: a client registers at run time and receives the changes of its answer; another one makes them."""
    edge, path = names
    assert paths(db, names) == (path,)
    follows = db.interest(path)
    assert list(follows.next(PATIENCE)) == []
    with kpg.connect(server.url, token=USER) as other:
        t = other.insert(edge, [(1, 2), (2, 3)])
    step = follows.next(PATIENCE)
    assert sorted(step) == [((1, 2), t, 1), ((1, 3), t, 1), ((2, 3), t, 1)] and step.upto == t + 1
    db.remove(edge, [(1, 2)])
    assert sorted(follows.rows()) == [(2, 3)]
    assert follows.to_pandas().values.tolist() == [[2, 3]]
    assert follows.columns == ("x", "y")


def test_a_transaction_is_one_time_and_a_step_holds_all_of_it(server, db, names):
    """A14.4: no partial epochs: after every step the answer is that of one time, however many messages it took."""
    edge, path = names
    db.create_relation(edge, {"x": int, "y": int})
    follows = db.interest(edge)
    follows.next(PATIENCE)
    t = db.transact([(edge, (k, k)) for k in range(5_000)])  # more than one message holds
    step = follows.next(PATIENCE)
    assert len(step) == 5_000 and {time for _, time, _ in step} == {t}


def test_rows_of_now_include_what_this_client_has_written(db, names):
    edge, path = names
    paths(db, names)
    follows = db.interest(path, credit=1)
    for k in range(20):
        db.insert(edge, [(k, k + 1)])
        assert len(follows.rows()) == (k + 1) * (k + 2) // 2


def test_a_query_answers_once_by_name_or_text_and_drops_what_it_built(server, db, admin, names):
    edge, path = names
    paths(db, names)
    db.insert(edge, [(1, 2), (2, 3)])
    assert db.query(path).to_pylist() == [{"x": 1, "y": 2}, {"x": 1, "y": 3}, {"x": 2, "y": 3}]
    cut = db.query(edge, limit=1)
    assert cut.num_rows == 1 and cut.schema.metadata[b"cut"] == b"true"
    assert db.query(edge).schema.metadata[b"cut"] == b"false"


def test_values_of_every_kind_come_back(db, names):
    edge, _ = names
    db.create_relation(edge, {"n": int, "s": str, "f": float})
    rows = [(2**63 - 1, 'ünï\n"', float("inf")), (-(2**62), "", 0.1)]
    db.insert(edge, rows)
    assert sorted(db.query(edge).to_pylist(), key=str) == sorted(
        [dict(zip("nsf", row, strict=True)) for row in rows], key=str
    )
    with pytest.raises(kpg.KpgError):
        db.insert(edge, [(datetime.date(2024, 1, 1), "x", 1.0)])


def test_a_read_as_of_a_time_waits_for_it(server, db, names):
    """A17.13: a read that names a time is answered when that time is complete."""
    edge, _ = names
    db.create_relation(edge, {"x": int})
    t = db.insert(edge, [(1,)])
    answers = []
    with kpg.connect(server.url, token=USER) as other:
        waits = threading.Thread(target=lambda: answers.append(other.query(edge, as_of=t + 1)))
        waits.start()
        assert db.ping() == t and not answers
        db.insert(edge, [(2,)])
        waits.join(PATIENCE)
    assert answers[0].to_pylist() == [{"x": 1}, {"x": 2}]


def test_a_read_as_of_a_time_that_does_not_come_says_so():
    with served(SessionLimits(wait_seconds=0.05)) as server, kpg.connect(server.url, token=USER) as db:
        db.create_relation("edge", {"x": int})
        with pytest.raises(kpg.TimeNotReached, match="time 99 did not come"):
            db.query("edge", as_of=99)


def test_what_the_server_refuses_is_the_same_error_here(db, names):
    edge, path = names
    paths(db, names)
    with pytest.raises(kpg.ParseError) as caught:
        db.register("q(x) :- r(x")
    assert caught.value.line == 1 and caught.value.column
    with pytest.raises(kpg.UndefinedName, match="nothing|no "):
        db.interest("no_such_rule")
    with pytest.raises(kpg.SchemaMismatch):
        db.insert(edge, [(1, 2, 3)])
    with pytest.raises(kpg.SchemaMismatch, match="rows cannot be a str"):
        db.insert(edge, "12")
    assert db.query(edge).num_rows == 0  # and no row was inserted


def test_a_user_may_not_end_the_server_nor_move_its_clock(db, admin):
    """A14.3: requests of admins."""
    with pytest.raises(kpg.NotAuthorised, match="needs the role admin"):
        db.shutdown()
    with pytest.raises(kpg.NotAuthorised):
        db.advance()
    before = admin.ping()
    assert admin.advance() > (before if before is not None else -1)


def test_a_closed_input_takes_no_more_changes(db, admin, names):
    edge, _ = names
    db.create_relation(edge, {"x": int})
    db.insert(edge, [(1,)])
    admin.close_input(edge)
    with pytest.raises(kpg.Closed):
        db.insert(edge, [(2,)])
    assert db.query(edge).num_rows == 1


def test_a_relation_is_dropped_with_its_rows(db, names):
    name, _ = names
    db.create_relation(name, {"x": int})
    db.insert(name, [(1,)])
    with db.interest(name), pytest.raises(kpg.InUse):
        db.drop_relation(name)
    db.drop_relation(name)
    with pytest.raises(kpg.UndefinedName):
        db.drop_relation(name)
    db.create_relation(name, {"x": str})
    assert db.query(name).num_rows == 0


def test_a_client_that_goes_takes_its_interests_with_it(server, db, names):
    """A14.2, A12.4: the interests of a connection are dropped when it ends."""
    edge, path = names
    paths(db, names)
    gone = kpg.connect(server.url, token=USER)
    gone.interest(path)
    with pytest.raises(kpg.InUse):
        db.unregister(path)
    gone.close()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            db.unregister(path)
            break
        except kpg.InUse:
            continue
    else:
        raise AssertionError("the interest of a client that has gone is still there")


def test_closing_a_subscription_ends_iteration(db, names):
    edge, path = names
    paths(db, names)
    follows = db.interest(path)
    follows.next(PATIENCE)
    follows.close()
    follows.close()
    assert list(follows) == []


def test_a_timeout_says_that_nothing_came(db, names):
    edge, _ = names
    db.create_relation(edge, {"x": int})
    follows = db.interest(edge)
    follows.next(PATIENCE)
    with pytest.raises(kpg.TimeNotReached, match="no change came in time"):
        follows.next(0.01)
    db.insert(edge, [(1,)])
    assert list(follows.next(PATIENCE))  # and the connection continues


def test_granularity_delays_and_consolidates(db, names):
    """A13.6: outputs come at full intervals, what came and went in between does not come at all."""
    edge, _ = names
    db.create_relation(edge, {"x": int})
    follows = db.interest(edge, granularity=0.5)
    follows.next(PATIENCE)
    began = time.monotonic()
    for k in range(10):
        db.insert(edge, [(k,)])
        db.remove(edge, [(k,)])
    db.insert(edge, [(99,)])
    steps = [follows.next(PATIENCE)]
    while (99,) not in {row for step in steps for row, _, _ in step}:
        steps.append(follows.next(PATIENCE))
    seconds = time.monotonic() - began
    assert len(steps) <= 2 + seconds / 0.5  # one for an interval, however long 21 transactions take
    assert sum(map(len, steps)) <= 1 + 2 * len(steps)  # in each at most what is cut off at its ends
    assert follows.rows() == [(99,)]


def test_the_same_calls_can_be_awaited(server, names):
    edge, path = names

    async def work():
        async with await kpg.connect_async(server.url, token=USER) as db:
            await db.create_relation(edge, {"x": int, "y": int})
            await db.register(PATHS.replace("edge", edge).replace("path", path))
            follows = await db.interest(path)
            times = await asyncio.gather(*(db.insert(edge, [(k, k + 1)]) for k in range(5)))
            assert len(set(times)) == 5
            total = 0
            async for step in follows:
                total += sum(diff for _, _, diff in step)
                if total == 15:
                    break
            assert len(await follows.rows()) == 15 and (await follows.table()).num_rows == 15
            with pytest.raises(kpg.UndefinedName):
                await db.query("nothing_of_this_name")
            await follows.close()
            return await db.ping()

    assert asyncio.run(work()) is not None


def test_a_server_that_is_not_there_and_one_that_goes_are_unreachable():
    with pytest.raises(kpg.Unreachable, match="cannot reach") as caught:
        kpg.connect("ws://127.0.0.1:1")
    assert caught.value.hint == "Check that kpg serve is running there."
    with served() as server:
        db = kpg.connect(server.url, token=USER, reconnect=0)
    with pytest.raises(kpg.Unreachable) as caught:
        db.ping()
    assert "the server is shutting down" in str(caught.value)
    with pytest.raises(kpg.InputError, match="is not the address of a server"):
        kpg.connect("ftp://host")


def test_a_wrong_token_is_refused(server):
    for token in ("wrong-token", ""):
        with pytest.raises(kpg.NotAuthorised):
            kpg.connect(server.url, token=token)


def test_an_admin_can_end_the_server():
    with served() as server:
        with kpg.connect(server.url, token=ADMIN) as db:
            db.shutdown()
        server._thread.join(PATIENCE)
        assert not server._thread.is_alive()


def test_values_of_every_type_travel_both_ways(db, names):
    relation, rule = names
    columns = {
        "d": "date", "t": "timestamp", "m": "decimal(9,2)", "b": "binary", "u": "uuid", "n": "number?",
        "big": "unsigned", "w": "decimal(38,2)", "i": "interval", "c": "time", "l": "timestamp_ntz", "j": "jsonb",
        "a": "interval[]",
    }  # fmt: skip
    noon = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    row = (noon.date(), noon, Decimal("1.50"), b"\x00", UUID(int=7), None, 2**64 - 1)
    wide = (Decimal(10**35), kpg.Interval(1, 2, 3), datetime.time(1, 2), datetime.datetime(2024, 5, 1), '{"a": null}')
    wide += ((None, kpg.Interval(days=1)),)
    db.create_relation(relation, columns)
    db.insert(relation, [row + wide])
    body = f'{relation}(d, t, m, b, u, n, big, w, i, c, l, j, a), d >= "2024-01-01"'
    db.register(f"{rule}(w, u, i, big, n, d, m, t, b, j, l, a, c) :- {body}.")
    ((w, u, i, big, n, d, m, t, b, j, plain, a, c),) = db.interest(rule).rows()
    assert (d, t, m, b, u, n, big, w, i, c, plain, j, a) == row + wide


def test_records_and_the_functors_of_the_server(tmp_path):
    (tmp_path / "server_functors.py").write_text("def half(x):\n    return x // 2\n")
    with served(functors=tmp_path / "server_functors.py") as server, kpg.connect(server.url, token=ADMIN) as db:
        db.register("""
            .type L = [h: number, t: L]
            .functor half(x: number): number
            .decl l(x: L)
            .decl tails(x: L, n: number)
            tails(t, @half(h)) :- l([h, t]).
        """)
        db.insert("l", [("[8, [3, nil]]",), ("nil",)])
        assert sorted(db.interest("tails").rows()) == [("[3, nil]", 4)]
        with pytest.raises(kpg.UndefinedName, match="functor @other has no function here"):
            db.register(".functor other(x: number): number\n.decl p(x: number)\np(@other(1)).")
