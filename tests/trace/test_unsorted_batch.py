"""An unsorted load holds the updates that a sorted batch would, and a scan finds all rows with some keys."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.consolidation import consolidate_all
from kpg.columns.updates import Updates, constant
from kpg.trace import batcher as batchers
from kpg.trace import unsorted_batch
from kpg.trace.batch import Batch
from kpg.trace.batcher import Batcher
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.key_history import read
from kpg.trace.spine import Spine
from kpg.trace.unsorted_batch import UnsortedBatch

START = Frontier.start(1)
VALUES = st.integers(-3, 3) | st.sampled_from([-(2**62), 2**62, 10**12])


def rows(lanes: int, max_size: int = 30) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[VALUES] * lanes), max_size=max_size)


def load_of(given_rows: list[tuple[int, ...]], lanes: int, diff: int = 1) -> Updates:
    return Updates(np.array(given_rows, np.int64).reshape(-1, lanes).T.copy(), constant((0,)), constant((diff,)))


def listed(updates: Updates) -> list[tuple[tuple[int, ...], int]]:
    diffs = np.broadcast_to(updates.diffs, (1, len(updates)))[0].tolist()
    return list(zip(map(tuple, updates.data.T.tolist()), diffs, strict=True))


@st.composite
def loads(draw: st.DrawFn) -> tuple[UnsortedBatch, list[Updates], int]:
    lanes, parts = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    found = [load_of(draw(rows(lanes)), lanes, diff=2) for _ in range(parts)]
    key_lanes = draw(st.integers(1, lanes))
    description = Description(START, Frontier.at((1,)), START)
    return UnsortedBatch(list(found), key_lanes, description), found, lanes


@given(loads())
def test_it_is_sorted_and_consolidated_on_first_use(load):
    batch, parts, _ = load
    held = len(batch)
    assert not batch.is_sorted and held == sum(map(len, parts)) and batch.nbytes
    expected = consolidate_all(list(parts))
    assert listed(batch.updates) == listed(expected) and batch.is_sorted
    assert len(batch) == len(expected) <= held and batch.earliest == ((0,),)


@given(loads(), st.data())
def test_a_scan_returns_all_rows_with_given_keys_and_only_rows_of_the_load(load, data):
    batch, parts, lanes = load
    others = [load_of(data.draw(rows(lanes, 5)), lanes) for _ in range(data.draw(st.integers(1, 2)))]
    keys = {row[: batch.key_lanes] for other in others for row, _ in listed(other)}
    found = listed(batch.rows_with_keys(others, batch.key_lanes))
    everything = listed(consolidate_all(list(parts)))
    assert found == sorted(found)
    assert [entry for entry in everything if entry[0][: batch.key_lanes] in keys] == [
        entry for entry in found if entry[0][: batch.key_lanes] in keys
    ]
    assert set(found) <= set(everything) and not batch.is_sorted


@given(rows(2), rows(2), st.booleans())
def test_a_batcher_seals_a_load_whole_or_not_at_all(first, second, same_time):
    batcher = Batcher(2, 1)
    batcher.push(load_of(first, 2))
    batcher.push(load_of(second, 2).with_times(constant((0 if same_time else 1,))))
    total = batcher.rows
    size, batchers.MIN_LOAD_ROWS = batchers.MIN_LOAD_ROWS, 1
    try:
        load = batcher.seal_load(Frontier.at((2,)))
    finally:
        batchers.MIN_LOAD_ROWS = size
    if load is None:
        assert batcher.rows == total and (not total or not same_time)
    else:
        assert batcher.rows == 0 and sum(map(len, load)) == total and batcher.pending() == CLOSED


def test_idle_work_sorts_a_load():
    spine = Spine(key_lanes=1, lanes=1, depth=1)
    with TraceHandle(spine, "reader", START):
        many = np.arange(200_000, dtype=np.int64)[::-1].reshape(1, -1).copy()
        load = UnsortedBatch(
            [Updates(many, constant((0,)), constant((1,)))], 1, Description(START, Frontier.at((1,)), START)
        )
        spine.insert(load)
        for handle in spine.handles:
            handle.set_physical(Frontier.at((1,)))
        assert not load.is_sorted
        while spine.exert(1_000_000) or not load.is_sorted:  # by the helper thread
            assert spine.unsettled
        assert spine.rows == 200_000


def test_a_load_that_another_thread_sorts_is_merged_afterwards():
    spine = Spine(key_lanes=1, lanes=1, depth=1)
    with TraceHandle(spine, "reader", START) as handle:
        load = large_load()
        parts = load.begin_sort_elsewhere()
        spine.insert(load)
        for time in range(1, 200):
            now, then = Frontier.at((time,)), Frontier.at((time + 1,))
            spine.insert(
                Batch(Updates(np.array([[-time]]), constant((time,)), constant((1,))), 1, Description(now, then, START))
            )
            handle.set_physical(then)
            handle.set_since(now)
            spine.merge_due()
        assert not load.is_sorted, "no insert waits for the sort"
        load.adopt(consolidate_all(parts))
        load.end_sort_elsewhere()
        while spine.exert(1_000_000):
            pass
        assert spine.rows == 200_000 + 199 and len(handle.batches(None)) < 10


def large_load():
    many = np.arange(200_000, dtype=np.int64)[::-1].reshape(1, -1).copy()
    updates = Updates(many, constant((0,)), constant((1,)))
    return UnsortedBatch([updates], 1, Description(START, Frontier.at((1,)), START))


@pytest.mark.parametrize("outcome", ["sorted", "out of memory", "forked"])
def test_a_load_is_scanned_until_the_helper_thread_has_sorted_it(monkeypatch, outcome):
    tasks = []

    def submit(function, *arguments):
        tasks.append((function, arguments, Future()))
        return tasks[-1][2]

    monkeypatch.setattr(unsorted_batch, "submit", submit)
    load = large_load()
    load.sort_soon()
    load.sort_soon()
    assert len(tasks) == 1 and not load.is_sorted and load.sorted_elsewhere
    key = Updates(np.array([[5]]), constant((3,)), constant((1,)))
    assert load.is_worth_scanning(1) and listed(load.rows_with_keys([key], 1)) == [((5,), 1)]
    function, arguments, future = tasks[0]
    if outcome == "sorted":
        future.set_result(function(*arguments))
    elif outcome == "out of memory":
        future.set_exception(MemoryError())
    else:
        monkeypatch.setattr(unsorted_batch.os, "getpid", lambda: -1)
    assert load.is_sorted == (outcome == "sorted") and not load.sorted_elsewhere
    assert load.updates.data[0].tolist() == list(range(200_000))


def test_a_reader_of_all_waits_for_the_helper_thread():
    load = large_load()
    load.sort_soon()
    assert load.updates.data[0].tolist() == list(range(200_000))
    assert load.is_sorted and not load.sorted_elsewhere and len(load) == 200_000


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 2))
def test_a_lookup_in_a_load_finds_what_it_finds_in_sorted_rows(keys, lanes):
    """Few keys are found by a scan, while the helper thread sorts."""
    rows = np.random.default_rng(1).integers(0, 30, (2, 200))
    load = UnsortedBatch(
        [Updates(rows, constant((0,)), constant((1,)))], lanes, Description(START, Frontier.at((1,)), START)
    )
    wanted = np.ascontiguousarray(np.unique(np.array([keys, keys], np.int64)[:lanes], axis=1))
    found, counts = read([load], (0,), wanted)
    expected, expected_counts = read([Batch(load.updates, lanes, load.description)], (0,), wanted)
    assert found.tolist() == expected.tolist() and counts.tolist() == expected_counts.tolist()
