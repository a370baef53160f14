"""A spine accumulates to the inserted updates, for every policy, cut, compaction and schedule of reads."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import join
from kpg.columns import output_buffer
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Updates, constant
from kpg.config import Effort
from kpg.testing import kernel_twins as naive
from kpg.testing.model import accumulate
from kpg.testing.strategies import frontiers, times
from kpg.trace import merger
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.merge_policy import DEFAULT, PRESETS
from kpg.trace.spine import Spine


def batch(rows: list[naive.Update], trace: Spine, upper: Frontier) -> Batch:
    updates = naive.updates(naive.consolidate(rows), trace.lanes, trace.depth, trace.width)
    return Batch(updates, trace.key_lanes, Description(trace.upper, upper, Frontier.start(trace.depth)))


def held(trace: Spine) -> list[naive.Update]:
    return [row for part in trace.batches_through(None) for row in naive.rows(part.updates)]


class TraceMachine(RuleBasedStateMachine):
    """A spine with tiny levels, compared with a plain list of updates (A3.14, A3.20, A4.1, A4.2)."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()

    def teardown(self) -> None:
        self.patch.undo()

    @initialize(
        depth=st.integers(1, 3),
        lanes=st.integers(0, 2),
        width=st.integers(1, 2),
        tail=st.sampled_from([1, 2, 4]),
        small=st.sampled_from([1, 1 << 14]),
        asking=st.sampled_from([1, 512]),
        effort=st.sampled_from(["eager", "default", "lazy"]),
    )
    def begin(self, depth, lanes, width, tail, small, asking, effort):
        self.patch.setattr(output_buffer, "COPIED_COLUMNS", small)
        policy = replace(PRESETS[effort], tail_rows=tail, min_fuel=tail, rows_per_since=asking)
        self.trace = Spine(min(lanes, 1), lanes, depth, width, policy)
        self.handles = [TraceHandle(self.trace, "first", Frontier.start(depth))]
        self.inserted: list[naive.Update] = []
        self.seen_since = self.trace.since

    @rule(data=st.data())
    def insert(self, data):
        """Insert updates at times beyond the present upper and not beyond the next."""
        trace = self.trace
        epoch = trace.upper.elements[0][0]
        ahead = data.draw(frontiers(trace.depth, min_size=1))
        upper = trace.upper.join(Frontier((time[0] + epoch, *time[1:]) for time in ahead))
        row = st.tuples(
            st.tuples(*[st.integers(0, 3)] * trace.lanes),
            times(trace.depth, 3).map(lambda time: (time[0] + epoch, *time[1:])),
            st.tuples(*[st.sampled_from([1, -1])] * trace.width),
        )
        rows = [
            update
            for update in data.draw(st.lists(row, max_size=20))
            if trace.upper.beyond(update[1]) and not upper.beyond(update[1])
        ]
        trace.insert(batch(rows, trace, upper))
        self.inserted += rows

    @rule(data=st.data())
    def advance_a_reader(self, data):
        handle = data.draw(st.sampled_from(self.handles))
        to = data.draw(frontiers(self.trace.depth, largest=4, min_size=1)).meet(self.trace.upper)
        handle.set_since(handle.since.join(to))

    @rule(data=st.data())
    def pass_the_upper(self, data):
        handle = data.draw(st.sampled_from(self.handles))
        if handle.physical.precedes(self.trace.upper):
            handle.set_physical(data.draw(st.sampled_from([self.trace.upper, self.trace.upper, CLOSED])))

    @rule(data=st.data())
    def clone(self, data):
        self.handles.append(data.draw(st.sampled_from(self.handles)).clone("clone"))

    @precondition(lambda self: len(self.handles) > 1)
    @rule(data=st.data())
    def release(self, data):
        self.handles.pop(data.draw(st.integers(0, len(self.handles) - 1))).release()

    @rule(fuel=st.sampled_from([1, 5, 100]))
    def exert(self, fuel):
        self.trace.exert(fuel)

    @rule()
    def settle(self):
        for _ in range(1000):
            if not self.trace.exert(100):
                break
        else:
            raise AssertionError("idle work does not end")
        assert not self.trace.exert(1), "a settled trace has no idle work"

    @invariant()
    def accumulates_to_what_was_inserted_at_times_beyond_since(self):
        if not hasattr(self, "trace"):
            return
        since, have = self.trace.since, held(self.trace)
        asked = {time for _, time, _ in self.inserted} | {time for _, time, _ in have}
        asked |= {join(time, element) for time in asked for element in since}
        for lane in range(self.trace.width):
            want_lane, have_lane = (
                [(data, time, diff[lane]) for data, time, diff in rows] for rows in (self.inserted, have)
            )
            for time in asked:
                if since.beyond(time):
                    assert accumulate(have_lane, time) == accumulate(want_lane, time), f"at {time} since {since}"

    @invariant()
    def since_and_levels_only_move_forward(self):
        if hasattr(self, "trace"):
            assert self.seen_since.precedes(self.trace.since)
            self.seen_since = self.trace.since
            levels = [layer.level for layer in self.trace._layers]
            assert levels == sorted(set(levels), reverse=True)

    @invariant()
    def batches_are_sorted_follow_each_other_and_respect_every_cut(self):
        """A3.3. No batch reaches across a reader's physical frontier."""
        if not hasattr(self, "trace"):
            return
        upper = Frontier.start(self.trace.depth)
        for part in self.trace.batches_through(None):
            rows = naive.rows(part.updates)
            assert rows and rows == naive.consolidate(rows)
            assert upper.precedes(part.lower), "the interval between two batches has no updates"
            upper = part.upper
        for handle in self.handles:
            if handle.physical.precedes(self.trace.upper):
                handle.batches(handle.physical)
            assert handle.batches(self.trace.upper) == handle.batches(None)


