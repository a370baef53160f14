"""Handles restrict compaction and merging exactly as far as their readers need."""

import gc
import weakref

import numpy as np
import pytest

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.updates import Updates, constant
from kpg.errors import Closed, TimeTooEarly
from kpg.testing import kernel_twins as naive
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.key_history import read
from kpg.trace.spine import Spine


def at(epoch: int) -> Frontier:
    return Frontier.at((epoch,))


def insert(trace: Spine, key: int, diff: int = 1) -> None:
    (epoch,) = trace.upper.elements[0]
    updates = Updates(np.array([[key]]), constant((epoch,)), constant((diff,)))
    trace.insert(Batch(updates, 1, Description(trace.upper, at(epoch + 1), at(0))))


def settle(trace: Spine) -> None:
    while trace.exert(1000):
        pass


def test_a_collection_can_be_read_as_of_any_time_beyond_since():
    """A4.1, A4.7"""
    trace = Spine(1, 1, 1)
    handle = TraceHandle(trace, "reader", at(0))
    for key in range(5):
        insert(trace, key)
    handle.set_physical(CLOSED)
    handle.set_since(at(2))
    settle(trace)
    for epoch in range(2, 5):
        data, multiplicity = read(handle.batches(None), (epoch,), None)
        assert data.tolist() == [list(range(epoch + 1))] and multiplicity.tolist() == [[1] * (epoch + 1)]
    data, _ = read(handle.batches(None), (4,), np.array([[3]]))
    assert data.tolist() == [[3]]


def test_the_since_of_a_trace_is_the_meet_of_its_handles():
    """A4.2"""
    trace = Spine(1, 1, 1)
    slow, fast = TraceHandle(trace, "slow", at(0)), TraceHandle(trace, "fast", at(0))
    fast.set_since(at(9))
    assert trace.since == at(0)
    slow.set_since(at(4))
    assert trace.since == at(4)
    slow.release()
    assert trace.since == at(9)


def test_a_since_cannot_go_back():
    trace = Spine(1, 1, 1)
    handle = TraceHandle(trace, "reader", at(0))
    handle.set_since(at(5))
    with pytest.raises(TimeTooEarly, match="back"):
        handle.set_since(at(4))
    handle.set_physical(at(3))
    with pytest.raises(TimeTooEarly, match="back"):
        handle.set_physical(at(2))
    with pytest.raises(TimeTooEarly, match="since"):
        TraceHandle(trace, "late", at(1))


def test_the_source_of_a_since_is_called_only_when_needed():
    trace = Spine(1, 1, 1)
    handle = TraceHandle(trace, "reader", at(0))
    asked = []
    handle.follow(lambda: asked.append(1) or trace.upper)  # type: ignore[func-returns-value]
    for key in range(10):
        insert(trace, key)  # nothing to merge: the physical frontier is at the start
    assert not asked
    assert handle.since == at(10) and asked
    handle.set_since(at(11))
    asked.clear()
    assert handle.since == at(11) and not asked


def test_a_reader_from_before_the_since_does_not_move_it_back():
    trace = Spine(1, 1, 1)
    handle = TraceHandle(trace, "reader", at(2))
    reader = [at(0)]
    handle.follow(lambda: reader[0])
    sinces = []
    for epoch in (0, 1, 2, 4):
        reader[0] = at(epoch)
        sinces.append(handle.since)
    assert sinces == [at(2), at(2), at(2), at(4)]
    reader[0] = at(3)
    with pytest.raises(AssertionError, match="went back"):
        _ = handle.since


def test_a_clone_is_independent():
    trace = Spine(1, 1, 1)
    first = TraceHandle(trace, "first", at(0))
    second = first.clone("second")
    first.set_since(at(7))
    first.release()
    assert trace.since == at(0) and second.since == at(0) and second.name == "second"
    assert trace.handles == (second,)


def test_a_released_handle_cannot_read():
    """A4.3"""
    trace = Spine(1, 1, 1)
    with TraceHandle(trace, "reader", at(0)) as handle:
        assert not handle.released
    assert handle.released
    handle.release()
    with pytest.raises(Closed, match="reader"):
        handle.batches(None)


def test_a_handle_that_is_garbage_collected_holds_nothing():
    trace = Spine(1, 1, 1)
    kept = TraceHandle(trace, "kept", at(6))
    TraceHandle(trace, "dropped", at(6)).follow(lambda: at(6))
    kept.set_since(at(8))
    assert trace.since == at(8) and trace.handles == (kept,)


def test_the_trace_is_freed_with_its_last_handle_without_the_collector():
    """A3.10: the arrange operator keeps a weak reference only, even if a source refers back to the handle."""
    gc.disable()
    try:
        trace = Spine(1, 1, 1)
        handle = TraceHandle(trace, "reader", at(0))
        other = handle.clone("other")
        handle.follow(lambda: other.since)
        for key in range(3):
            insert(trace, key)
        batch = weakref.ref(trace.batches_through(None)[0].updates.data)
        weak = weakref.ref(trace)
        del trace
        handle.release()
        assert weak() is not None
        other.release()
        assert weak() is None and batch() is None
    finally:
        gc.enable()


def test_no_merged_batch_reaches_across_a_physical_frontier():
    trace = Spine(1, 1, 1)
    handle, other = TraceHandle(trace, "reader", at(0)), TraceHandle(trace, "other", at(0))
    other.set_physical(CLOSED)
    for key in range(6):
        insert(trace, key)
    handle.set_physical(at(3))
    settle(trace)
    assert [len(batch) for batch in handle.batches(None)] == [3, 1, 1, 1]
    for epoch in range(3, 7):
        assert sum(map(len, handle.batches(at(epoch)))) == epoch
    with pytest.raises(AssertionError, match="reaches across"):
        handle.batches(at(2))
    assert handle.batches(at(0)) == ()
    handle.set_physical(trace.upper)
    settle(trace)
    assert [len(batch) for batch in handle.batches(None)] == [6]


def test_a_new_handle_can_cut_from_the_present_upper_on():
    trace = Spine(1, 1, 1)
    reader = TraceHandle(trace, "first", at(0))
    reader.set_physical(CLOSED)
    for key in range(4):
        insert(trace, key)
    late = reader.clone("late")
    for key in range(4, 6):
        insert(trace, key)
    settle(trace)
    assert [len(late.batches(at(epoch))) for epoch in (4, 5, 6)] == [1, 2, 3]


def test_readers_with_incomparable_since_keep_what_either_can_read():
    trace, handles = Spine(1, 1, 2), []
    for name, since in (("first", Frontier([(3, 0)])), ("second", Frontier([(0, 3)]))):
        handle = TraceHandle(trace, name, Frontier.start(2))
        handle.set_physical(CLOSED)
        handles.append((handle, since))
    for handle, since in handles:
        handle.set_since(since)
    assert trace.since == Frontier([(3, 0), (0, 3)])
    rows = [((1,), (1, 1), (1,)), ((1,), (2, 2), (1,)), ((1,), (0, 0), (-2,))]
    upper = Frontier.at((3, 3))
    trace.insert(Batch(naive.updates(naive.consolidate(rows), 1, 2), 1, Description(trace.upper, upper, trace.upper)))
    settle(trace)
    for time in [(3, 0), (3, 1), (3, 3), (0, 3), (1, 3), (2, 3)]:
        data, multiplicity = read(trace.batches_through(None), time, None)
        want = naive.read_as_of([rows], time, None)
        assert list(zip(naive.columns(data), naive.columns(multiplicity), strict=True)) == want
