"""Answers of several workers that lag behind the clock: what is read is complete, and others do not wait for it."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.api.waiting_requests import WaitingRequests
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
    c, light, product = product_of(lagging)
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
    assert product.snapshot().num_rows == PRODUCT_ROWS**2
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
