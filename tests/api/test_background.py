"""A db on a thread of its own: used from many threads, and from asyncio."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait

import pytest

import kpg
from kpg import col


@pytest.fixture
def db():
    db = kpg.open(background=True)
    yield db
    db.close()


def test_a_background_db_has_the_methods_of_an_embedded_one(db):
    edges = db.input("edges", src=int, dst=int)
    query = db.input("query", src=int, dst=int)
    by_src = edges.arrange("src")

    def step(reach):
        return by_src.join(reach, on={"src": "at"}).select(at=col("dst"), root=col("root")).concat(reach).distinct()

    reach = query.select(at=col("src"), root=col("src")).distinct().iterate(step)
    answer = reach.semijoin(query, on={"root": "src", "at": "dst"}).output("answer")
    edges.insert([(1, 2), (2, 3)])
    query.insert([(1, 3)])
    time = db.advance()
    assert answer.snapshot(as_of=time).to_pylist() == [{"at": 3, "root": 1}]
    assert answer.changes() == [((3, 1), 0, 1)]
    assert answer.rows() == [(3, 1)] and db["answer"].rows() == [(3, 1)]
    assert by_src.lookup(1).to_pylist() == [{"src": 1, "dst": 2}] and by_src.rows == 2
    assert db.epoch == 1 and answer.schema.names == ("at", "root")
    assert "edges by src" in db.explain() and "<table>" in answer._repr_html_()
    assert "Output" in repr(answer) and set(db.inputs) == {"edges", "query"}


def test_loops_groups_and_changes_are_proxied_too(db):
    numbers = db.input("numbers", n=int)
    with db.loop() as loop:
        even, odd = loop.variable(numbers), loop.variable(n=int)
        even.set(numbers.concat(odd.filter(col("n") < 5).select(n=col("n") + 1)).distinct())
        odd.set(even.filter(col("n") < 5).select(n=col("n") + 1).distinct())
        result = loop.leave(even)
    answer = result.concat(numbers.negate()).output()
    most = numbers.group_by().max("n").output("most")
    numbers.insert([(0,)])
    db.advance()
    assert sorted(answer.rows()) == [(2,), (4,)] and most.rows() == [(0,)]
    changes = answer.take_changes()
    assert len(changes) == 2 and {row for row, _, _ in changes} == {(2,), (4,)}
    with numbers.arrange("n") as by_n:
        assert by_n.scan().num_rows == 1


def test_inserts_of_many_threads_are_all_kept(db):
    rows = db.input("rows", worker=int, n=int)
    answer = rows.count("worker").output("answer")

    def work(worker):
        for n in range(50):
            rows.insert([(worker, n)])
            if n % 10 == 9:
                db.advance()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    db.advance()
    assert sorted(answer.rows()) == [(worker, 50) for worker in range(8)]


def test_readers_on_other_threads_see_whole_transactions(db):
    """A transfer is one call, so no snapshot sees half of it."""
    accounts = db.input("accounts", key="id", id=int, balance=int)
    total = accounts.group_by().sum("balance").output("total")
    accounts.upsert([(0, 100), (1, 100)])
    db.advance()
    stop, seen = threading.Event(), []

    def read():
        while not stop.is_set():
            seen.extend(total.rows())

    reader = threading.Thread(target=read)
    reader.start()
    for amount in range(1, 40):

        def transfer(inner, amount=amount):
            inner["accounts"].upsert([(0, 100 - amount)])
            inner["accounts"].upsert([(1, 100 + amount)])
            inner.advance()

        db.run(transfer)
    stop.set()
    reader.join()
    assert set(seen) == {(200,)}


def test_a_read_at_the_time_of_a_write_sees_it_from_any_thread():
    """A17.13"""
    with kpg.open(background=True, history=None) as db, ThreadPoolExecutor(4) as pool:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")

        def write(x):
            rows.insert([(x,)])
            return db.advance()

        times = list(pool.map(write, range(40)))
        seen = list(pool.map(lambda x: (x,) in answer.rows(as_of=times[x]), range(40)))
    assert all(seen)


def test_on_change_runs_on_the_thread_of_the_db(db):
    rows = db.input("rows", x=int)
    answer = rows.output("answer")
    threads, seen = set(), []

    def listen(changes):
        threads.add(threading.current_thread().name)
        seen.extend(changes)
        answer.rows()  # a listener may use the db, without a deadlock

    stop = answer.on_change(listen)
    rows.insert([(1,)])
    db.advance()
    stop()
    rows.insert([(2,)])
    db.advance()
    assert threads == {"kpg"} and seen == [((1,), 0, 1)]


def test_functions_run_in_the_order_of_submission(db):
    order = []
    futures = [db.submit(lambda inner, n=n: order.append(n)) for n in range(200)]
    wait(futures)
    assert order == list(range(200))


def test_errors_reach_the_caller_and_the_db_continues(db):
    rows = db.input("rows", x=int)
    with pytest.raises(kpg.UndefinedName):
        rows.select("y")
    with pytest.raises(kpg.SchemaMismatch):
        rows.insert([("a", 1)])
    with pytest.raises(ZeroDivisionError):
        db.run(lambda inner: 1 // 0)
    with pytest.raises(AttributeError):
        rows.no_such_method()
    rows.insert([(1,)])
    assert db.advance() == 0


def test_the_db_itself_refuses_other_threads(db):
    kept = []
    db.submit(lambda inner: kept.append(inner)).result()
    with pytest.raises(kpg.WrongThread):
        kept[0].advance()


def test_asyncio_awaits_without_blocking_its_loop(db):
    rows = db.input("rows", x=int)
    answer = rows.output("answer")
    ticks = Counter()

    async def tick(done):
        while not done.is_set():
            ticks["tick"] += 1
            await asyncio.sleep(0)

    def slow(inner):
        inner["rows"].insert([(1,)])
        threading.Event().wait(0.05)
        return inner.advance()

    async def main():
        done = asyncio.Event()
        ticking = asyncio.create_task(tick(done))
        epochs = await asyncio.gather(*[db.aio(slow) for _ in range(4)])
        done.set()
        await ticking
        return epochs

    assert asyncio.run(main()) == [0, 1, 2, 3]
    assert answer.rows() == [(1,)] * 4 and ticks["tick"] > 4


def test_closing_executes_queued_calls_and_ends_the_thread():
    before = set(threading.enumerate())
    with kpg.open(background=True) as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        assert {thread.name for thread in set(threading.enumerate()) - before} >= {"kpg"}
        futures = [db.submit(lambda inner: inner.advance()) for _ in range(20)]
    assert [future.result() for future in futures] == list(range(20))
    with pytest.raises(kpg.Closed):
        rows.insert([(1,)])
    with pytest.raises(kpg.Closed):
        answer.rows()
    db.close()
    assert not any(thread.name == "kpg" for thread in set(threading.enumerate()) - before)


def test_settings_reach_the_db():
    with kpg.open(background=True, history=None, max_rounds=7) as db:
        assert db.config.history is None and db.config.max_rounds == 7


def test_idle_time_is_used_to_merge(db):
    rows = db.input("rows", x=int, y=int)
    by_x = rows.arrange("x")
    for n in range(40):
        rows.insert({"x": list(range(n * 1000, n * 1000 + 1000)), "y": [0] * 1000})
        db.advance()
    for _ in range(6000):
        batches = db.run(lambda inner: max(arrangement["batches"] for arrangement in inner.describe()["arrangements"]))
        if batches == 1:
            break
        threading.Event().wait(0.01)
    assert batches == 1 and by_x.rows == 40_000


def test_a_capture_is_proxied_too(db, tmp_path):
    rows = db.input("rows", x=int)
    with rows.output("answer").capture(tmp_path / "a"):
        rows.insert([(1,)])
        db.advance()
    assert sum(changes.num_rows for changes, _ in kpg.replay(tmp_path / "a")) == 1


def test_a_listener_that_fails_between_calls_does_not_end_the_thread(db, caplog):
    big, failing = db.input("big", x=int), threading.Event()
    answer = big.join(big.select(y="x"), on={}).count().output("pairs")

    def fail(changes):
        failing.set()
        raise ValueError("the listener's own")

    answer.on_change(fail)
    big.insert({"x": list(range(2_000))})
    db.advance(wait=False)
    assert failing.wait(30)
    assert answer.rows() == [(4_000_000,)]
    assert "the listener's own" in caplog.text
