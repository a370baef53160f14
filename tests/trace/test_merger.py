"""A merge combines two batches, compacted to a since, and can be interrupted anywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.algebra.order import join
from kpg.columns import output_buffer
from kpg.columns.updates import Updates, constant
from kpg.testing import kernel_twins as naive
from kpg.testing.model import accumulate
from kpg.testing.strategies import depths, frontiers, times
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.merger import Merge, empty_after, merge_now, merge_updates


@st.composite
def adjacent(draw: st.DrawFn, lanes: int, depth: int) -> tuple[Batch, Batch]:
    """Two adjacent batches, each possibly empty, the last of its trace, or compacted before."""
    start = Frontier.start(depth)
    middle = draw(frontiers(depth, 2, min_size=1))
    end = draw(st.sampled_from([CLOSED, middle.join(draw(frontiers(depth, 4, min_size=1)))]))
    rows = draw(
        st.lists(
            st.tuples(st.tuples(*[st.integers(0, 2)] * lanes), times(depth, 4), st.tuples(st.sampled_from([1, -1]))),
            max_size=30,
        )
    )
    batches = []
    for lower, upper in ((start, middle), (middle, end)):
        here = [row for row in rows if lower.beyond(row[1]) and not upper.beyond(row[1])]
        since = draw(st.sampled_from([start, draw(frontiers(depth, 2, min_size=1))]))
        compact = naive.merge_runs(here, [], since)
        batches.append(Batch(naive.updates(compact, lanes, depth), min(lanes, 1), Description(lower, upper, since)))
    return batches[0], batches[1]


@given(st.data(), st.integers(0, 2), depths(), st.sampled_from([1, 3, 1 << 62]), st.sampled_from([1, 1 << 14]))
def test_a_merge_is_both_batches_compacted(data, lanes, depth, fuel, small):
    """A3.14, A3.15: the theorems of appendix A, for whole batches; no more representatives could be equal."""
    older, newer = data.draw(adjacent(lanes, depth))
    since = data.draw(frontiers(depth, 5)).join(older.since).join(newer.since)
    before = naive.rows(older.updates) + naive.rows(newer.updates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_buffer, "COPIED_COLUMNS", small)
        merge, read = Merge(older, newer, since), 0
        while not merge.done:
            read += merge.work(fuel)
        assert read <= len(before)
    merged = merge.result()
    assert (merged.lower, merged.upper, merged.since) == (older.lower, newer.upper, since)
    assert merged.key_lanes == older.key_lanes
    after = naive.rows(merged.updates)
    assert after == (naive.merge_runs(before, [], since) if since else [])
    ones = [[(d, t, r[0]) for d, t, r in rows] for rows in (before, after)]
    for time in {join(t, f) for _, t, _ in before for f in since}:
        assert accumulate(ones[1], time) == accumulate(ones[0], time)
    for part in (merged.updates.times, merged.updates.diffs):
        assert part.flags.c_contiguous and (len(merged) <= 1 or len(set(naive.columns(part))) > 1 or part.shape[1] == 1)


@given(st.data(), depths())
def test_merged_updates_keep_their_times(data, depth):
    older, newer = data.draw(adjacent(1, depth))
    got = merge_updates(older.updates, newer.updates)
    assert naive.rows(got) == naive.consolidate(naive.rows(older.updates) + naive.rows(newer.updates))


def long_batch(n: int, lower: int, upper: int, start: int = 0) -> Batch:
    data = np.stack([np.arange(start, start + n), np.zeros(n, np.int64)])
    return Batch(
        Updates(data, constant((lower,)), constant((1,))),
        1,
        Description(Frontier.at((lower,)), Frontier.at((upper,)), Frontier.at((0,))),
    )


def test_compacted_rows_take_sixteen_bytes_and_nothing_more():
    """Equal times and equal diffs become constants."""
    merged = merge_now(long_batch(50_000, 0, 1), long_batch(50_000, 1, 2, 50_000), Frontier.at((2,)))
    assert merged.nbytes == 100_000 * 16 + 16 and merged.updates.times.tolist() == [[2]]


def test_memory_of_what_cancelled_is_given_back():
    older, newer = long_batch(50_000, 0, 1), long_batch(40_000, 1, 2, 5_000)
    minus = Batch(Updates(newer.updates.data, newer.updates.times, constant((-1,))), 1, newer.description)
    merged = merge_now(older, minus, Frontier.at((2,)))
    assert len(merged) == 10_000
    owner = merged.updates.data if merged.updates.data.base is None else merged.updates.data.base
    assert isinstance(owner, np.ndarray) and owner.nbytes == 10_000 * 16


def test_compaction_alone_of_one_time_shares_the_data():
    older = long_batch(1000, 0, 1)
    merged = merge_now(older, empty_after(older), Frontier.at((9,)))
    assert merged.updates.data is older.updates.data and merged.updates.times.tolist() == [[9]]


def test_fuel_bounds_each_step():
    merge = Merge(long_batch(50_000, 0, 1), long_batch(50_000, 1, 2, 25_000), Frontier.at((2,)))
    steps = 0
    while not merge.done:
        assert 0 < merge.work(1000) <= 1001
        steps += 1
    assert steps >= 99 and len(merge.result()) == 75_000


@pytest.mark.jit
def test_a_datum_with_many_times_is_not_quadratic():
    """A3.20: two hundred thousand times of one row, all out of order after compaction."""
    generator = np.random.default_rng(2)
    n = 200_000
    moments = np.unique(generator.integers(0, (3, n), (n, 2)), axis=0).T.copy()
    data = np.zeros((1, moments.shape[1]), np.int64)
    start = Frontier.start(2)
    older = Batch(Updates(data, moments, constant((1,))), 1, Description(start, Frontier.at((3, 0)), start))
    merged = merge_now(older, empty_after(older), Frontier.at((3, 0)))
    assert len(merged) == len(np.unique(moments[1])) and int(merged.updates.diffs.sum()) == moments.shape[1]
