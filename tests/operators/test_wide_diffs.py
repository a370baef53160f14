"""Diffs of any abelian group of tuples of int64: here (sum, count), through the engine's operators (A2.3).

A group needs only addition, negation and a zero: an update cancels when *all* of its lanes are zero. A join multiplies
the lanes of both sides, so a plain count on one side scales the tuple on the other.
"""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.schema import Schema
from kpg.columns.updates import Updates, spread
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.operator import Inputs, Message, Operator
from kpg.operators.join import join
from kpg.operators.linear import NegateStage
from kpg.operators.payload import updates_of
from kpg.operators.source import Source
from kpg.plan.render import Renderer
from kpg.plan.rendered import Rendered

KEYED = Schema.of({"k": int, "v": int})
times = st.integers(0, 3)
wide = st.lists(st.tuples(st.tuples(st.integers(0, 2), st.integers(0, 1)), times, st.tuples(*[st.integers(-1, 1)] * 2)))
plain = st.lists(st.tuples(st.tuples(st.integers(0, 2)), times, st.sampled_from([1, -1, 2])), max_size=5)


class Record(Operator):
    """Keeps the updates that arrive."""

    def __init__(self) -> None:
        super().__init__("record")
        self.found: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = []

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            for updates in updates_of(message.payload):
                n = len(updates)
                columns = (updates.data, spread(updates.times, n), spread(updates.diffs, n))
                rows = zip(*[block.T.tolist() for block in columns], strict=True)
                self.found += [(tuple(row), time[0], tuple(diff)) for row, time, diff in rows]
        return False


def columns(updates, lanes, width):
    blocks = [[row for row, _, _ in updates], [(time,) for _, time, _ in updates], [diff for _, _, diff in updates]]
    shapes = (lanes, 1, width)
    return Updates(
        *[np.ascontiguousarray(np.array(b, np.int64).reshape(-1, m).T) for b, m in zip(blocks, shapes, strict=True)]
    )


def at(updates, time):
    """Return the collection at a time: each row with its diff, without the zero of the group."""
    total = defaultdict(lambda: (0, 0))
    for row, when, diff in updates:
        if when <= time:
            total[row] = tuple(a + b for a, b in zip(total[row], diff, strict=True))
    return {row: diff for row, diff in total.items() if any(diff)}


@given(wide, plain, st.lists(times, max_size=2))
def test_tuples_of_sum_and_count_are_diffs_like_any_other(rows, weights, cuts):
    """A2.3: consolidated, negated, arranged and joined, cut into batches anywhere."""
    with kpg.open() as db:
        source, other = Source("rows"), Source("weights")
        kept, negated, joined = Record(), Record(), Record()

        def build(dataflow):
            renderer = Renderer(dataflow, db.context)
            clock = db.worker.clock
            stream = dataflow.add_source(source, lambda: clock.frontier, depth=1)
            summed = renderer.consolidate(Rendered(stream, KEYED, None, width=2))
            less = renderer.add_stages(summed, [NegateStage()], "negate", KEYED)
            by_key = renderer.arrange_rendered(summed, ("k",), "by key")
            scale = dataflow.add_source(other, lambda: clock.frontier, depth=1)
            scales = renderer.arrange_rendered(Rendered(scale, Schema.of({"k": int}), None), ("k",), "weights")

            pairs = join(dataflow, "join", by_key.arranged, scales.arranged, [(0, 0), (0, 1)])
            for listener, of in ((kept, by_key.arranged.stream), (negated, less.stream), (joined, pairs)):
                dataflow.add(listener, [(of, LocalPact())], depth=1)
            renderer.release()

        dataflow = db.install("wide", build)
        for part, now in zip([*sorted(cuts), 9], [0, *sorted(cuts)], strict=True):
            for feed, updates, lanes, width in ((source, rows, 2, 2), (other, weights, 1, 1)):
                some = [u if width > 1 else (*u[:2], (u[2],)) for u in updates if now <= u[1] < part]
                if some:
                    dataflow.feed(feed, Message(((now,),), columns(some, lanes, width)))
            db.worker.advance_to(Frontier([(part,)]))
            db.worker.run()
        for time in range(5):
            want = at(rows, time)
            assert at(kept.found, time) == want
            assert at(negated.found, time) == {row: (-a, -b) for row, (a, b) in want.items()}
            weight = {row[0]: diff[0] for row, diff in at([(*u[:2], (u[2], 0)) for u in weights], time).items()}
            scaled = {row: (a * weight.get(row[0], 0), b * weight.get(row[0], 0)) for row, (a, b) in want.items()}
            assert at(joined.found, time) == {row: diff for row, diff in scaled.items() if any(diff)}
        assert len({(row, time) for row, time, _ in kept.found}) == len(kept.found), "equal (row, time) are one update"


def test_an_update_cancels_only_when_every_lane_of_its_diff_is_zero():
    """A2.3: a count of zero with a sum of five is not zero."""
    rows = [((1, 1), 0, (5, 1)), ((1, 1), 0, (0, -1)), ((2, 2), 0, (3, 1)), ((2, 2), 0, (-3, -1))]

    updates = consolidate(columns(rows, 2, 2))
    assert updates.data.tolist() == [[1], [1]] and updates.diffs.tolist() == [[5], [0]]


def test_sums_are_lanes_of_the_diff_of_an_arrangement():
    """A2.3: aggregate() keeps one row for each group, for any number of rows and sums."""
    with kpg.open() as db:
        orders = db.input("orders", who=int, amount=int)
        answer = orders.group_by("who").aggregate(n="count", total=("sum", "amount")).output("answer")
        orders.insert([(who, amount) for who in range(3) for amount in range(100)])
        db.advance()
        (index,) = [
            arrangement for arrangement in db.describe()["arrangements"] if arrangement["name"] == "arrange who"
        ]
        assert index["rows"] == 3
        orders.remove([(0, amount) for amount in range(100)])
        db.advance()
        assert answer.rows() == [(1, 100, 4950), (2, 100, 4950)]
