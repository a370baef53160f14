"""Parts of a read are together the whole read, however they are cut, and read no more than they need."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Updates, constant, no_updates
from kpg.testing.model import accumulate
from kpg.testing.strategies import SMALL_DIFFS, depths, huge_diffs, rows, sealed_batches, times, updates
from kpg.trace import read_parts
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.read_parts import KeyReader, PartReader, count_rows


def updates_of(stream, lanes, depth):
    data = np.array([row for row, _, _ in stream], np.int64).reshape(len(stream), lanes).T
    when = np.array([time for _, time, _ in stream], np.int64).reshape(len(stream), depth).T
    diffs = np.array([[diff for _, _, diff in stream]], np.int64).reshape(1, len(stream))
    if not stream:
        return no_updates(lanes, depth)
    return Updates(*map(np.ascontiguousarray, (data, when, diffs)))


@st.composite
def batches_of(draw, lanes, depth, diffs, key_lanes=None):
    stream = draw(updates(rows(lanes, 4), depth, max_size=40, diffs=diffs))
    sealed = draw(sealed_batches(stream, depth))
    batches = [
        Batch(
            consolidate(updates_of(part, lanes, depth)),
            lanes if key_lanes is None else key_lanes,
            Description(lower, upper, lower),
        )
        for lower, upper, part in sealed
    ]
    return stream, batches


@given(data=st.data(), lanes=st.integers(0, 3), depth=depths(2))
def test_parts_are_the_whole_read(data, lanes, depth):
    diffs = data.draw(st.sampled_from([SMALL_DIFFS, st.just(1), huge_diffs()]))
    stream, batches = data.draw(batches_of(lanes, depth, diffs))
    at = data.draw(times(depth, 3))
    want = sorted(accumulate(stream, at).items())
    reader, got = PartReader(batches, at), []
    while not reader.is_done:
        size = data.draw(st.integers(1, 5))
        block, counts = reader.next_rows(size)
        assert block.shape[1] >= size or reader.is_done
        got += zip(map(tuple, block.T.tolist()), counts[0].tolist(), strict=True)
    assert got == want
    assert count_rows(batches, at) == sum(count for _, count in want)


@given(data=st.data(), lanes=st.integers(1, 3), depth=depths(2))
def test_parts_of_some_keys_are_the_whole_read_of_them(data, lanes, depth):
    diffs = data.draw(st.sampled_from([SMALL_DIFFS, st.just(1), huge_diffs()]))
    key_lanes = data.draw(st.integers(1, lanes))
    stream, batches = data.draw(batches_of(lanes, depth, diffs, key_lanes))
    at = data.draw(times(depth, 3))
    keys = sorted(data.draw(st.sets(st.tuples(*[st.integers(0, 5)] * key_lanes), max_size=12)))
    wanted = np.array(keys, np.int64).reshape(len(keys), key_lanes).T.copy()
    want = sorted(item for item in accumulate(stream, at).items() if item[0][:key_lanes] in keys)
    reader, got = KeyReader(batches, at, wanted), []
    while not reader.is_done:
        size = data.draw(st.integers(1, 5))
        block, counts = reader.next_rows(size)
        assert block.shape[1] >= size or reader.is_done
        got += zip(map(tuple, block.T.tolist()), counts[0].tolist(), strict=True)
    assert got == want


def test_a_key_with_many_rows_is_read_in_parts(monkeypatch):
    sizes = read_sizes(monkeypatch)
    data = np.stack([np.repeat([1, 2, 3], [10, 100_000, 10]), np.arange(100_020)])
    description = Description(Frontier.at((0,)), Frontier.at((1,)), Frontier.at((0,)))
    batch = Batch(Updates(data, constant((0,)), constant((1,))), 1, description)
    reader, got = KeyReader([batch], (9,), np.array([[1, 2, 3]])), 0
    while not reader.is_done:
        got += reader.next_rows(1_000)[0].shape[1]
    assert got == 100_020
    assert max(size for size in sizes if size != len(batch)) <= 1_000
    assert sizes.count(len(batch)) <= 3, "reads of a few keys look them up in the batch"


def sorted_batch(values, epoch, diff=1):
    data = np.sort(np.asarray(values, np.int64)).reshape(1, -1)
    description = Description(Frontier.at((epoch,)), Frontier.at((epoch + 1,)), Frontier.at((0,)))
    return Batch(Updates(data, constant((epoch,)), constant((diff,))), 1, description)


def read_sizes(monkeypatch):
    """Return the list of how many updates each part has read."""
    sizes, read = [], read_parts.read

    def counted(batches, at, keys):
        sizes.append(sum(map(len, batches)))
        return read(batches, at, keys)

    monkeypatch.setattr(read_parts, "read", counted)
    return sizes


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_the_first_rows_cost_as_many_of_each_batch(monkeypatch, size):
    sizes = read_sizes(monkeypatch)
    batches = [sorted_batch(np.arange(start, 100_000, 3), start) for start in range(3)]
    data, counts = PartReader(batches, (9,)).next_rows(size)
    assert data[0, :size].tolist() == list(range(size)) and (counts == 1).all()
    assert sum(sizes) <= 3 * 3 * size + 3


def test_rows_that_cancel_are_skipped_in_growing_parts(monkeypatch):
    sizes = read_sizes(monkeypatch)
    batches = [sorted_batch(np.arange(100_000), 0), sorted_batch(np.arange(50_000), 1, -1)]
    data, _ = PartReader(batches, (9,)).next_rows(5)
    assert data[0, :5].tolist() == list(range(50_000, 50_005))
    assert len(sizes) < 20


def test_changes_of_the_trace_do_not_affect_a_reader():
    batches = [sorted_batch(range(10), 0)]
    reader = PartReader(batches, (9,))
    first, _ = reader.next_rows(4)
    batches.append(sorted_batch(range(10), 1, -1))
    rest, _ = reader.next_rows(100)
    assert [*first[0].tolist(), *rest[0].tolist()] == list(range(10)) and reader.is_done
