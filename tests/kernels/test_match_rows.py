"""The join kernels pair rows of equal keys, each pair once, in slices of any size."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.exact_diffs import mass
from kpg.columns.updates import Ints, Updates, constant
from kpg.kernels.seek_rows import CHUNK_PAIRS
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import times
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.match_batches import Match
from kpg.trace.search_table import SearchTable
from kpg.trace.seek_batches import Seek
from kpg.trace.seek_of_few import MAX_PAIRS, SeekOfFew

Side = tuple[list[twins.Update], Updates]


@st.composite
def sides(draw: st.DrawFn, lanes: int, depth: int, width: int) -> Side:
    """Generate sorted updates with constant or varying times and diffs."""
    data = sorted(draw(st.lists(st.tuples(*[st.integers(0, 3)] * lanes), max_size=12)))
    blocks = []
    for strategy in (times(depth), st.tuples(*[st.sampled_from([-1, 1, 2])] * width)):
        constant_block = draw(st.booleans())
        blocks.append([draw(strategy)] * len(data) if constant_block and data else [draw(strategy) for _ in data])
    rows = list(zip(data, *blocks, strict=True))
    moments, diffs = (twins.block(b, k) for b, k in zip(blocks, (depth, width), strict=True))
    if data and draw(st.booleans()):  # equal columns may or may not be stored as one
        moments = moments[:, :1].copy() if len(set(blocks[0])) == 1 else moments
        diffs = diffs[:, :1].copy() if len(set(blocks[1])) == 1 else diffs
    if not data:
        moments, diffs = np.zeros((depth, 1), np.int64), np.ones((width, 1), np.int64)
    return rows, Updates(twins.block(data, lanes), moments, diffs)


def drain(match: Match | Seek, limits: list[int]) -> list[twins.Update]:
    got: list[twins.Update] = []
    turn = 0
    while (part := match.next(limits[turn % len(limits)])) is not None:
        assert 1 <= len(part) <= limits[turn % len(limits)]
        got += twins.sorted_rows(part)
        turn += 1
    assert match.next(1) is None
    return sorted(got)


@given(st.data())
def test_match_equals_its_twin(data: st.DataObject) -> None:
    """A5.5 A5.8: any lanes, depths and widths, cut anywhere, also within a key."""
    left_lanes, right_lanes = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    key_lanes = data.draw(st.integers(0, min(left_lanes, right_lanes)))
    depth = data.draw(st.integers(1, 3))
    left_width, right_width = data.draw(st.sampled_from([(1, 1), (2, 1), (1, 3)]))
    left_rows, left = data.draw(sides(left_lanes, data.draw(st.integers(1, depth)), left_width))
    right_rows, right = data.draw(sides(right_lanes, data.draw(st.integers(1, depth)), right_width))
    lanes = [(0, lane) for lane in range(left_lanes)] + [(1, lane) for lane in range(right_lanes)]
    projection = data.draw(st.lists(st.sampled_from(lanes), max_size=4)) if lanes else []
    match = Match(left, right, key_lanes, np.array(projection, np.int64).reshape(-1, 2), depth)
    limits = data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 1000]), min_size=1, max_size=4))
    assert drain(match, limits) == twins.match_rows(left_rows, right_rows, key_lanes, projection, depth)


@given(st.data())
def test_seek_equals_the_twin_of_match(data: st.DataObject) -> None:
    """A5.5 A5.8: some rows against several batches, on either side, whole or cut into slices."""
    few_lanes, many_lanes = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    key_lanes = data.draw(st.integers(1, min(few_lanes, many_lanes)))
    depth, side = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 1))
    few_width, many_width = data.draw(st.sampled_from([(1, 1), (2, 1), (1, 3)]))
    few_rows, few = data.draw(sides(few_lanes, data.draw(st.integers(1, depth)), few_width))
    many_depth = data.draw(st.integers(1, depth))
    many = [data.draw(sides(many_lanes, many_depth, many_width)) for _ in range(data.draw(st.integers(1, 3)))]
    start = Frontier.start(many_depth)
    batches = [Batch(updates, key_lanes, Description(start, start, start)) for _, updates in many]
    lanes = [(side, lane) for lane in range(few_lanes)] + [(1 - side, lane) for lane in range(many_lanes)]
    projection = data.draw(st.lists(st.sampled_from(lanes), max_size=4))
    seek = Seek(few, batches, side, key_lanes, np.array(projection, np.int64).reshape(-1, 2), depth)
    limits = data.draw(st.lists(st.sampled_from([1, 2, 5, 1000]), min_size=1, max_size=4))
    rows = [row for part, _ in many for row in part]
    left, right = (few_rows, rows) if side == 0 else (rows, few_rows)
    expected = twins.match_rows(left, right, key_lanes, projection, depth)
    assert drain(seek, limits) == expected
    if depth == few_width == many_width == 1:
        at_once = SeekOfFew(key_lanes, np.array(projection, np.int64).reshape(-1, 2))
        pairs = at_once.pairs(few, side, SearchTable(batches, 1), len(batches))
        is_late = any(time > few_rows[0][1] for _, time, _ in expected) if few_rows else False
        if pairs is None:
            assert few.times.shape[1] > 1 or is_late
        else:
            assert sorted(twins.sorted_rows(pairs)) == expected
            exact = sum(abs(diff) for _, _, (diff,) in expected)
            assert mass(pairs) >= exact
            assert mass(pairs) == exact or pairs.diffs.shape[1] > 1, "the next join must not multiply a loose bound"


def test_many_pairs_are_left_to_a_seek() -> None:
    """Of few rows too; and the next ones are paired at once again."""
    start = Frontier.start(1)
    keys = np.append(np.zeros(MAX_PAIRS + 1, np.int64), 1)
    many = Updates(np.stack([keys, np.arange(len(keys))]), constant((0,)), constant((1,)))
    table = SearchTable([Batch(many, 1, Description(start, start, start))], 1)
    at_once = SeekOfFew(1, np.array([(0, 0), (1, 1)]))
    assert at_once.pairs(Updates(np.array([[0]]), constant((1,)), constant((3,))), 0, table, 1) is None
    pairs = at_once.pairs(Updates(np.array([[1]]), constant((1,)), constant((3,))), 0, table, 1)
    assert pairs is not None and list(twins.sorted_rows(pairs)) == [((1, MAX_PAIRS + 1), (1,), (3,))]


@pytest.mark.parametrize("late", [0, 9])
def test_seek_writes_more_pairs_than_one_chunk(late: int) -> None:
    """A5.8: keys of many rows on both sides, at one time and at several."""
    few = Updates(np.stack([np.repeat([1, 3, 4], 7), np.arange(21)]), constant((5,)), constant((-1,)))
    start = Frontier.start(1)
    keys = np.repeat(np.arange(5), 60)
    diffs = np.where(keys % 2 == 0, 1, 2).reshape(1, -1)
    others = [Updates(np.stack([keys, np.arange(300) + n]), constant((late * n,)), diffs) for n in range(2)]
    batches = [Batch(other, 1, Description(start, start, start)) for other in others]
    projection = [(1, 1), (0, 1), (0, 0)]
    part = Seek(few, batches, 0, 1, np.array(projection), 1).next(10_000)
    assert part is not None and len(part) == 2 * 3 * 7 * 60 > 2 * CHUNK_PAIRS
    assert (part.times.shape[1] == 1) == (late == 0)
    rows = [row for other in others for row in twins.sorted_rows(other)]
    assert sorted(twins.sorted_rows(part)) == twins.match_rows(twins.sorted_rows(few), rows, 1, projection, 1)


def keyed(keys: Ints) -> Updates:
    return Updates(np.stack([keys, np.arange(len(keys))]), constant((3,)), constant((1,)))


VALUES = np.array([[0, 1], [1, 1]], np.int64)


def test_constants_stay_constant() -> None:
    """A5.5: if both sides are constant, so is the output; if the times of one side vary, only times are spread."""
    left, right = keyed(np.arange(5)), keyed(np.arange(5))
    part = Match(left, right, 1, VALUES, 2).next(100)
    assert part is not None and twins.columns(part.times) == [(3, 0)] and twins.columns(part.diffs) == [(1,)]
    varying = Updates(right.data, np.array([[1, 2, 3, 4, 5]]), right.diffs)
    part = Match(left, varying, 1, VALUES, 1).next(100)
    assert part is not None and twins.columns(part.times) == [(3,), (3,), (3,), (4,), (5,)]
    assert part.diffs.shape == (1, 1)


def test_times_that_do_not_matter_stay_constant() -> None:
    """A5.5: new updates at one time against an older history of many times give pairs at that one time."""
    history = Updates(keyed(np.arange(5)).data, np.array([[1, 2, 3, 1, 2]]), constant((1,)))
    part = Match(keyed(np.arange(5)), history, 1, VALUES, 1).next(100)
    assert part is not None and twins.columns(part.times) == [(3,)]


@pytest.mark.jit
def test_a_few_keys_against_many_cost_no_scan() -> None:
    """A5.7: ten keys are matched against ten million without reading them, on either side."""
    many, few = keyed(np.arange(10_000_000)), keyed(np.arange(0, 10_000_000, 1_000_000))
    for left, right in ((few, many), (many, few)):
        Match(left, right, 1, VALUES, 1).next(1000)  # touch the pages
        start = time.thread_time()
        for _ in range(100):
            part = Match(left, right, 1, VALUES, 1).next(1000)
            assert part is not None and len(part) == 10
        assert (time.thread_time() - start) / 100 < 1e-3  # a scan takes ten times that


@pytest.mark.jit
def test_one_heavy_key_is_cut_into_slices() -> None:
    """A5.8: ten thousand million pairs of one key come slice by slice, each in constant memory and time."""
    heavy = keyed(np.zeros(100_000, np.int64))
    match = Match(heavy, heavy, 1, VALUES, 1)
    seen = 0
    for limit in (1, 99_999, 250_000, 7, 1_000_000):
        part = match.next(limit)
        assert part is not None and len(part) == limit
        assert np.array_equal(part.data[0] * 100_000 + part.data[1], seen + np.arange(limit))
        seen += limit


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_keys_close_together_are_walked_and_keys_far_apart_are_sought(lanes: int) -> None:
    """Rows of both sides alternate, then one side has long gaps, with a few pairs.

    The keys differ in their last lane only, or in all lanes.
    """
    left, right = [], []
    for group in range(6):
        for i in range(60):
            key = (group,) * (lanes - 1)
            left.append((*key, 1000 * group + 2 * i + (group % 2 and i % 7 == 0)))
            right.append((*key, 1000 * group + (2 * i + 1 if group < 4 else 40 * i)))
    sides = [twins.block(sorted(set(rows)), lanes) for rows in (left, right)]
    updates = [Updates(side, constant((0,)), constant((1,))) for side in sides]
    rows = [[(row, (0,), (1,)) for row in twins.columns(side)] for side in sides]
    expected = twins.match_rows(rows[0], rows[1], lanes, [(0, lanes - 1)], 1)
    assert len(expected) > 10
    for limits in ([1], [7, 1], [1000]):
        assert drain(Match(*updates, lanes, np.array([(0, lanes - 1)]), 1), limits) == expected