TestTrace = TraceMachine.TestCase
TestTrace.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


# One batch for each epoch, as a stream of transactions produces them


class Stream:
    """A trace of one key and one value lane whose single reader follows the last sealed epoch."""

    def __init__(self, effort: Effort = "default", lanes: int = 2) -> None:
        self.trace = Spine(1, lanes, 1, 1, PRESETS[effort])
        self.handle = TraceHandle(self.trace, "reader", Frontier.at((0,)))
        self.handle.set_physical(CLOSED)
        self.handle.follow(lambda: self.trace.upper)
        self.epoch = 0

    def insert(self, data: np.ndarray, diff: int = 1) -> None:
        updates = consolidate(Updates(np.ascontiguousarray(data), constant((self.epoch,)), constant((diff,))))
        lower, upper = Frontier.at((self.epoch,)), Frontier.at((self.epoch + 1,))
        self.epoch += 1
        self.trace.insert(Batch(updates, 1, Description(lower, upper, Frontier.at((0,)))))

    def settle(self, most: int = 10_000) -> int:
        for turn in range(most):
            if not self.trace.exert(10_000):
                return turn
        raise AssertionError("idle work does not end")


def pairs(start: int, n: int) -> np.ndarray:
    return np.stack([np.arange(start, start + n), np.arange(start, start + n) % 7])


