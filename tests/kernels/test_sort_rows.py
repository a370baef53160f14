"""Words sort as their rows do, and rows tied in them are sorted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.kernels.sort_rows import (
    MAX_COMPARED_TIE_ROWS,
    append_positions,
    count_tied_rows,
    is_increasing,
    lane_bounds,
    merge_sort,
    pack_words,
    rank_words,
    sort_ties,
)
from kpg.testing import kernel_twins as twins

EXTREME = st.sampled_from([-(2**63), -(2**62), -1, 0, 1, 5, 2**62, 2**63 - 1])
TIE_BITS = 3


def column(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def tables(values: st.SearchStrategy[int], lanes: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[values] * lanes), min_size=1, max_size=40)


@given(st.integers(0, 3).flatmap(lambda lanes: tables(EXTREME, lanes)))
def test_bounds_are_least_and_greatest(rows):
    low, high = np.empty(len(rows[0]), np.int64), np.empty(len(rows[0]), np.int64)
    lane_bounds(twins.block(rows, len(rows[0])), low, high)
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == twins.lane_bounds(rows)


@given(st.integers(0, 3).flatmap(lambda lanes: tables(EXTREME, lanes)), st.booleans())
def test_rows_increase_if_each_is_greater_than_the_one_before(rows, in_order):
    rows = sorted(set(rows)) if in_order else rows
    assert is_increasing(twins.block(rows, len(rows[0]))) == twins.is_increasing(rows)


@given(tables(EXTREME, 2), st.integers(1, 30), st.integers(1, 30), st.booleans())
def test_packed_words_are_windows_of_the_lanes(rows, first, second, fresh):
    """Also where the difference of two values needs all 64 bits."""
    fields = [
        (low, max(0, (high - low).bit_length() - bits), (1 << bits) - 1, shift)
        for (low, high), bits, shift in zip(twins.lane_bounds(rows), (first, second), (second, 0), strict=True)
    ]
    words = np.zeros(len(rows), np.int64)
    if fresh:
        words += 99
    low, drop, mask, shift = twins.block(fields, 4)
    pack_words(twins.block(rows, 2), low, drop, mask, shift, 1 if fresh else 0, words)
    assert words.tolist() == twins.pack_words(rows, fields)


@given(tables(st.integers(0, 2), 2))
def test_whole_words_order_as_rows(rows):
    words = np.empty(len(rows), np.int64)
    pack_words(twins.block(rows, 2), column([0, 0]), column([0, 0]), column([3, 3]), column([2, 0]), 1, words)
    assert np.argsort(words, kind="stable").tolist() == sorted(range(len(rows)), key=lambda i: rows[i])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_tied_rows_are_counted_and_ranked(values):
    bits = len(values).bit_length()
    words = column(values)
    append_positions(words, bits)
    assert words.tolist() == [(value << bits) | i for i, value in enumerate(values)]
    words.sort()
    ranks = np.empty((1, len(values)), np.int64)
    assert count_tied_rows(words, bits) == twins.count_tied_rows(values, MAX_COMPARED_TIE_ROWS)
    assert rank_words(words, bits, ranks) == len(set(values))
    assert ranks[0].tolist() == twins.rank_words(values)


@given(tables(st.integers(0, 3), 2), st.booleans(), st.data())
def test_ties_are_sorted_by_data_then_time(rows, timed, data):
    times = [(data.draw(st.integers(0, 2)),) for _ in rows]
    n, bits = len(rows), len(rows).bit_length()
    words = column([row[0] for row in rows])  # the first lane alone: the second and the time are tied
    append_positions(words, bits)
    words.sort()
    block = twins.block(times, 1) if timed else np.zeros((1, 1), np.int64)
    sort_ties(twins.block(rows, 2), block, words, bits, np.empty(n, np.int64))
    got = [
        (rows[word & ((1 << bits) - 1)], times[word & ((1 << bits) - 1)] if timed else ()) for word in words.tolist()
    ]
    assert got == sorted((row, time if timed else ()) for row, time in zip(rows, times, strict=True))
    assert [word >> bits for word in words.tolist()] == sorted(row[0] for row in rows)


@given(tables(st.integers(0, 9), 1), st.data())
def test_merge_sort_sorts_a_part_and_leaves_the_rest(rows, data):
    start = data.draw(st.integers(0, len(rows)))
    end = data.draw(st.integers(start, len(rows)))
    order = np.arange(len(rows), dtype=np.int64)
    merge_sort(twins.block(rows, 1), np.zeros((1, 1), np.int64), start, end, order, np.empty(len(rows), np.int64))
    want = list(range(len(rows)))
    want[start:end] = sorted(want[start:end], key=lambda i: rows[i])
    assert order.tolist() == want
