"""Staged rows: which attempts are kept, and for how long."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.cluster.request_frames import RowBlock
from kpg.cluster.staged_rows import KEPT_SECONDS, StagedRows
from kpg.columns.updates import Updates, constant


def rows(count: int) -> list[RowBlock]:
    return [RowBlock(Updates(np.arange(count).reshape(1, count), constant((0,)), constant((1,))), ())]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_staged_rows_without_additions_for_an_hour_are_dropped():
    clock = Clock()
    staged = StagedRows(clock)
    staged.add(("load", "a", 0, 1), rows(3))
    staged.add(("load", "b", 0, 1), rows(5))
    clock.now += KEPT_SECONDS - 1
    staged.add(("load", "a", 0, 1), rows(3))
    clock.now += 2
    staged.expire()
    assert len(staged) == 6 and not staged.take(("load", "b", 0, 1))
    assert len(staged.take(("load", "a", 0, 1))) == 2


def test_publishing_a_batch_drops_its_other_attempts_and_earlier_batches():
    staged = StagedRows()
    for batch in (3, 4, 5):
        for attempt in (1, 2):
            staged.add(("query", batch, 0, attempt), rows(1))
    staged.add(("another query", 1, 0, 1), rows(1))
    assert len(staged.take(("query", 4, 0, 2))) == 1
    staged.settle(("query", 4))
    assert len(staged) == 3  # batch 5, and the row of another query
    staged.add(("query", 4, 0, 3), rows(1))  # late
    assert len(staged) == 3
    staged.drop(("query", 5))
    staged.add(("query", 5, 0, 3), rows(1))  # the batch is repeated
    assert len(staged.take(("query", 5, 0, 3))) == 1 and len(staged) == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, KEPT_SECONDS)), max_size=20))
def test_an_attempt_is_kept_for_an_hour_after_its_last_addition(steps):
    clock = Clock()
    staged, touched = StagedRows(clock), {}
    for key, seconds in steps:
        clock.now += seconds
        staged.add(("load", key), rows(1))
        touched[key] = clock.now
    staged.expire()
    for key in range(4):
        assert bool(staged.take(("load", key))) == (touched.get(key, -np.inf) + KEPT_SECONDS > clock.now)