@pytest.mark.jit
def test_batches_stay_few_however_many_are_inserted():
    """A3.11: their number is at most logarithmic."""
    stream = Stream()
    for i in range(600):
        stream.insert(pairs(1000 * i, 1000))
        assert stream.trace.batch_count <= 2 * (1 + (i * 1000 // 4096).bit_length()) + 1
    assert stream.trace.rows == 600_000


@pytest.mark.jit
@pytest.mark.parametrize("effort", ["default", "lazy"])
def test_work_for_an_insert_is_bounded_by_its_size(effort, monkeypatch):
    """A3.11, A3.12: many inserts share the cost of a merge of half a million rows, and it is done in time."""
    done: list[int] = []
    work = merger.Merge.work
    monkeypatch.setattr(merger.Merge, "work", lambda self, fuel: done.append(work(self, fuel)) or done[-1])
    stream = Stream(effort)
    for i in range(300):
        done.clear()
        stream.insert(pairs(2000 * i, 2000))
        assert sum(done) <= 2 * (4 * 8192) * 8, "the rows of an insert, and a few levels' worth of fuel"


def test_eager_effort_leaves_no_merge_in_progress():
    """A3.12."""
    stream = Stream("eager")
    for i in range(100):
        stream.insert(pairs(3000 * i, 3000))
        assert all(layer.merge is None for layer in stream.trace._layers)


def test_single_rows_gather_in_one_tail_a_few_at_a_time():
    stream = Stream()
    stream.insert(pairs(0, 100_000))
    for i in range(3000):
        stream.insert(pairs(200_000 + i, 1))
        assert stream.trace.batch_count <= 2 + DEFAULT.max_pending_batches


def test_readers_see_the_inputs_of_a_merge_until_it_is_done_and_then_they_are_dropped():
    """A3.13"""
    stream = Stream("lazy")
    stream.insert(pairs(0, 50_000))
    first = stream.trace.batches_through(None)[0]
    stream.insert(pairs(50_000, 50_000))
    assert first in stream.trace.batches_through(None) and stream.trace.rows == 100_000
    stream.settle()
    assert first not in stream.trace.batches_through(None) and stream.trace.rows == 100_000


def test_a_batch_that_is_not_merged_is_the_batch_that_was_inserted():
    """A3.9"""
    trace = Spine(1, 1, 1)
    reader = TraceHandle(trace, "reader", Frontier.at((0,)))
    inserted = batch([((1,), (0,), (1,))], trace, Frontier.at((1,)))
    trace.insert(inserted)
    assert reader.batches(None) == (inserted,)


def test_batches_that_do_not_continue_the_trace_are_refused():
    trace = Spine(1, 1, 1)
    with pytest.raises(AssertionError, match="expected a batch from"):
        trace.insert(Batch(naive.updates([], 1, 1), 1, Description(Frontier.at((3,)), Frontier.at((4,)), trace.since)))


def test_a_large_batch_waits_until_its_retractions_can_cancel():
    """An output's since is one epoch behind: the next insert merges the batch, and its retractions cancel."""
    stream = Stream()
    stream.handle.follow(lambda: Frontier.at((max(0, stream.epoch - 2),)))  # the epoch before the one that is inserted
    size = 2 * DEFAULT.rows_per_since
    stream.insert(pairs(0, size))
    for i in range(20):
        new, old = pairs((i + 1) * size, size), pairs(i * size, size)
        diffs = np.repeat([[1, -1]], size, axis=1)
        rows = Updates(np.concatenate([new, old], axis=1), constant((stream.epoch,)), diffs)
        lower, upper = Frontier.at((stream.epoch,)), Frontier.at((stream.epoch + 1,))
        stream.epoch += 1
        waiting = Batch(consolidate(rows), 1, Description(lower, upper, Frontier.at((0,))))
        stream.trace.insert(waiting)
        assert stream.trace.batches_through(None)[-1] is waiting
        assert stream.trace.rows <= 4 * size, "the insertions, the retractions, and the rows before them"
        assert all(len(part.updates.times[0]) == 1 for part in stream.trace.batches_through(None))
    stream.epoch += 1
    stream.settle()
    assert sorted(row for row, _, _ in held(stream.trace)) == sorted(zip(*pairs(20 * size, size).tolist(), strict=True))


# Failures that real systems had


@pytest.mark.jit
def test_no_rows_remain_when_all_are_deleted_and_no_more_arrive():
    """A17.1"""
    stream = Stream()
    for i in range(40):
        stream.insert(pairs(5000 * i, 5000))
    for i in range(40):
        stream.insert(pairs(5000 * i, 5000), -1)
    stream.settle(200)
    assert stream.trace.rows == 0 and stream.trace.batch_count == 0 and stream.trace.nbytes == 0


def test_an_idle_trace_compacts_to_its_since_and_then_has_no_more_work():
    """A17.2: each key changed a hundred times; one row of it remains."""
    stream = Stream()
    history = stream.handle.clone("history")
    for i in range(100):
        if i:
            stream.insert(np.stack([np.arange(200), np.full(200, i - 1)]), -1)
        stream.insert(np.stack([np.arange(200), np.full(200, i)]))
    assert stream.trace.rows == 200 * 199
    history.release()
    stream.settle(50)
    assert stream.trace.rows == 200
    before = stream.trace.batches_through(None)
    assert not stream.trace.exert(1000) and stream.trace.batches_through(None) == before


def test_rows_shrink_when_the_only_slow_reader_is_released():
    """A17.3, A4.2, A4.3: compaction follows the slowest reader."""
    stream = Stream()
    slow = stream.handle.clone("slow")
    for _ in range(50):
        stream.insert(pairs(0, 300))
        stream.insert(pairs(0, 300), -1)
    stream.settle()
    assert stream.trace.since == Frontier.at((0,)) and stream.trace.rows == 300 * 100
    slow.release()
    assert stream.trace.since == stream.trace.upper
    stream.settle()
    assert stream.trace.rows == 0


def test_empty_epochs_leave_nothing_behind():
    """A17.4"""
    stream = Stream()
    stream.insert(pairs(0, 10))
    first, size = stream.trace.batches_through(None), stream.trace.nbytes
    for _ in range(20_000):
        stream.insert(np.empty((2, 0), np.int64))
    assert stream.trace.batches_through(None) == first and stream.trace.nbytes == size
    assert stream.trace.upper == Frontier.at((20_001,))


@pytest.mark.jit
@pytest.mark.parametrize("rows", [1, 700, 9000])
def test_unique_keys_inserted_and_deleted_for_ever_stay_bounded(rows):
    """A3.16, A17.6: even if no merge brings them together with another key, and without idle work."""
    stream = Stream()
    most = 0
    for i in range(2000 if rows == 1 else 150):
        stream.insert(pairs(rows * i, rows))
        stream.insert(pairs(rows * i, rows), -1)
        most = max(most, stream.trace.rows)
    assert most <= 12 * max(rows, DEFAULT.tail_rows)


def test_a_merge_that_only_copies_one_side_compacts_it():
    """A17.6: the keys are inserted and deleted at the same since and never occur again."""
    stream = Stream()
    history = stream.handle.clone("history")
    stream.insert(pairs(0, 9000))
    stream.insert(pairs(0, 9000), -1)
    history.release()
    for i in range(1, 20):
        stream.insert(pairs(100_000 * i, 9000))
    stream.settle()
    assert stream.trace.rows == 19 * 9000


def test_a_trace_without_readers_keeps_no_rows():
    """A4.3: a test may keep the spine object longer than its handles, but not its rows."""
    stream = Stream()
    stream.insert(pairs(0, 10_000))
    stream.handle.release()
    stream.settle()
    assert stream.trace.since == CLOSED
    stream.insert(pairs(10_000, 10_000))
    stream.settle()
    assert stream.trace.rows == 0


def test_estimated_rows_do_not_count_changes_that_cancel():
    stream = Stream()
    history = stream.handle.clone("history")
    stream.insert(pairs(0, 10))
    for _ in range(20):
        stream.insert(pairs(20, 5))
        stream.insert(pairs(20, 5), -1)
    assert stream.trace.rows == 210 and stream.trace.estimated_rows == 10
    stream.insert(pairs(0, 2), 1_000)  # rows that occur often count once
    assert stream.trace.estimated_rows <= stream.trace.rows
    stream.insert(pairs(0, 2), -1_000_000)
    assert stream.trace.estimated_rows == 0
    history.release()


def test_a_closed_trace_compacts_too():
    """Its upper is empty, so no since passes it."""
    trace = Spine(1, 1, 1)
    handle = TraceHandle(trace, "reader", Frontier.at((0,)))
    handle.set_physical(CLOSED)
    trace.insert(batch([((1,), (time,), (1 if time % 2 == 0 else -1,)) for time in range(5)], trace, CLOSED))
    assert trace.upper == CLOSED and trace.rows == 5
    handle.set_since(Frontier.at((7,)))
    while trace.exert(10):
        pass
    assert held(trace) == [((1,), (7,), (1,))]
