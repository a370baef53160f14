"""Sums of diffs are exact, by whichever method they are computed; diffs that leave 64 bits are stored losslessly."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate_all
from kpg.columns.exact_diffs import (
    DIGIT_BITS,
    MAX_MASS,
    from_words,
    is_exact,
    join_digits,
    largest,
    mass,
    multiply_diffs,
    narrow,
    split_digits,
    sum_of,
    to_words,
)
from kpg.columns.exact_sums import LaneKind, fit_totals, lane_kinds
from kpg.columns.lane_values import MAX, NULL
from kpg.columns.schema import FLOAT64, INT64
from kpg.columns.updates import Updates
from kpg.testing.kernel_twins import block, rows
from kpg.testing.strategies import huge_diffs
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.key_history import accumulate, gather, read
from kpg.trace.merger import merge_updates

BEYOND = huge_diffs().map(lambda diff: diff * 2**70)
DIFFS = st.one_of(huge_diffs(), BEYOND)


def exact_block(diffs: list[tuple[int, ...]], width: int):
    return np.ascontiguousarray(narrow(np.array(diffs, object).reshape(len(diffs), width).T))


@st.composite
def updates(draw: st.DrawFn, lanes: int, width: int, diffs: st.SearchStrategy[int] = DIFFS) -> Updates:
    """Draw updates; often several hundred, so that every method of consolidation is used."""
    drawn = draw(
        st.lists(
            st.tuples(
                st.tuples(*[st.sampled_from([0, 1, 2, 2**40, -(2**63), MAX])] * lanes),
                st.integers(0, 2),
                st.tuples(*[diffs] * width),
            ),
            min_size=1,
            max_size=12,
        )
    )
    many = drawn * draw(st.sampled_from([1, 1, 50]))
    data, times = block([row for row, _, _ in many], lanes), block([(time,) for _, time, _ in many], 1)
    diffs = exact_block([diff for _, _, diff in many], width)
    if draw(st.booleans()):
        times = times[:, :1].copy()
    if draw(st.booleans()):
        diffs = np.ascontiguousarray(narrow(diffs[:, :1].copy()))
    return Updates(data, times, diffs)


def summed(parts: list[Updates]) -> dict:
    total: dict = {}
    for part in parts:
        for data, time, diff in rows(part):
            before = total.get((data, time), (0,) * len(diff))
            total[data, time] = tuple(a + b for a, b in zip(before, diff, strict=True))
    return {key: diff for key, diff in sorted(total.items()) if any(diff)}


def as_dict(result: Updates) -> dict:
    assert result.data.flags.c_contiguous and result.times.flags.c_contiguous and result.diffs.flags.c_contiguous
    assert is_exact(result.diffs) == (len(result) > 0 and largest(result.diffs) > MAX)
    result_rows = rows(result)
    assert result_rows == sorted(result_rows) and len({row[:2] for row in result_rows}) == len(result_rows)
    return {(data, time): diff for data, time, diff in result_rows}


@given(st.data(), st.integers(0, 3), st.integers(1, 3), st.integers(1, 3))
def test_consolidation_is_exact(data, lanes, width, count):
    parts = data.draw(st.lists(updates(lanes, width), min_size=count, max_size=count))
    expected = summed(parts)
    assert as_dict(consolidate_all(list(parts))) == expected


@given(st.data(), st.integers(0, 3), st.integers(1, 2))
def test_merging_is_exact(data, lanes, width):
    a, b = (consolidate_all([data.draw(updates(lanes, width))]) for _ in range(2))
    assert as_dict(merge_updates(a, b)) == summed([a, b])


@given(st.data(), st.integers(1, 3), st.integers(1, 2))
def test_reads_of_batches_are_exact(data, count, width):
    start = Frontier.start(1)
    parts = [consolidate_all([data.draw(updates(2, width))]) for _ in range(count)]
    batches = [Batch(part, 1, Description(start, Frontier(), start)) for part in parts]
    keys = block([(0,), (1,), (2**40,)], 1)
    sums = accumulate(batches, keys, width)
    history = gather(batches, keys, None, 1)
    expected: dict = {}
    for (row, _), diff in [item for part in parts for item in summed([part]).items()]:
        expected.setdefault(row[0], []).append(diff)
    for number, key in enumerate(keys[0].tolist()):
        total = tuple(map(sum, zip(*expected.get(key, [(0,) * width]), strict=True)))
        first, last = history.offsets[number : number + 2]
        assert tuple(sums[:, number].tolist()) == total
        assert tuple(sum(map(int, lane)) for lane in history.diffs[:, first:last]) == total
    at_one = summed([Updates(part.data, part.times * 0, part.diffs) for part in map(upto_one, parts)])
    present, counts = read(batches, (1,), None)
    assert dict(zip(map(tuple, present.T.tolist()), map(tuple, counts.T.tolist()), strict=True)) == {
        row: diff for (row, _), diff in at_one.items()
    }


def upto_one(part: Updates) -> Updates:
    kept = [row for row in rows(part) if row[1] <= (1,)]
    return Updates(
        block([row[0] for row in kept], part.lanes),
        block([row[1] for row in kept], 1),
        exact_block([row[2] for row in kept], part.width),
    )


@given(st.lists(st.one_of(DIFFS, st.integers()), min_size=1), st.integers(0, 2))
def test_diffs_survive_as_words(values, more):
    diffs = exact_block([(value,) for value in values], 1)
    words, digits = to_words(diffs)
    assert words.dtype == np.int64 and bool(digits) == is_exact(diffs)
    assert from_words(words, digits).tolist() == [values]
    enough = 1 + max(map(abs, values)).bit_length() // DIGIT_BITS + more
    assert join_digits(split_digits(diffs, enough), enough).tolist() == [values]
    assert sum_of(diffs) == sum(values)


@given(st.lists(st.tuples(DIFFS, DIFFS), min_size=1))
def test_products_are_exact(pairs):
    a, b = (exact_block([(pair[side],) for pair in pairs], 1) for side in (0, 1))
    assert multiply_diffs(a, b).tolist() == [[x * y for x, y in pairs]]
    assert multiply_diffs(a, b[:, :1].copy()).tolist() == [[x * pairs[0][1] for x, _ in pairs]]


@given(st.data())
def test_the_mass_bounds_every_sum(data):
    drawn = data.draw(updates(1, 2, huge_diffs()))
    drawn_rows = rows(drawn)
    total = max(sum(abs(diff[lane]) for _, _, diff in drawn_rows) for lane in range(2))
    assert total <= mass(drawn) <= total + total // 1000 + 2**50


@given(st.lists(st.tuples(st.integers(-(2**63), MAX), DIFFS), min_size=1))
def test_sums_fit_their_lanes_if_they_fit_their_type(values):
    kinds = lane_kinds([INT64], marked=False)
    total = sum(value * count for value, count in values)
    count = sum(count for _, count in values)
    low = sum((value & 0xFFFFFFFF) * count for value, count in values)
    totals = (count, count, low, (total - low) >> 32)
    lanes = fit_totals(totals, kinds)
    assert all(abs(lane) <= MAX or lane == NULL for lane in lanes)
    assert lanes[0] == (totals[0] if abs(totals[0]) <= MAX else NULL)
    if -(2**63) <= total < 2**63:
        assert lanes[2] + (lanes[3] << 32) == total
    else:
        assert not -(2**63) <= lanes[2] + (lanes[3] << 32) < 2**63


def test_the_kinds_of_lanes_follow_the_columns():
    kinds = Counter(lane_kinds([INT64, FLOAT64], marked=True))
    assert kinds == {LaneKind.COUNT: 3, LaneKind.PART: 1 + 5, LaneKind.LAST_PART: 2, LaneKind.MARK: 1}


@pytest.mark.parametrize("n", [1, 1000])
def test_a_mass_of_many_small_diffs_is_small(n):
    data = np.zeros((1, n), np.int64)
    assert mass(Updates(data, block([(0,)], 1), block([(-3,)], 1))) == 3 * n
    assert mass(Updates(data, block([(0,)], 1), np.arange(n).reshape(1, n))) <= n * n < MAX_MASS
