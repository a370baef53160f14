"""Deferred work is sent completely and once, about one slice in each step, and small slices together."""

import numpy as np
import pytest

from kpg.columns.updates import Updates, constant
from kpg.operators import deferred_work
from kpg.operators.deferred_work import DeferredWork


def rows(first: int, count: int) -> Updates:
    return Updates(np.arange(first, first + count).reshape(1, count), constant((0,)), constant((1,)))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], tuple[tuple[int, ...], ...]]]:
    monkeypatch.setattr(deferred_work, "SLICE_UPDATES", 20)
    monkeypatch.setattr(deferred_work, "LARGE_SLICE_UPDATES", 5)
    return []


def step(queue: DeferredWork[list[Updates]], sent: list) -> None:
    """Send one slice. Each item of work is a list of slices."""

    def next_slice(work: list[Updates], budget: int) -> tuple[Updates | None, int]:
        return (work[0], len(work.pop(0))) if work else (None, 0)

    queue.send_slice(next_slice, lambda updates, times: sent.append((updates.data[0].tolist(), times)))


def test_small_slices_of_the_same_times_are_one_message_and_a_large_one_is_not_copied(sent):
    queue: DeferredWork[list[Updates]] = DeferredWork()
    large = rows(2, 5)
    queue.append([rows(0, 2), large, rows(7, 1)], ((0,),))
    queue.append([rows(8, 0), rows(8, 2)], ((0,),))
    queue.append([rows(10, 1)], ((1,),))
    step(queue, sent)
    assert sent == [([2, 3, 4, 5, 6], ((0,),)), ([0, 1, 7, 8, 9], ((0,),)), ([10], ((1,),))]
    assert not queue and queue.times() == ()


def test_a_step_ends_after_about_one_slice_and_the_remaining_times_stay_held(sent):
    queue: DeferredWork[list[Updates]] = DeferredWork()
    queue.append([rows(0, 12), rows(12, 12), rows(24, 3)], ((4,),))
    queue.append([rows(27, 1)], ((2,),))
    step(queue, sent)
    assert [len(slice_) for slice_, _ in sent] == [12, 12] and queue.times() == ((2,),)
    step(queue, sent)
    assert sorted(row for slice_, _ in sent for row in slice_) == list(range(28))
    assert not queue
