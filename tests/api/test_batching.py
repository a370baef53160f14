"""How updates arrive physically changes no answer at any logical time (A2.8, A17.7).

The same updates, each with its own time, are inserted together, in a few parts, or one by one; the clock moves once
past all of them, or past each. The answer at every time must be the same, and so must the final answer.
"""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.testing.strategies import batch_cuts, histories
from tests.api import test_recursion
from tests.api.plays import examples

PROGRAMS = {
    "reach": test_recursion.reach,
    "distances": test_recursion.distances,
    "labels": test_recursion.labels,
    "cores": test_recursion.cores,
    "scc": test_recursion.scc,
}


def changes_of(program, pieces, clock):
    """Return the answer at each time, with the updates inserted in these parts and the clock moved to these times."""
    with kpg.open(history=None) as db:
        inputs = {name: db.input(name, **columns) for name, columns in test_recursion.SCHEMAS.items()}
        answer = program(db, inputs).output("answer")
        for piece, time in zip(pieces, clock, strict=True):
            for name, (row, when, diff) in piece:
                inputs[name].update_at([row], when, diff)
            db.advance_to(time)
        total = defaultdict(int)
        for row, time, diff in answer.changes():
            total[row, time] += diff
        return {update: diff for update, diff in total.items() if diff}, answer.rows()


@pytest.mark.parametrize("program", PROGRAMS)
@examples(0.25)
@given(st.data())
def test_any_batching_of_the_same_updates_gives_the_same_answer_at_every_time(program, data):
    """A2.8 A17.7: recursion under retractions, all together, cut anywhere, and one by one."""
    edges = data.draw(histories(test_recursion.ROWS["edges"], 1, max_size=7, largest=4))
    stream = [("edges", update) for update in edges] + [("roots", ((0,), (0,), 1))]
    stream.sort(key=lambda item: item[1][1])
    end = 20
    want = changes_of(PROGRAMS[program], [stream], [end])
    cut = data.draw(batch_cuts(stream))
    bounds = [min([item[1][1][0] for item in piece], default=None) for piece in cut]
    clock = [next((b for b in bounds[i + 1 :] if b is not None), end) for i in range(len(cut))]
    assert changes_of(PROGRAMS[program], cut, clock) == want
    single = [[item] for item in stream]
    clock = [item[1][1][0] for item in stream[1:]] + [end]
    assert changes_of(PROGRAMS[program], single, clock) == want


@pytest.mark.parametrize("program", PROGRAMS)
@examples(0.25)
@given(st.lists(test_recursion.ROWS["edges"], min_size=1, max_size=8, unique=True), st.data())
def test_retractions_one_by_one_end_where_retractions_together_do(program, edges, data):
    """A17.7: in any order, and with the answer of a db that never had those rows."""
    gone = data.draw(st.lists(st.sampled_from(edges), unique=True))
    order = data.draw(st.permutations(gone))
    roots = ("roots", ((0,), (0,), 1))

    def load(rows):
        return [*[("edges", (row, (0,), 1)) for row in rows], roots]

    def remove(rows, time):
        return [("edges", (row, (time,), -1)) for row in rows]

    never = changes_of(PROGRAMS[program], [load([row for row in edges if row not in gone])], [1])[1]
    at_once = changes_of(PROGRAMS[program], [load(edges), remove(gone, 1)], [1, 2])[1]
    pieces = [load(edges), *[remove([row], number + 1) for number, row in enumerate(order)]]
    one_by_one = changes_of(PROGRAMS[program], pieces, range(1, len(pieces) + 1))[1]
    assert one_by_one == at_once == never


@pytest.mark.parametrize("size", [1, 7, 100, 2_000])
def test_many_distinct_times_in_batches_of_any_size(size):
    """A2.8: 2,000 updates at 500 times; counts, a join and a maximum, in batches of one row up to all rows."""
    assert counted(size) == counted(1_000_000)


def counted(size):
    draw = np.random.default_rng(5)
    n = 2_000
    times = np.sort(draw.integers(0, 500, n))
    keys, values = draw.integers(0, 9, n), draw.integers(0, 5, n)
    diffs = draw.choice([1, 1, 1, -1], n)
    with kpg.open() as db:
        rows = db.input("rows", k=int, v=int)
        keyed = rows.arrange("k")
        answers = [
            keyed.count("k").output("counts"),
            keyed.join(rows.filter(kpg.col("v") == 0).rename(v="zero"), on="k").count("v").output("pairs"),
            keyed.group_by("k").max("v").output("most"),
        ]
        for start in range(0, n, size):
            part = slice(start, start + size)
            rows.update_at({"k": keys[part], "v": values[part]}, times[part], diffs[part])
            following = int(times[start + size]) if start + size < n else 500
            db.advance_to(following)
        return [sorted(answer.changes()) for answer in answers]
