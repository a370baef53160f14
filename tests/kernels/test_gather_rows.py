"""The rows of some keys are gathered from any number of batches as the twin does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.updates import Updates
from kpg.kernels.gather_rows import consolidate_keys, copy_histories, copy_rows_as_of, fill_offsets, group_offsets
from kpg.kernels.locate_keys import locate_keys
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, times
from kpg.trace.batch import Batch
from kpg.trace.batch_table import describe_batch, table_of
from kpg.trace.description import Description
from kpg.trace.key_history import accumulate, distinct_keys, gather, read

Rows = list[twins.Update]


@st.composite
def batches(draw: st.DrawFn, lanes: int, depth: int, width: int) -> list[Rows]:
    data = st.tuples(*[st.integers(0, 3)] * lanes)
    diffs = st.tuples(*[st.sampled_from([1, -1])] * width)
    one_time = draw(times(depth))
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        moments = draw(st.sampled_from([times(depth), st.just(one_time)]))
        parts.append(twins.consolidate(draw(st.lists(st.tuples(data, moments, diffs), max_size=12))))
    return parts


def in_batches(parts: list[Rows], key_lanes: int, lanes: int, depth: int, width: int) -> list[Batch]:
    start = Frontier.start(depth)
    description = Description(start, start, start)
    return [Batch(twins.updates(part, lanes, depth, width), key_lanes, description) for part in parts]


@st.composite
def some_keys(draw: st.DrawFn, key_lanes: int) -> list[twins.Row]:
    return sorted(draw(st.sets(st.tuples(*[st.integers(0, 4)] * key_lanes), max_size=5)))


@given(st.data(), st.integers(0, 2), st.integers(0, 2), depths(2), st.sampled_from([1, 1, 2]), st.integers(0, 1))
def test_gather_matches_twin(data, key_lanes, value_lanes, depth, width, deeper):
    lanes = key_lanes + value_lanes
    parts, keys = data.draw(batches(lanes, depth, width)), data.draw(some_keys(key_lanes))
    floor = data.draw(st.none() | times(depth + deeper))
    run = gather(in_batches(parts, key_lanes, lanes, depth, width), twins.block(keys, key_lanes), floor, depth + deeper)
    n = run.data.shape[1]
    assert run.times.shape == (depth + deeper, n) and run.diffs.shape == (width, n) and run.data.shape[0] == value_lanes
    gathered = list(zip(*(twins.columns(part) for part in (run.data, run.times, run.diffs)), strict=True))
    got = [gathered[a:b] for a, b in zip(run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True)]
    assert got == twins.gather_rows(parts, keys, floor, depth + deeper)


@given(st.data(), st.integers(0, 2), st.sampled_from([1, 2]))
def test_accumulate_matches_twin(data, key_lanes, width):
    parts, keys = data.draw(batches(key_lanes + 1, 1, width)), data.draw(some_keys(key_lanes))
    got = accumulate(in_batches(parts, key_lanes, key_lanes + 1, 1, width), twins.block(keys, key_lanes), width)
    assert twins.columns(got) == twins.sum_diffs(parts, keys, width)


@given(st.data(), st.integers(0, 2), st.integers(0, 1), depths(2), st.sampled_from([1, 2]))
def test_read_matches_twin(data, key_lanes, value_lanes, depth, width):
    """A4.7: a point query as of a time, and a scan."""
    lanes = key_lanes + value_lanes
    parts, at = data.draw(batches(lanes, depth, width)), data.draw(times(depth))
    keys = data.draw(st.none() | some_keys(key_lanes))
    block = None if keys is None else twins.block(keys, key_lanes)
    rows, multiplicity = read(in_batches(parts, key_lanes, lanes, depth, width), at, block)
    assert multiplicity.shape == (width, rows.shape[1])
    assert list(zip(twins.columns(rows), twins.columns(multiplicity), strict=True)) == twins.read_as_of(parts, at, keys)


@given(st.data(), st.integers(0, 2), st.integers(0, 2))
def test_distinct_keys_match_twin(data, key_lanes, value_lanes):
    (part, *_) = data.draw(batches(key_lanes + value_lanes, 1, 1))
    updates = twins.updates(part, key_lanes + value_lanes, 1)
    keys, offsets = distinct_keys(updates, key_lanes)
    assert keys.flags.c_contiguous and keys.shape[0] == key_lanes
    got = list(zip(twins.columns(keys), offsets.tolist(), strict=False))
    assert got == twins.group_offsets([data for data, _, _ in part], key_lanes)
    assert offsets[-1] == len(part) and len(offsets) == keys.shape[1] + 1


def test_no_batches_give_empty_results():
    run = gather([], np.array([[1, 2]]), None, 2)
    assert run.offsets.tolist() == [0, 0, 0] and run.data.shape == (0, 0) and run.times.shape == (2, 0)
    assert accumulate([], np.array([[1, 2]]), 1).tolist() == [[0, 0]]
    assert read([], (0,), None)[0].shape[1] == 0


def test_many_keys_against_long_batches():
    """Searches and scans agree with masks."""
    generator = np.random.default_rng(3)
    parts = []
    for n in (5000, 300, 1):
        data = np.unique(generator.integers(0, 2000, (2, n)), axis=1)
        times = np.zeros((1, 1), np.int64)
        start = Frontier.start(1)
        parts.append(
            Batch(
                Updates(np.ascontiguousarray(data), times, np.ones((1, 1), np.int64)),
                1,
                Description(start, start, start),
            )
        )
    for keys in (np.array([[3, 700, 1999]]), np.arange(2000).reshape(1, 2000), np.array([[-5]]), np.array([[9999]])):
        run = gather(parts, keys, None, 1)
        for k, key in enumerate(keys[0].tolist()):
            want = sorted(
                value for part in parts for value in part.updates.data[1, part.updates.data[0] == key].tolist()
            )
            got = np.repeat(run.data[0], run.diffs[0])[
                run.diffs[0, : run.offsets[k]].sum() : run.diffs[0, : run.offsets[k + 1]].sum()
            ]
            assert got.tolist() == want


# The kernels, one by one.


@given(st.data(), st.integers(1, 2), depths(2))
def test_copying_and_consolidating_histories_matches_twin(data, key_lanes, depth):
    parts, keys = data.draw(batches(key_lanes + 1, depth, 1)), data.draw(some_keys(key_lanes))
    arrays = [twins.updates(part, key_lanes + 1, depth) for part in parts]
    table = table_of([describe_batch(part) for part in arrays])
    block = twins.block(keys, key_lanes)
    ranges = np.empty((2 * len(parts), len(keys)), np.int64)
    n = locate_keys(table, block, ranges)
    offsets = np.empty(len(keys) + 1, np.int64)
    fill_offsets(ranges, offsets)
    assert offsets[-1] == n
    values, moments, diffs = np.empty((1, n), np.int64), np.empty((depth, n), np.int64), np.empty((1, n), np.int64)
    copy_histories(table, key_lanes, ranges, np.zeros(depth, np.int64), values, moments, diffs)
    raw = list(zip(twins.columns(values), twins.columns(moments), twins.columns(diffs), strict=True))
    want = twins.gather_rows(parts, keys, None, depth)
    for k in range(len(keys)):
        assert twins.consolidate(raw[offsets[k] : offsets[k + 1]]) == want[k]
    spare = [np.empty_like(part) for part in (values, moments, diffs)]
    kept = consolidate_keys(offsets, values, moments, diffs, np.empty(n, np.int64), np.empty(n, np.int64), *spare)
    consolidated = list(zip(*(twins.columns(part[:, :kept]) for part in (values, moments, diffs)), strict=True))
    assert consolidated == [row for history in want for row in history]
    assert offsets.tolist() == np.cumsum([0, *map(len, want)]).tolist()


@given(st.data(), depths(2))
def test_rows_as_of_a_time_and_group_offsets_match_twins(data, depth):
    (part,) = data.draw(batches(2, depth, 1).map(lambda parts: parts[:1]))
    updates, at = twins.updates(part, 2, depth), data.draw(times(depth))
    table, everything = table_of([describe_batch(updates)]), np.array([[0], [len(part)]], np.int64)
    rows, diffs = np.empty((2, len(part)), np.int64), np.empty((1, len(part)), np.int64)
    kept = copy_rows_as_of(table, everything, np.array(at, np.int64), rows, diffs)
    copied = zip(twins.columns(rows[:, :kept]), twins.columns(diffs[:, :kept]), strict=True)
    assert [
        (row, diff) for row, _, diff in twins.consolidate((row, (), diff) for row, diff in copied)
    ] == twins.read_as_of([part], at, None)
    offsets = np.empty(len(part) + 1, np.int64)
    groups = group_offsets(updates.data, 1, offsets)
    assert offsets[:groups].tolist() == [i for _, i in twins.group_offsets([row for row, _, _ in part], 1)]
