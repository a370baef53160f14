"""A batcher returns exactly the complete updates, in order, and its memory is linear in distinct updates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.packed_updates import pack_updates
from kpg.columns.updates import Updates, constant
from kpg.testing import kernel_twins as naive
from kpg.testing.strategies import advances, batch_cuts, depths, times
from kpg.trace import batcher as limits
from kpg.trace.batcher import Batcher


@given(st.data(), st.integers(0, 2), depths(), st.integers(1, 2), st.sampled_from([2, 1 << 18]))
def test_seal_returns_exactly_the_updates_not_beyond_the_upper(data, lanes, depth, width, heap):
    """A3.3, A3.5: for every division into pushes, and any number of times in one seal (A3.6)."""
    row = st.tuples(
        st.tuples(*[st.integers(0, 2)] * lanes), times(depth), st.tuples(*[st.sampled_from([1, -1])] * width)
    )
    pushes = data.draw(batch_cuts(data.draw(st.lists(row, max_size=15))))
    uppers = [*data.draw(advances(depth)), CLOSED]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MIN_UNSORTED_ROWS", heap)
        batcher = Batcher(lanes, depth, width)
        waiting: list[naive.Update] = []
        for upper in uppers:
            for part in pushes[:2] if upper else pushes:
                batcher.push(naive.updates(part, lanes, depth, width))
                waiting += part
            pushes = pushes[2:]
            assert batcher.pending().precedes(Frontier(time for _, time, _ in naive.consolidate(waiting)))
            got = naive.rows(batcher.seal(upper))
            assert got == naive.consolidate([update for update in waiting if not upper.beyond(update[1])])
            waiting = [update for update in waiting if upper.beyond(update[1])]
            assert batcher.pending().precedes(Frontier(time for _, time, _ in naive.consolidate(waiting)))
            assert upper.precedes(batcher.pending()) and batcher.rows <= len(waiting)
            assert naive.consolidate(row for part in batcher.parts() for row in naive.rows(part)) == naive.consolidate(
                waiting
            )
    assert batcher.pending() == CLOSED and batcher.rows == 0


@given(st.data(), depths(2), st.booleans())
def test_consolidated_updates_may_be_mixed_with_others(data, depth, first):
    row = st.tuples(st.tuples(st.integers(0, 2)), times(depth), st.tuples(st.sampled_from([1, -1])))
    consolidated, other = naive.consolidate(data.draw(st.lists(row, max_size=8))), data.draw(st.lists(row, max_size=8))
    batcher = Batcher(1, depth)
    pushes = [(consolidated, True), (other, False)]
    for part, is_consolidated in pushes if first else reversed(pushes):
        batcher.push(naive.updates(part, 1, depth), is_consolidated)
    assert naive.rows(batcher.seal(CLOSED)) == naive.consolidate(consolidated + other)


@given(st.data(), st.sampled_from([1, 4]), st.integers(1, 3))
def test_packed_rows_of_some_times_may_be_mixed_with_others(data, ratio, most):
    """However they are grouped, since packed rows of one time are sorted apart from others if they are many."""
    key, depth, batcher = st.tuples(st.integers(0, 3)), 2, Batcher(1, 2)
    everything: list[naive.Update] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MIN_ROWS_SORTED_APART", most)
        patch.setattr(limits, "MIN_PACKED_RATIO", ratio)
        for _ in range(data.draw(st.integers(1, 5))):
            time, diff = data.draw(st.tuples(times(depth), st.sampled_from([1, -1, None])))
            diffs = st.tuples(st.sampled_from([1, -1])) if diff is None else st.just((diff,))
            is_packed = data.draw(st.booleans())
            row = st.tuples(key, st.just(time) if is_packed else times(depth), diffs)
            part = data.draw(st.lists(row, min_size=1, max_size=5))
            updates = naive.updates(part, 1, depth)
            if is_packed:
                one_time = Updates(updates.data, constant(time), constant((diff,)) if diff else updates.diffs)
                updates = pack_updates(one_time) or updates
            batcher.push(updates)
            everything += part
        assert naive.rows(batcher.seal(CLOSED)) == naive.consolidate(everything)


def test_a_single_consolidated_push_is_returned_without_a_copy():
    updates = naive.updates([((i,), (3,), (1,)) for i in range(100)], 1, 1)
    batcher = Batcher(1, 1)
    batcher.push(updates, consolidated=True)
    assert batcher.seal(Frontier.at((4,))) is updates


@pytest.mark.jit
def test_ten_keys_stay_small_however_often_they_change():
    """A3.5: ten million updates, in chunks."""
    generator = np.random.default_rng(5)
    batcher, most = Batcher(1, 1), 0
    for _ in range(1000):
        batcher.push(Updates(generator.integers(0, 10, (1, 10_000)), constant((0,)), constant((1,))))
        most = max(most, batcher.nbytes)
    assert most < 4 << 20
    sealed = batcher.seal(Frontier.at((1,)))
    assert len(sealed) == 10 and int(sealed.diffs.sum()) == 10_000_000


@pytest.mark.jit
def test_memory_is_linear_in_distinct_updates():
    generator = np.random.default_rng(5)
    batcher, distinct = Batcher(1, 1), 100_000
    for _ in range(100):
        batcher.push(Updates(generator.integers(0, distinct, (1, 20_000)), constant((0,)), constant((1,))))
        assert batcher.rows <= 2 * max(distinct, limits.MIN_UNSORTED_ROWS) + 20_000


def test_seals_before_a_time_do_not_touch_its_updates():
    """A3.20: the cost of a seal depends on the updates it returns, not on those held."""
    updates = naive.updates([((i,), (100,), (1,)) for i in range(100)], 1, 1)
    batcher = Batcher(1, 1)
    batcher.push(updates, consolidated=True)
    for epoch in range(100):
        batcher.push(naive.updates([((1,), (epoch,), (1,))], 1, 1))
        assert naive.rows(batcher.seal(Frontier.at((epoch + 1,)))) == [((1,), (epoch,), (1,))]
        assert batcher.pending() == Frontier.at((100,))
    assert batcher.seal(Frontier.at((101,))) is updates


def test_later_times_stay_when_earlier_ones_are_sealed():
    batcher = Batcher(1, 1)
    batcher.push(Updates(np.arange(10).reshape(1, 10), np.arange(10).reshape(1, 10), constant((1,))))
    assert len(batcher.seal(Frontier.at((4,)))) == 4
    assert batcher.pending() == Frontier.at((4,)) and batcher.rows == 6
    assert len(batcher.seal(Frontier.at((4,)))) == 0
    assert len(batcher.seal(CLOSED)) == 6
