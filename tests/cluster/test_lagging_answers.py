"""Answers of several workers that lag behind the clock: what is read is complete, and others do not wait for it."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.api import answer_lag
from kpg.api.waiting_requests import WaitingRequests
from kpg.cluster import cluster_output
from kpg.cluster.coordinator import RankReply
from kpg.cluster.rank_commands.time_commands import RankReport
from kpg.columns.updates import no_updates
from kpg.protocol.error_messages import failure_of
from tests.dataflow.test_slices import QUERIES, counted_rows, random_rows

PRODUCT_ROWS = 900


@pytest.fixture(scope="module", params=[2, 3], ids=["two workers", "three workers"])
def lagging(request):
    """A db whose workers work in slices; each test makes its own relations on it."""
    with kpg.open(workers=request.param, history=3) as db:
        db.serve_requests(WaitingRequests())
        yield db


def drop_all(db, outputs):
    for output in outputs:
        output.release()
    for source in list(db.inputs.values()):
        source.drop()


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_answers_equal_those_of_a_db_that_waits(lagging, seed):
    """At every time that is read, whenever queries are installed, and in sum of the changes that listeners get."""
    random = Random(seed)
    base, names = lagging.epoch, list(QUERIES)
    random.shuffle(names)
    with kpg.open(history=None) as whole:
        inputs = [[db.input("a", k=int, v=int), db.input("b", k=int, w=int)] for db in (whole, lagging)]
        outputs, sums, present = {}, {}, ([], [])
        for _ in range(8):
            for number in (0, 1):
                held = present[number]  # a loop over rows with negative counts may never end
                removed = [held.pop(random.randrange(len(held))) for _ in range(random.randrange(4)) if held]
                rows = random_rows(random, 6)
                held += rows
                for relations in inputs:
                    relations[number].insert(rows)
                    relations[number].remove(removed)
            whole.advance()
            lagging.advance(wait=False)
            if names and random.random() < 0.8:
                name = names.pop()
                outputs[name] = [
                    QUERIES[name](db, *relations).output(name)
                    for db, relations in zip((whole, lagging), inputs, strict=True)
                ]
                sums[name] = []
                outputs[name][1].on_change(sums[name].extend)
            for name, (expected, actual) in outputs.items():
                if random.random() < 0.4:
                    first = max(0, whole.epoch - 3, actual.first_epoch - base)
                    as_of = random.randrange(first, whole.epoch)
                    assert counted_rows(actual, base + as_of) == counted_rows(expected, as_of), (name, as_of)
                    assert actual.complete_through >= base + as_of
            if random.random() < 0.3:
                lagging.work(0.001)
        while lagging.work(0.01):
            pass
        assert lagging.sealed.elements == ((lagging.epoch - 1,),)
        for name, (expected, actual) in outputs.items():
            total = {}
            for row, _, diff in sums[name]:
                total[row] = total.get(row, 0) + diff
            assert {row: count for row, count in total.items() if count} == counted_rows(expected), name
            assert counted_rows(actual) == counted_rows(expected)
        drop_all(lagging, [actual for _, actual in outputs.values()])


def product_of(db, rows=PRODUCT_ROWS):
    a, b, c = (db.input(name, x=int) for name in "abc")
    for side in (a, b):
        side.insert([(row,) for row in range(rows)])
    product = a.select("x", one=1).join(b.select(y="x", one=1), on="one").select("x", "y").output("product")
    return c, c.count("x").output("light"), product


def test_a_light_answer_is_complete_before_a_heavy_one(lagging):
    rows = 2_000  # of each side: the product takes much longer than a few small epochs
    c, light, product = product_of(lagging, rows)
    first = lagging.epoch
    for number in range(5):
        c.insert([(number,)])
        epoch = lagging.advance(wait=False)
        light.wait(epoch)
        assert light.complete_through == epoch and len(light.rows()) == number + 1
        assert (product.complete_through or -1) < first
    sealed = lagging.sealed
    assert sealed is None or sealed.elements[0][0] < first
    product.wait()
    assert product.snapshot().num_rows == rows**2
    drop_all(lagging, [light, product])


def test_release_ends_a_query_that_works(lagging):
    c, light, product = product_of(lagging, 4_000)
    epoch = lagging.advance(wait=False)
    light.wait()
    assert (product.complete_through or -1) < epoch
    product.release()
    lagging.settle()
    names = [[flow["name"] for flow in worker["dataflows"]] for worker in lagging.describe()["workers"]]
    assert all("product" not in flows for flows in names)
    c.insert([(1,)])
    lagging.advance()
    assert light.rows() == [(1, 1)]
    drop_all(lagging, [light])


def test_an_embedded_cluster_leaves_work_only_if_asked(clusters):
    db = clusters(2)
    c, light, product = product_of(db, 300)
    c.insert([(1,)])
    epoch = db.advance(wait=False)
    light.wait(epoch)
    assert light.complete_through == epoch
    with pytest.raises(kpg.TimeNotReached, match="cannot complete"):
        light.wait(epoch + 1)
    product.wait(epoch)
    assert product.snapshot(epoch).num_rows == 90_000
    c.insert([(1,)])
    db.advance(wait=False)
    db.advance()
    assert light.rows() == [(1, 2)] and product.complete_through == db.epoch - 1
    drop_all(db, [light, product])


class FallingBehind:
    """An expensive answer of few rows that lags behind a light one, on a db that allows few epochs of lag."""

    def __init__(self, db):
        self.db = db
        self.a, self.b, self.c = (db.input(name, x=int) for name in "abc")
        pairs = self.a.select("x", one=1).join(self.b.select(y="x", one=1), on="one")
        self.product = pairs.filter((kpg.col("x") + kpg.col("y")) % 997 == 0).select("x", "y").output("product")
        self.light = self.c.count("x").output("light")
        self.present = {"a": [], "b": []}
        self.sums, self.times = {}, []
        self.product.on_change(self.receive)

    def receive(self, changes):
        for row, time, diff in changes:
            self.times.append(time)
            self.sums[row] = self.sums.get(row, 0) + diff
            assert time <= self.product.complete_through

    def insert(self, name, rows):
        self.db.inputs[name].insert([(row,) for row in rows])
        self.present[name] += rows

    def close_epochs(self, count):
        """Close epochs that change both answers, as soon as the light one is complete."""
        for number in range(count):
            self.c.insert([(number,)])
            self.insert("a", [-1])
            self.light.wait(self.db.advance(wait=False))
            self.db.work(0.0)

    def expected(self):
        counts = {name: Counter(rows) for name, rows in self.present.items()}
        return {(x, y): n * m for x, n in counts["a"].items() for y, m in counts["b"].items() if (x + y) % 997 == 0}


@pytest.fixture(scope="module")
def impatient():
    with kpg.open(workers=2, max_lag=3) as db:
        db.serve_requests(WaitingRequests())
        db.call_workers("tests.cluster.test_lagging_answers:judge_at_once")
        yield db


def judge_at_once(db):
    """On a worker: give answers that lag no time to catch up."""
    answer_lag.CATCH_UP_SECONDS = 0.0


def dataflow_ids(db, name):
    return db.call_workers("tests.cluster.test_lagging_answers:dataflow_id", name=name)


def dataflow_id(db, name):
    """On a worker: the id of the dataflow of an output."""
    return db.outputs[name].dataflow.id if name in db.outputs else -1


def test_an_answer_that_lags_on_workers_is_rebuilt_and_its_changes_are_the_difference(impatient):
    lagging = FallingBehind(impatient)
    lagging.insert("a", list(range(300)))
    lagging.insert("b", list(range(900, 1_000)))
    impatient.advance()
    assert lagging.sums == lagging.expected() and len(lagging.sums) > 50
    first = dataflow_ids(impatient, "product")
    closed = 0
    while dataflow_ids(impatient, "product") == first:
        if closed % 50 == 0:  # again if the workers were quicker
            lagging.insert("b", list(range(1_000, 16_000)))
            impatient.advance(wait=False)
        lagging.close_epochs(1)
        closed += 1
    assert len(set(dataflow_ids(impatient, "product"))) == 1
    impatient.advance()
    assert not lagging.product.ended
    assert {row: count for row, count in lagging.sums.items() if count} == lagging.expected()
    assert lagging.times == sorted(lagging.times)
    assert counted_rows(lagging.product) == lagging.expected()
    lagging.insert("b", [996])
    impatient.advance()
    assert {row: count for row, count in lagging.sums.items() if count} == lagging.expected()
    drop_all(impatient, [lagging.light, lagging.product])


def test_an_answer_that_lags_again_is_stopped_and_others_go_on(impatient):
    lagging = FallingBehind(impatient)
    lagging.insert("a", list(range(6_000)))
    lagging.insert("b", list(range(12_000)))
    with pytest.raises(kpg.Lagging, match="product fell too far behind") as raised:
        for _ in range(2_000):
            lagging.close_epochs(1)
            if lagging.product.ended:
                lagging.product.wait()
    assert "epochs behind" in raised.value.detail and "max_lag=" in raised.value.hint
    lagging.c.insert([(-5,)])
    impatient.advance()
    assert (-5, 1) in lagging.light.rows()
    drop_all(impatient, [lagging.light, lagging.product])


def test_changes_that_nobody_reads_are_bounded_while_answers_lag(lagging, monkeypatch):
    """In a server answers always may lag; a client that follows one and does not read must not fill the memory."""
    monkeypatch.setattr(cluster_output, "CHANGES_LIMIT", 100)
    rows = lagging.input("unread", n=int)
    answer = rows.output("unread answer", keep=False)
    lagging.advance(wait=False)
    answer.take_changes()
    expected = Counter()
    for epoch in range(300):
        rows.insert([(n,) for n in range(epoch % 5)])
        expected.update((n,) for n in range(epoch % 5))
        if epoch % 2:
            rows.remove([(0,)])
            expected[0,] -= 1
        lagging.advance(wait=False)
        assert answer.unread_rows <= 300
    answer.wait()
    assert answer.unread_rows <= 300
    sums = Counter()
    for row, time, diff in answer.changes():
        assert time >= answer.summed_through
        sums[row] += diff
    assert {row: n for row, n in sums.items() if n} == {row: n for row, n in expected.items() if n}
    drop_all(lagging, [answer])


def test_a_late_report_about_a_released_output_says_nothing_of_another_with_its_name(lagging):
    numbers = lagging.input("numbers", x=int)
    numbers.insert([(1,)])
    lagging.advance()
    first = numbers.output("double", keep=False)
    first.take_changes()
    after = lagging.completion.last_install
    first.release()
    second = numbers.output("double", keep=False)
    failure = failure_of(kpg.OverLimit("the first is stopped"))
    late = RankReport(changed=("double",), failures=(failure,), after=after, circulating={"double": (7,)})
    lagging.completion.take_replies([RankReply(late, [no_updates(1, 1)])])
    assert second.error() is None and second.circulating == ()
    assert [(row, diff) for row, _, diff in second.take_changes()] == [((1,), 1)]
    drop_all(lagging, [second])
