"""Totals in a total order: presence and sums change as the twins say."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Updates, constant
from kpg.operators.corrections import Corrections, sweep_presence, sweep_sums
from kpg.operators.sweep import PRESENCE, SUMS, Sweep
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import times
from kpg.trace.batch import Batch as Kept
from kpg.trace.description import Description

Batch = tuple[list[list[tuple[Time, twins.Row]]], list[twins.Row]]


@st.composite
def batches(draw: st.DrawFn, width: int) -> Batch:
    """Generate, per key, some new (time, diff) in any order, and the total before."""
    keys = draw(st.integers(0, 4))
    diff = st.tuples(*[st.sampled_from([-1, 1, 2])] * width)
    news = st.lists(st.tuples(st.tuples(st.integers(0, 3)), diff), max_size=6)
    return [draw(news) for _ in range(keys)], [draw(st.tuples(*[st.integers(-1, 2)] * width)) for _ in range(keys)]


def columns(batch: Batch, width: int, keep: st.DataObject) -> tuple[np.ndarray, ...]:
    """Return the batch in columns; equal times or diffs are sometimes a constant."""
    news, before = batch
    flat = [update for new in news for update in new]
    times, diffs = twins.block([t for t, _ in flat], 1), twins.block([d for _, d in flat], width)
    if len({t for t, _ in flat}) == 1 and keep.draw(st.booleans()):
        times = times[:, :1].copy()
    if len({d for _, d in flat}) == 1 and keep.draw(st.booleans()):
        diffs = diffs[:, :1].copy()
    return twins.offsets(news), times, diffs, twins.block(before, width)


def rows(corrections: Corrections) -> list[twins.Correction]:
    data, times, diffs = (
        twins.columns(corrections.data),
        twins.columns(corrections.times),
        twins.columns(corrections.diffs),
    )
    return [(int(k), v, t, d) for k, v, t, (d,) in zip(corrections.key_index, data, times, diffs, strict=True)]


@given(st.data(), st.integers(-1, 3))
def test_presence_changes_where_the_twin_says(data: st.DataObject, at_least: int) -> None:
    """A5.12 A5.13: thresholds crossed up and down, times in any order, constants."""
    batch = data.draw(batches(1))
    got = sweep_presence(at_least, *columns(batch, 1, data))
    want = []
    for key, (new, before) in enumerate(zip(*batch, strict=True)):
        changes = twins.presence_changes(at_least, before, twins.running_totals(new, before))
        want += [(key, v, t, d) for v, t, (d,) in changes]
    assert rows(got) == want


@given(st.data(), st.integers(1, 3))
def test_sums_change_where_the_twin_says(data: st.DataObject, width: int) -> None:
    """A5.12 A5.13: the old total is retracted and the new one inserted, sorted by value; zero totals are no rows."""
    batch = data.draw(batches(width))
    got = sweep_sums(*columns(batch, width, data))
    want = []
    for key, (new, before) in enumerate(zip(*batch, strict=True)):
        changes = twins.sums_changes(before, twins.running_totals(new, before))
        want += [(key, v, t, d) for v, t, (d,) in changes]
    assert rows(got) == want


@pytest.mark.parametrize("reach", [1, 40, 10**9])
def test_many_changes_of_one_key_come_in_order(reach: int) -> None:
    """A5.12: a total that rises and falls five hundred times, within few values, many or very many."""
    diffs = np.random.default_rng(reach).integers(-reach, reach + 1, 500)
    batch: Batch = ([[((at,), (int(diff),)) for at, diff in enumerate(diffs)]], [(3,)])
    news, before = batch
    got = sweep_sums(twins.offsets(news), np.arange(500).reshape(1, -1), diffs.reshape(1, -1), twins.block(before, 1))
    want = twins.sums_changes((3,), twins.running_totals(news[0], (3,)))
    assert rows(got) == [(0, v, t, d) for v, t, (d,) in want]


@given(st.data(), st.integers(1, 2))
def test_sums_over_times_change_where_the_twin_says(data: st.DataObject, width: int) -> None:
    """A5.12 A5.13: as rows of a batch, with or without values after the key, so that times are sorted or not."""
    lanes = data.draw(st.integers(1, 2))
    update = st.tuples(
        st.tuples(*[st.integers(0, 2)] * lanes), times(1, 3), st.tuples(*[st.sampled_from([-1, 1, 2])] * width)
    )
    news = data.draw(st.lists(update, min_size=1, max_size=12))
    blocks = [twins.block([new[i] for new in news], size) for i, size in ((0, lanes), (1, 1), (2, width))]
    batch = consolidate(Updates(*blocks))
    earlier = data.draw(st.dictionaries(st.integers(0, 2), st.tuples(*[st.integers(-2, 2)] * width), max_size=3))
    held = Updates(
        twins.block([(key,) * lanes for key in sorted(earlier)], lanes),
        constant((0,)),
        twins.block([earlier[key] for key in sorted(earlier)], width),
    )
    start = Frontier.start(1)
    got = Sweep(SUMS).correct(batch, 1, (Kept(held, 1, Description(start, start, start)),) if earlier else ())
    want = []
    for key in sorted({row[:1] for row, _, _ in twins.sorted_rows(batch)}):
        mine = [(t, d) for row, t, d in twins.sorted_rows(batch) if row[:1] == key]
        old = earlier.get(key[0], (0,) * width)
        want += [(key + value, t, d) for value, t, d in twins.sums_changes(old, twins.running_totals(mine, old))]
    assert twins.sorted_rows(got) == want


@given(st.data(), st.sampled_from([PRESENCE, SUMS]), st.integers(1, 2), st.integers(-1, 3))
def test_updates_of_one_time_change_what_the_twin_says(
    data: st.DataObject, kind: int, width: int, at_least: int
) -> None:
    """A5.12 A5.13: in one pass from the batches, with and without values after the key, for any sums before."""
    key_lanes, lanes = data.draw(st.sampled_from([(1, 1), (1, 2), (2, 2), (0, 1)]))
    row = st.tuples(*[st.integers(0, 2)] * lanes)
    diff = st.tuples(*[st.sampled_from([-1, 1, 2])] * width)
    parts = [data.draw(st.dictionaries(row, diff, max_size=6)) for _ in range(data.draw(st.integers(1, 3)))]
    blocks = [
        consolidate(Updates(twins.block(list(part), lanes), constant((at,)), twins.block(list(part.values()), width)))
        for at, part in enumerate(parts)
    ]
    start = Frontier.start(1)
    before_batches = tuple(
        Kept(block, key_lanes, Description(start, start, start)) for block in blocks[:-1] if len(block)
    )
    if not len(blocks[-1]):
        return
    got = Sweep(kind, at_least).correct(blocks[-1], key_lanes, before_batches)
    want = []
    for key in sorted({data_row[:key_lanes] for data_row in parts[-1]}):
        sums = [
            tuple(sum(d[w] for data_row, d in part.items() if data_row[:key_lanes] == key) for w in range(width))
            for part in parts
        ]
        before = tuple(map(sum, zip(*sums[:-1], strict=True))) if sums[:-1] else (0,) * width
        totals = twins.running_totals([((0,), sums[-1])], before)
        changes = (
            twins.sums_changes(before, totals) if kind == SUMS else twins.presence_changes(at_least, before, totals)
        )
        want += [(key + value, (len(parts) - 1,), d) for value, _, d in changes]
    assert twins.sorted_rows(got) == want


def test_partial_orders_are_refused() -> None:
    """A5.12: there is no running total through incomparable times."""
    two = np.zeros((2, 1), np.int64)
    one = np.ones((1, 1), np.int64)
    with pytest.raises(AssertionError, match="total order"):
        sweep_presence(1, np.array([0, 1]), two, one, one)
    with pytest.raises(AssertionError, match="total order"):
        sweep_sums(np.array([0, 1]), two, one, one)


@pytest.mark.jit
def test_many_rows_at_one_time_are_one_pass() -> None:
    """A5.12: a million keys of five rows each at one time, far faster than any sort."""
    keys = 1_000_000
    offsets = np.arange(0, 5 * keys + 1, 5)
    diffs = np.ones((1, 5 * keys), np.int64)
    before = np.zeros((1, keys), np.int64)
    sweep_sums(offsets[:3], np.zeros((1, 1), np.int64), diffs[:, :10].copy(), before[:, :2].copy())
    start = time.thread_time()
    got = sweep_sums(offsets, np.zeros((1, 1), np.int64), diffs, before)
    assert time.thread_time() - start < 0.5
    assert len(got) == keys and (got.data == 5).all()
