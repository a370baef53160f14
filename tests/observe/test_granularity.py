"""Output that comes at full intervals: A13.6."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.columns.updates import Updates, spread
from kpg.observe.granularity import CONSOLIDATION_ROWS, ClockGranularity, EpochGranularity
from kpg.testing.manual_clock import ManualClock


def updates(rows: list[tuple[int, int, int]]) -> Updates:
    """Rows of one lane, with their time and diff."""
    lanes = np.array(rows, np.int64).reshape(-1, 3).T
    return Updates(*(np.ascontiguousarray(lane.reshape(1, -1)) for lane in lanes))


def listed(parts: list[Updates]) -> list[tuple[int, int, int]]:
    """All (row, time, diff) of some updates."""
    updates = []
    for part in parts:
        n = len(part)
        times, diffs = spread(part.times, n)[0].tolist(), spread(part.diffs, n)[0].tolist()
        updates += zip(part.data[0].tolist(), times, diffs, strict=True)
    return updates


def total(rows: list[tuple[int, int, int]], upto: float) -> Counter:
    """What there is at a time."""
    sums = Counter()
    for row, time, diff in rows:
        if time <= upto:
            sums[row] += diff
    return Counter({row: count for row, count in sums.items() if count})


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, -1])), max_size=8)


@settings(max_examples=150)
@given(st.integers(1, 6), st.lists(ROWS, max_size=12), st.booleans())
def test_at_each_edge_what_was_given_is_what_had_come(interval, steps, ask_always):
    """A13.6: in between nothing is given; each row at most once for an edge, and not before the edge is complete."""
    held, epoch, given, come = EpochGranularity(interval), 0, [], []
    for step in steps:
        rows = [(row, epoch + ahead, diff) for row, ahead, diff in step]
        last = max([epoch, *(time for _, time, _ in rows)])
        held.push(updates(rows))
        come += rows
        epoch = last + 1  # all of these are complete now
        if ask_always or epoch % 2:
            new = listed(held.take(epoch))
            assert all(time < epoch for _, time, _ in new)
            given += new
            edge = (epoch - 1) // interval * interval
            assert total(given, edge) == total(come, edge)
            assert held.upto(epoch) > max([time for _, time, _ in given], default=-1)
    given += listed(held.take(None))
    assert all(time % interval == 0 for _, time, _ in given)
    for edge in range(0, epoch + 2 * interval, interval):
        assert total(given, edge) == total(come, edge)
    assert max(Counter((row, time) for row, time, _ in given).values(), default=0) <= 1
    assert held.rows == 0


@pytest.mark.parametrize(("epoch", "edge"), [(0, 0), (1, 10), (9, 10), (10, 10), (11, 20), (20, 20)])
def test_a_change_at_an_edge_belongs_to_the_interval_that_ends_there(epoch, edge):
    """A13.6: the edges."""
    held = EpochGranularity(10)
    held.push(updates([(1, epoch, 1)]))
    assert held.take(edge) == []  # the edge itself is not complete
    assert listed(held.take(edge + 1)) == [(1, edge, 1)]


def test_what_cancels_within_an_interval_is_never_given():
    """A13.6: consolidated."""
    held = EpochGranularity(10)
    for epoch in range(1, 10):
        held.push(updates([(1, epoch, 1 if epoch % 2 else -1), (2, epoch, 1)]))
    assert listed(held.take(11)) == [(1, 10, 1), (2, 10, 9)]


def test_what_waits_is_bounded_by_what_differs():
    held = EpochGranularity(1_000_000)
    for number in range(40):
        held.push(updates([(row, 1 + number, 1) for row in range(1000)]))
    assert 1000 <= held.rows <= CONSOLIDATION_ROWS + 1000
    assert sorted(listed(held.take(None)))[0] == (0, 1_000_000, 40)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2), st.sampled_from([1, -1])), max_size=20))
def test_by_the_clock_nothing_is_given_before_the_next_full_second_and_nothing_is_lost(moves):
    """A13.6: in seconds; each interval is given once."""
    clock = ManualClock()
    held = ClockGranularity(1.0, clock.now)
    come, given = Counter(), Counter()
    waiting_since: list[float] = []
    for epoch, (tenths, row, diff) in enumerate(moves):
        clock.advance(tenths / 10)
        now = clock.now()
        parts = held.take()
        for found_row, _, found_diff in listed(parts):
            given[found_row] += found_diff
        waiting_since = [since for since in waiting_since if -(-since // 1) > now]
        if not waiting_since:
            assert +given == +come and held.due_in is None or held.rows == 0
        held.push(updates([(row, epoch, diff)]))
        come[row] += diff
        waiting_since.append(now)
        assert held.due_in is not None and held.due_in == min(-(-since // 1) for since in waiting_since) - now
    for found_row, _, found_diff in listed(held.take_all()):
        given[found_row] += found_diff
    assert {row: n for row, n in given.items() if n} == {row: n for row, n in come.items() if n}


def test_by_the_clock_a_second_is_given_at_its_end_and_not_before():
    clock = ManualClock()
    held = ClockGranularity(1.0, clock.now)
    clock.advance(3.25)
    held.push(updates([(1, 7, 1)]))
    clock.advance(0.5)
    held.push(updates([(1, 8, -1), (2, 8, 1)]))
    assert held.take() == [] and held.due_in == 0.25
    clock.advance(0.25)
    assert listed(held.take()) == [(2, 8, 1)] and held.due_in is None


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "1"])
def test_an_interval_is_a_positive_number(wrong):
    with pytest.raises(kpg.TypeMismatch):
        EpochGranularity(wrong)
    if wrong != 1.5:
        with pytest.raises(kpg.TypeMismatch):
            ClockGranularity(wrong)
