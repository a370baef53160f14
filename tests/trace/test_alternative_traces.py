"""Other kinds of batches and traces behind one interface: with values or key-only, and custom ones (A3.8).

Operators use `insert`, `upper`, `batches_through` and the handles of a trace, and the updates, description and array
addresses of a batch. Any object with these can replace the spine and the batch.
"""

from functools import cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col
from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Updates, constant
from kpg.operators import arrange, reduce
from kpg.plan import streams
from kpg.testing.strategies import rows
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.key_history import read
from kpg.trace.spine import Spine
from tests.api.plays import examples


@pytest.mark.parametrize("key_lanes, lanes", [(1, 2), (2, 2), (1, 1), (0, 2), (0, 0), (2, 5)])
def test_one_trace_serves_keys_with_values_and_keys_alone(key_lanes, lanes):
    """A3.8: key-only batches are batches with no value lanes; also no key, and no lanes at all."""
    trace = Spine(key_lanes, lanes, 1)
    with TraceHandle(trace, "reader", Frontier.start(1)) as reader:
        reader.set_physical(Frontier())
        for epoch in range(40):
            data = np.full((lanes, 1), epoch % 3, np.int64)
            upper = Frontier.at((epoch + 1,))
            description = Description(trace.upper, upper, Frontier.start(1))
            trace.insert(Batch(Updates(data, constant((epoch,)), constant((1,))), key_lanes, description))
            reader.set_since(Frontier.at((epoch,)))
        while trace.exert(1000):
            pass
        data, counts = read(reader.batches(None), (39,), None)
        want = [[0, 1, 2]] * lanes, [[14, 13, 13]] if lanes else [[40]]
        assert (data.tolist(), counts.tolist()) == want
        if key_lanes:
            data, counts = read(reader.batches(None), (39,), np.full((key_lanes, 1), 1, np.int64))
            assert (data.tolist(), counts.tolist()) == ([[1]] * lanes, [[13]])


class NarrowBatch:
    """A batch for values that are close together: 16 bits each, widened on first read."""

    def __init__(self, batch: Batch) -> None:
        data = batch.updates.data
        self.least = data.min(axis=1, keepdims=True)
        self.narrow = (data - self.least).astype(np.uint16)
        self.times, self.diffs = batch.updates.times, batch.updates.diffs
        self.key_lanes, self.description = batch.key_lanes, batch.description

    def __len__(self) -> int:
        return int(self.narrow.shape[1])

    @cached_property
    def wide(self) -> Batch:
        data = np.ascontiguousarray(self.narrow + self.least)
        return Batch(Updates(data, self.times, self.diffs), self.key_lanes, self.description)

    updates = property(lambda self: self.wide.updates)
    row = property(lambda self: self.wide.row)

    def row_for_search(self, keys: int):
        return self.wide.row_for_search(keys)

    lower = property(lambda self: self.description.lower)
    upper = property(lambda self: self.description.upper)
    since = property(lambda self: self.description.since)


class UnmergedTrace(Spine):
    """A trace that never merges and keeps its own kind of batch."""

    created: list["UnmergedTrace"] = []

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.all: list[NarrowBatch] = []
        UnmergedTrace.created.append(self)

    def append(self, batch: Batch) -> bool:
        assert batch.lower == self.upper
        self.upper = batch.upper
        if len(batch):
            self.all.append(NarrowBatch(batch))
        return False

    def search_table(self, upper, keys, sort=True):
        return None

    def batches_through(self, upper):
        return tuple(batch for batch in self.all if upper is None or batch.upper.precedes(upper))

    def exert(self, fuel: int) -> bool:
        return False

    @property
    def rows(self) -> int:
        return sum(map(len, self.all))

    unsettled = False


def answers(changes):
    """Compute joins, reductions of all kinds and a loop over some changes, one epoch each."""
    with kpg.open() as db:
        edges = db.input("edges", src=int, dst=int)
        by_src = edges.arrange("src")
        reach = edges.iterate(
            lambda seen: (
                by_src.join(seen.rename(src="root", dst="src"), on="src")
                .select(src="root", dst="dst")
                .concat(edges)
                .distinct()
            )
        )
        outputs = [
            reach.output("reach"),
            by_src.join(edges.rename(src="x", dst="src"), on="src").output("pairs"),
            by_src.count("src").output("count"),
            edges.group_by("dst").max("src").output("max"),
            edges.group_by("dst").reduce(lambda key, rows: [(len(rows),)], n=int).output("reduce"),
            edges.filter(col("src") > 0).group_by("src").sum("dst").output("sum"),
        ]
        present = set()
        for row in changes:  # remove it if it is present, insert it otherwise
            (edges.remove if row in present else edges.insert)([row])
            present ^= {row}
            db.advance()
        late = by_src.join(edges.rename(src="x", dst="src"), on="src").output("late")
        return [sorted(output.changes()) for output in outputs], late.snapshot(counts=True).to_pylist()


@examples(0.4)
@given(st.lists(rows(2, 2), min_size=1, max_size=6))
def test_another_trace_and_another_batch_give_the_same_answers(changes):
    """A3.8: only the implementation under the operators changes."""
    want = answers(changes)
    with pytest.MonkeyPatch.context() as patch:
        for module in (arrange, reduce, streams):
            patch.setattr(module, "Spine", UnmergedTrace)
        UnmergedTrace.created.clear()
        assert answers(changes) == want
        assert sum(trace.rows for trace in UnmergedTrace.created) > 0, "the other trace was used"
        assert all(type(batch) is NarrowBatch for trace in UnmergedTrace.created for batch in trace.all)
