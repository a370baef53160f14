"""One read of several answers is at one time, however far each of them is."""

from random import Random

import pytest

import kpg

STEP = 150  # rows of each transaction: the pairs take many slices


@pytest.mark.parametrize("seed", range(4))
def test_answers_that_are_read_together_are_at_one_time(seed):
    random = Random(seed)
    with kpg.open(history=20) as db:
        rows = db.input("rows", n=int)
        light = rows.count().output("light")
        pairs = rows.join(rows.select(m="n"), how="cross").count().output("pairs")
        sizes = []
        for step in range(12):
            rows.insert([(number,) for number in range(step * STEP, (step + 1) * STEP)])
            db.advance(wait=False)
            sizes.append((step + 1) * STEP)
            for _ in range(random.randrange(4)):
                db.work(0.0005)
            if random.random() < 0.5:
                read = db.read_together(light, pairs)
                ((one,), (many,)) = (table.column(0).to_pylist() for table in read)
                assert one in sizes and many == one * one, "the newest time that both have completed"
            if random.random() < 0.3:
                time = random.randrange(len(sizes))
                read = db.read_together(light, pairs, as_of=time)
                assert [table.column(0).to_pylist() for table in read] == [[sizes[time]], [sizes[time] ** 2]]
        pairs.wait()
        read = db.read_together(light, pairs)
        assert [table.column(0).to_pylist() for table in read] == [[sizes[-1]], [sizes[-1] ** 2]]


def test_a_read_of_several_answers_includes_the_last_write_of_its_session():
    with kpg.open(background=True) as db:
        rows = db.input("rows", n=int)
        light = rows.count().output("light")
        pairs = rows.join(rows.select(m="n"), how="cross").count().output("pairs")
        for step in range(1, 8):
            rows.insert([(number,) for number in range((step - 1) * 400, step * 400)])
            db.advance(wait=False)
            read = db.read_together(light, pairs)
            assert [table.column(0).to_pylist() for table in read] == [[step * 400], [(step * 400) ** 2]]


def test_answers_without_a_first_answer_are_read_at_one_time():
    with kpg.open() as db:
        rows = db.input("rows", n=int)
        rows.insert([(number,) for number in range(1_000)])
        db.advance()
        light = rows.count().output("light")
        pairs = rows.join(rows.select(m="n"), how="cross").count().output("pairs")
        for number in range(1_000, 1_010):
            rows.insert([(number,)])
            db.advance(wait=False)
        ((one,), (many,)) = (table.column(0).to_pylist() for table in db.read_together(light, pairs))
        assert many == one * one
