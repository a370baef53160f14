"""A worker that runs in slices computes what one that runs at once does, and shares its time fairly."""

from contextlib import contextmanager
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.dataflow import sliced_run
from kpg.dataflow.fair_shares import ShareOwner
from tests.api.plays import examples

QUERIES = {
    "joined": lambda db, a, b: a.join(b, on="k"),
    "counted": lambda db, a, b: a.count("k"),
    "least": lambda db, a, b: a.group_by("k").min("v"),
    "distinct": lambda db, a, b: a.concat(b.select("k", v="w")).select("k").distinct(),
    "reached": lambda db, a, b: b.select(k="w").iterate(
        lambda nodes: a.join(nodes, on="k").select(k="v").concat(nodes).distinct()
    ),
    "product": lambda db, a, b: a.select("v", one=1).join(b.select("w", one=1), on="one").select("v", "w"),
}


@contextmanager
def tiny_pieces(seed, patience=1.0):
    """Cut all work into pieces of a few rows, so that small data pauses at every point, and end turns at random."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kpg.columns.pause_points.ROWS_PER_PAUSE", 3)
        patch.setattr("kpg.columns.pause_points.ROWS_PER_ASIDE", 7)
        patch.setattr("kpg.columns.pause_points.MIN_ASIDE_NUMBERS", 60)
        patch.setattr("kpg.operators.deferred_work.SHORT_SLICE_UPDATES", 5)
        patch.setattr("kpg.operators.reduce_in_parts.KEYS_PER_PAUSE", 2)
        patch.setattr("kpg.operators.reduce_in_parts.ROWS_PER_PART", 3)
        patch.setattr(sliced_run, "perf_counter", RandomTime(seed, patience))
        yield


class RandomTime:
    """A clock on which any two moments are a random time apart, so that turns end anywhere."""

    def __init__(self, seed, patience):
        self._random, self._now, self._patience = Random(seed), 0.0, patience

    def __call__(self):
        self._now += self._random.random() * sliced_run.TURN_SECONDS / self._patience
        return self._now


def random_rows(random, size):
    return [(random.randrange(5), random.randrange(5)) for _ in range(random.randrange(size))]


def counted_rows(output, as_of=None):
    """Return the rows of an answer with their counts, which may be negative."""
    rows = [tuple(row.values()) for row in output.snapshot(as_of, counts=True).to_pylist()]
    return {row[:-1]: row[-1] for row in rows}


class TwoDatabases:
    """The same inserts into a db that waits for all answers, and one that works in slices."""

    def __init__(self, whole, sliced):
        self.both = (whole, sliced)
        self.inputs = [(db.input("a", k=int, v=int), db.input("b", k=int, w=int)) for db in self.both]
        self.numbers = count()
        self.owners = [ShareOwner() for _ in range(3)]  # of dataflows that work in slices
        self.answers = {}  # by name, of each db
        self.present = ([], [])  # the rows of both inputs: recursions over negative counts need not end

    def install(self, query, random):
        name = f"{query} {next(self.numbers)}"
        outputs = [QUERIES[query](db, *inputs).output(name) for db, inputs in zip(self.both, self.inputs, strict=True)]
        for owner in random.sample(self.owners, random.randrange(3)):
            outputs[1].dataflow.add_owner(owner)
        self.answers[name] = (query, *outputs)

    def change(self, random):
        inserted, side = random_rows(random, 8), random.randrange(2)
        present = self.present[side]
        removed = [present.pop(random.randrange(len(present))) for _ in range(random.randrange(4)) if present]
        present += inserted
        for inputs in self.inputs:
            inputs[side].insert(inserted)
            inputs[side].remove(removed)

    def advance(self, wait):
        whole, sliced = self.both
        assert whole.advance() == sliced.advance(wait=wait)

    def release(self, random):
        if self.answers:
            for output in self.answers.pop(random.choice(sorted(self.answers)))[1:]:
                output.release()

    def check(self, name):
        """Compare an answer at the newest time that it has completed."""
        _, expected, output = self.answers[name]
        complete = output.complete_through
        if complete is not None and complete >= output.dataflow.first_epoch:
            assert output.complete_through == complete, "reading does not need more work"
            assert counted_rows(output, complete) == counted_rows(expected, complete)

    def check_all(self):
        assert all(epoch == self.both[1].epoch - 1 for epoch in self.completed())
        for name in self.answers:
            self.check(name)

    def completed(self):
        return [output.complete_through for _, _, output in self.answers.values()]


@examples(0.4)
@given(st.integers(0, 2**32), st.sampled_from([0.3, 1, 5]), st.sampled_from([0, 2, None]))
def test_answers_equal_those_of_a_db_that_waits(seed, patience, history):
    random = Random(seed)
    with kpg.open(history=None) as whole, kpg.open(history=history) as sliced, tiny_pieces(seed, patience):
        dbs = TwoDatabases(whole, sliced)
        for query in QUERIES:
            dbs.install(query, random)
        for _ in range(random.randrange(4, 12)):
            dbs.change(random)
            dbs.advance(wait=random.random() < 0.1)
            if random.random() < 0.3:
                dbs.install(random.choice(sorted(QUERIES)), random)
            if random.random() < 0.2:
                dbs.release(random)
            for _ in range(random.randrange(4)):
                sliced.work(random.choice([0.0, 0.0005, 0.002, 0.02]))
                if random.random() < 0.3:
                    sliced.worker.idle_merge(random.choice([1, 20, 1000]), 20, can_pause=True)
                before = sliced.sealed
                if dbs.answers:
                    dbs.check(random.choice(sorted(dbs.answers)))
                assert before is None or before.precedes(sliced.sealed), "sealed times stay sealed"
            if random.random() < 0.2 and dbs.answers:
                name = random.choice(sorted(dbs.answers))
                output = dbs.answers[name][2]
                output.wait()
                assert output.complete_through == sliced.epoch - 1
                dbs.check(name)
        dbs.advance(wait=random.random() < 0.5)
        while sliced.work(0.002):
            pass
        dbs.check_all()


@examples(0.4)
@given(st.integers(0, 2**32))
def test_changes_of_completed_times_arrive_once(seed):
    """Listeners get the changes of completed epochs only, and in sum the answer."""
    random = Random(seed)
    with kpg.open() as whole, kpg.open() as sliced, tiny_pieces(seed):
        dbs = TwoDatabases(whole, sliced)
        sums, latest = {}, {}

        def listen(name, output):
            def receive(changes):
                for row, time, diff in changes:
                    assert time <= output.complete_through, "a change of an incomplete time"
                    key = (name, row)
                    sums[key] = sums.get(key, 0) + diff
                    latest[name] = max(latest.get(name, 0), time)

            output.on_change(receive)

        for query in QUERIES:
            dbs.install(query, random)
        for name, (_, _, output) in dbs.answers.items():
            listen(name, output)
        for _ in range(8):
            dbs.change(random)
            dbs.advance(wait=False)
            sliced.work(random.choice([0.0, 0.001, 0.01]))
        while sliced.work(0.002):
            pass
        for name, (_, expected, _) in dbs.answers.items():
            received = {row: total for (of, row), total in sums.items() if of == name and total}
            assert received == counted_rows(expected)


def product_of(db, size):
    """Install a product of two inputs, with rows for it, and a count of another input."""
    a, b, c = db.input("a", x=int), db.input("b", y=int), db.input("c", z=int)
    product = a.select("x", one=1).join(b.select("y", one=1), on="one").select("x", "y").output("product")
    light = c.count("z").output("light")
    a.insert([(n,) for n in range(size)])
    b.insert([(n,) for n in range(size)])
    return c, light, product


def test_a_light_answer_is_complete_before_a_heavy_one():
    with kpg.open() as db:
        c, light, product = product_of(db, 2_500)
        for n in range(3):
            c.insert([(n,)])
            db.advance(wait=False)
            light.wait()
            assert light.rows() == [(m, 1) for m in range(n + 1)]
            assert product.complete_through is None
        assert db.read_together(light, product)[1].num_rows == 6_250_000, "one read waits for the first answer of both"
        product.wait()
        assert product.complete_through == light.complete_through == 2
        assert product.snapshot().num_rows == 6_250_000


def test_release_ends_a_step_that_paused():
    with kpg.open() as db:
        c, light, product = product_of(db, 2_500)
        db.advance(wait=False)
        while product.dataflow.paused_step is None:
            assert db.work(0.001)
        product.release()
        assert product.dataflow.paused_step is None
        c.insert([(1,)])
        db.advance()
        assert light.rows() == [(1, 1)]
        assert not db.work()


def test_a_failing_step_ends_only_its_own_answer():
    with kpg.open(max_rounds=5) as db:
        a = db.input("a", x=int)
        light = a.count("x").output("light")
        endless = a.iterate(lambda rows: rows.select(x=kpg.col("x") + 1).concat(rows).distinct()).output("endless")
        a.insert([(1,)])
        db.advance(wait=False)
        light.wait()
        assert light.rows() == [(1, 1)]
        with pytest.raises(kpg.TooManyRounds):
            endless.wait()


def test_a_dataflow_that_was_idle_does_not_starve_a_busy_one():
    """Light work of a thousand epochs leaves time for a heavy answer, which completes meanwhile."""
    with kpg.open() as db:
        c, light, product = product_of(db, 300)
        for n in range(1000):
            c.insert([(n,)])
            db.advance(wait=False)
            db.work(0.002)
            if product.complete_through is not None:
                return
        raise AssertionError("the product was never complete")


def test_waiting_for_a_time_that_the_clock_has_not_passed_is_refused():
    with kpg.open() as db:
        light = db.input("a", x=int).count("x").output("light")
        with pytest.raises(kpg.TimeNotReached, match="cannot complete 3"):
            light.wait(3)


@contextmanager
def beside_a_product():
    """Yield a db that works on a large product, the product, an input and the answers of its listener."""
    with kpg.open() as db:
        a, light = db.input("a", k=int, v=int), db.input("light", x=int)
        product = QUERIES["product"](db, a, a.select("k", w="v")).output("product")
        received = []
        light.count("x").output("counted").on_change(received.append)
        a.insert([(number, number) for number in range(4_000)])
        db.advance(wait=False)
        while not product.dataflow.is_heavy:
            db.work(0.002)
        yield db, product, light, received


def test_a_slice_ends_when_a_light_answer_is_complete():
    with beside_a_product() as (db, product, light, received):
        for number in range(3):
            light.insert([(number,)])
            db.advance(wait=False)
            assert db.work(60.0) and len(received) == number + 1
            db.work(0.002)  # the product had to wait in the slice before
            assert product.complete_through is None or product.complete_through < db.epoch - 1


def test_light_answers_without_end_leave_turns_to_a_heavy_dataflow():
    with beside_a_product() as (db, product, light, received):
        used = product.dataflow.used_seconds
        for number in range(20):
            light.insert([(number,)])
            db.advance(wait=False)
            db.work(0.002)
        assert len(received) >= 10
        assert product.dataflow.used_seconds - used >= 8 * 0.001, "every second slice has a turn of the product"
