"""Ctrl-C during an advance, at a random moment: the db stays usable, and relations lose no rows."""

import os
import signal
import threading
from contextlib import contextmanager
from random import Random
from time import perf_counter

import numpy as np
import pyarrow as pa
import pytest

import kpg
from kpg.kernels.warm import load
from tests.api.long_operators import LONG, fill

ROWS = 200_000
LONG_ROWS = 1_000_000
MAX_SECONDS = 0.5  # on a machine with other work; 50 ms where it has none


@contextmanager
def interrupted_after(seconds):
    """Send SIGINT to this process after a while, unless the block has ended by then."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.parametrize("seed", range(4))
def test_a_db_stays_usable_after_an_interrupt(seed):
    random = Random(seed)
    before = signal.getsignal(signal.SIGINT)
    with kpg.open() as db:
        big, small = db.input("big", k=int, v=int), db.input("small", n=int)
        index = big.arrange("k")
        counted, light = big.count().output("counted"), small.count().output("light")
        pairs = big.select("k", one=1).join(big.select("v", one=1), on="one").count().output("pairs")
        values = np.random.default_rng(seed).integers(0, ROWS, (2, ROWS))
        big.insert(pa.table({"k": values[0], "v": values[1]}))
        small.insert([(1,)])
        with interrupted_after(0.4 * random.random()), pytest.raises(KeyboardInterrupt):
            db.advance()  # the pairs would take minutes
        pairs.release()
        small.insert([(2,)])
        db.advance()
        assert light.rows() == [(2,)]
        try:
            assert counted.rows() == [(ROWS,)]
        except kpg.KpgError as error:  # it was the answer that was computed
            assert "was stopped" in str(error)
        assert big.count().output("later").rows() == [(ROWS,)]
        assert index.count("k").output("groups").snapshot().num_rows == len(np.unique(values[0]))
    assert signal.getsignal(signal.SIGINT) == before


@pytest.fixture(scope="module")
def loaded():
    """A db with large relations and a small answer."""
    for _ in load():  # kernels that are compiled or loaded in the middle would count
        pass
    with kpg.open() as db:
        small = db.input("small", n=int)
        light = small.count("n").output("light")
        yield db, fill(db, LONG_ROWS), small, light


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_takes_effect_at_once_in_any_operator(name, loaded):
    db, tables, small, light = loaded
    for seconds in (0.02, 0.1 + 0.1 * Random(name).random()):
        answer = LONG[name](db, tables).output()
        began = perf_counter()
        with pytest.raises(KeyboardInterrupt), interrupted_after(seconds):
            db.advance()
            while perf_counter() < began + 60:  # the work ended before
                pass
        assert perf_counter() - began - seconds < MAX_SECONDS
        answer.release()
        small.insert([(7,)])
        db.advance()
        assert light.rows() == [(7, 1)]
        small.remove([(7,)])
        db.advance()
        assert light.rows() == []


def test_an_interrupt_of_idle_work_loses_nothing():
    random = Random(1)
    with kpg.open() as db:
        big = db.input("big", k=int)
        counted = big.count("k").output("counted")
        expected = 0
        for seed in range(6):
            big.insert(pa.table({"k": np.random.default_rng(seed).integers(0, ROWS, ROWS)}))
            db.advance()
            expected += ROWS
            with pytest.raises(KeyboardInterrupt), interrupted_after(0.01 * random.random()):
                while True:
                    db.idle()
        assert sum(count for _, count in counted.rows()) == expected
        assert big.count().output("later").rows() == [(expected,)]


def test_an_interrupt_of_a_wait_loses_nothing():
    """Also in the middle of the join, which takes some ten milliseconds."""
    random = Random(2)
    for _ in range(20):
        with kpg.open() as db:
            big = db.input("big", k=int)
            pairs = big.join(big.select(m="k"), how="cross").count().output("pairs")
            big.insert([(n,) for n in range(2000)])
            db.advance(wait=False)
            with pytest.raises(KeyboardInterrupt), interrupted_after(0.03 * random.random()):
                while True:
                    pairs.wait()
            assert pairs.rows() == [(4_000_000,)]


def test_a_handler_of_the_program_is_left_alone():
    calls = []
    before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    try:
        with kpg.open() as db:
            a = db.input("a", n=int)
            a.count().output("count").on_change(lambda changes: signal.raise_signal(signal.SIGINT))
            a.insert([(1,)])
            db.advance()
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls
