"""Work that is ended at a random moment ends at once, in any operator; the db and its other answers stay usable.

Bounds are in CPU time of the thread, because tests share their machine: waiting for the helper thread takes none.
"""

import gc
from contextlib import contextmanager
from random import Random
from time import thread_time

import pytest

import kpg
from kpg.api.waiting_requests import WaitingRequests
from kpg.kernels.warm import load
from tests.api.long_operators import LONG, fill, random_rows

ROWS = 400_000
MAX_CPU_SECONDS = 0.2  # on a machine four times as slow as the reference, where it is 50 ms


@pytest.fixture(scope="module")
def loaded():
    """A db that works in slices, with a large relation that has indexes, and a small answer."""
    for _ in load():  # kernels that are compiled or loaded in the middle would count
        pass
    gc.collect()
    gc.freeze()  # a full collection would walk all that the tests before this one have left
    with kpg.open() as db:
        db.serve_requests(WaitingRequests())
        small = db.input("small", n=int)
        light = small.count("n").output("light")
        tables = fill(db, ROWS)
        indexes = [tables["big"].arrange("k"), tables["big"].arrange("v")]
        db.query("SELECT k FROM big")  # imports the modules for SQL
        db.settle()
        yield db, tables, small, light
        del indexes
    gc.unfreeze()


@contextmanager
def bounded():
    began = thread_time()
    yield
    assert thread_time() - began < MAX_CPU_SECONDS


@pytest.mark.parametrize("name", LONG)
def test_release_takes_effect_at_once(name, loaded):
    db, tables, small, light = loaded
    random = Random(name)
    for attempt in range(3):
        with bounded():
            answer = LONG[name](db, tables).output()
        dataflow = answer.dataflow
        end = thread_time() + random.random() * 0.25
        while thread_time() < end and answer.complete_through is None:
            with bounded():
                db.work(0.002)
        with bounded():
            answer.release()
        assert dataflow.dropped and dataflow.paused_step is None
        small.insert([(len(name) + attempt,)])
        with bounded():
            db.advance(wait=False)
            light.wait()
        assert (len(name) + attempt,) in [row[:1] for row in light.rows()]
        db.settle()
        while db.worker.is_busy:  # idle work follows
            with bounded():
                db.work(0.002)


def test_merges_of_a_relation_pause_and_its_readers_stay_right(loaded):
    """Large changes of a relation are merged into its indexes while other answers read them."""
    db, tables, small, light = loaded
    big = tables["big"]
    counted = big.count("k").output("counted")
    counted.wait()
    table = random_rows(3, ROWS // 2, ROWS, "k", "v")
    expected = sum(count for _, count in counted.rows())
    for change in (big.insert, big.remove):
        change(table)
        with bounded():
            db.advance(wait=False)
        expected += len(table) if change == big.insert else -len(table)
        late, busy = None, True
        while busy:
            with bounded():
                busy = db.work(0.002)
            if late is None and db.worker.is_busy:
                late = big.count("k").output("late")  # imports a trace that may be in the middle of a merge
        assert late is not None
        late.wait()
        assert sum(count for _, count in late.rows()) == sum(count for _, count in counted.rows()) == expected
        late.release()
    while db.idle():
        while db.work(0.002):
            pass
    counted.release()
