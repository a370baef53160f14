"""Answers that lag too far behind the clock are rebuilt once, then stopped; other answers notice nothing."""

from random import Random

import pytest

import kpg
from kpg.api import answer_lag
from tests.dataflow.test_slices import counted_rows

SIZE = 150


@pytest.fixture(autouse=True)
def check_after_each_slice(monkeypatch):
    monkeypatch.setattr(answer_lag, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(answer_lag, "CATCH_UP_SECONDS", 0.0)


class LaggingProduct:
    """A db with an expensive answer and a cheap one, and one that computes the same at once."""

    def __init__(self, db, reference):
        self.db, self.random = db, Random(3)
        self.inputs = [tuple(each.input(name, x=int) for name in "abc") for each in (db, reference)]
        self.products = [
            a.select("x", one=1).join(b.select(y="x", one=1), on="one").select("x", "y").output("product")
            for a, b, _ in self.inputs
        ]
        self.light = self.inputs[0][2].count("x").output("light")
        self.reference = reference
        for side in (0, 1):
            self.change(side, range(SIZE))

    def change(self, side, rows, removed=()):
        for inputs in self.inputs:
            inputs[side].insert([(row,) for row in rows])
            inputs[side].remove([(row,) for row in removed])

    def fall_behind(self, epochs):
        """Close epochs faster than the expensive answer can complete them."""
        for _ in range(epochs):
            number = self.random.randrange(1000, 2000)
            self.change(self.random.randrange(2), [number] * 3, [number] * 2)
            self.change(2, [number])
            self.db.advance(wait=False)
            self.reference.advance()
            for dataflow in (*[each.base().dataflow for each in self.inputs[0]], self.light.dataflow):
                self.db.worker.run_dataflow(dataflow)
            self.db.work(0.0)

    @property
    def product(self):
        return self.products[0]

    def finish(self):
        while self.db.work(0.01):
            pass
        assert counted_rows(self.product) == counted_rows(self.products[1])


@pytest.fixture
def lagging(request):
    with kpg.open(max_lag=getattr(request, "param", 5)) as db, kpg.open() as reference:
        yield LaggingProduct(db, reference)


def test_an_answer_that_lags_is_rebuilt_once_then_stopped(lagging):
    dataflow = lagging.product.dataflow
    while lagging.product.dataflow is dataflow:
        lagging.fall_behind(1)
    assert dataflow.dropped and lagging.db.epoch > 5
    with pytest.raises(kpg.Lagging, match="product fell too far behind") as raised:
        for _ in range(1000):
            lagging.fall_behind(1)
            lagging.product.complete_through  # noqa: B018  (raises when it was stopped)
    assert "epochs behind" in raised.value.detail and "max_lag=" in raised.value.hint
    lagging.light.wait()
    assert sum(count for _, count in lagging.light.rows()) == lagging.db.epoch


def test_an_answer_that_lags_has_time_to_catch_up(lagging, monkeypatch):
    """A light answer lags as well, if many epochs are closed before it gets its turn."""
    monkeypatch.setattr(answer_lag, "CATCH_UP_SECONDS", 60.0)
    dataflow = lagging.product.dataflow
    for _ in range(5):
        lagging.fall_behind(4)
    assert answer_lag.lag_of(lagging.product.dataflow).epochs > 5
    lagging.finish()
    assert lagging.product.dataflow is dataflow


def test_readers_of_changes_get_the_difference_of_a_rebuilt_answer(lagging):
    sums, last = {}, -1

    def receive(changes):
        nonlocal last
        before = last
        for row, time, diff in changes:
            assert time > before, "a time came in two deliveries"
            last = max(last, time)
            sums[row] = sums.get(row, 0) + diff
            assert time <= lagging.product.complete_through

    lagging.product.on_change(receive)
    lagging.db.advance()
    lagging.reference.advance()
    assert len(sums) == SIZE * SIZE
    dataflow = lagging.product.dataflow
    while lagging.product.dataflow is dataflow:
        lagging.fall_behind(1)
    lagging.finish()
    assert {row: total for row, total in sums.items() if total} == counted_rows(lagging.products[1])


@pytest.mark.parametrize("lagging", [None], indirect=True)
def test_lag_and_pinned_bytes_are_described(lagging):
    lagging.fall_behind(12)
    (described,) = [flow for flow in lagging.db.describe()["dataflows"] if flow["name"] == "product"]
    assert described["lag_epochs"] > 3 and described["pinned_bytes"] > 0
    assert "epochs behind, pins" in lagging.product.explain()
    lagging.finish()
    assert answer_lag.lag_of(lagging.product.dataflow) == (0, 0)
    assert "behind" not in lagging.product.explain()


def test_bytes_that_a_lagging_answer_pins_in_traces_count(lagging):
    """Batches that no message refers to any more are pinned by the trace that a paused step still has to read."""
    lagging.db.advance()
    lagging.fall_behind(5)
    dataflow = lagging.product.dataflow
    queued = {id(part) for operator in dataflow.operators for part in answer_lag._queued(operator.queues)}
    first = dataflow.tracker.least_in_flight()
    traced = {id(batch): batch for batch in answer_lag._unread_batches(dataflow, first)}
    assert traced and all(batch.lower.elements[0][0] >= first for batch in traced.values())
    assert answer_lag.lag_of(dataflow).pinned_bytes >= sum(batch.nbytes for batch in traced.values())
    assert answer_lag.lag_of(dataflow).pinned_bytes > 0 and queued


def test_an_answer_that_keeps_no_rows_and_was_not_read_is_rebuilt():
    with kpg.open(max_lag=3) as db, kpg.open() as reference:
        lagging = LaggingProduct(db, reference)
        a, b, _ = lagging.inputs[0]
        pairs = a.select("x", one=1).join(b.select(y="x", one=1), on="one")
        unkept = pairs.select("x", "y").output("unkept", keep=False)
        dataflow = unkept.dataflow
        while unkept.dataflow is dataflow:
            lagging.fall_behind(1)
        lagging.finish()
        sums = {}
        for row, _, diff in unkept.changes():
            sums[row] = sums.get(row, 0) + diff
        assert {row: total for row, total in sums.items() if total} == counted_rows(lagging.products[1])


def test_an_answer_that_keeps_no_rows_and_was_read_is_stopped_at_once():
    with kpg.open(max_lag=3) as db, kpg.open() as reference:
        lagging = LaggingProduct(db, reference)
        a, b, _ = lagging.inputs[0]
        pairs = a.select("x", one=1).join(b.select(y="x", one=1), on="one")
        unkept = pairs.select("x", "y").output("unkept", keep=False)
        list(unkept.changes())
        with pytest.raises(kpg.Lagging, match="unkept fell"):
            for _ in range(1000):
                lagging.fall_behind(1)
                unkept.complete_through  # noqa: B018  (raises when it was stopped)


def test_an_answer_that_is_rebuilt_and_not_read_is_complete_again(lagging):
    dataflow = lagging.product.dataflow
    while lagging.product.dataflow is dataflow:
        lagging.fall_behind(1)
    lagging.finish()
    lagging.change(0, [5000])
    lagging.db.advance()
    lagging.reference.advance()
    lagging.finish()
