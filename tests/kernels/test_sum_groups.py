"""Rows are summed by group as the twin sums them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns import wide_integers as wide
from kpg.columns.lane_values import NULL
from kpg.kernels.sum_groups import (
    add_counts,
    add_numbers,
    add_true,
    add_wide_numbers,
    fill_slots,
    number_groups,
    write_groups,
)
from kpg.testing import kernel_twins as twins

lane_values = st.integers(-3, 3) | st.integers(-(2**63) + 1, 2**63 - 1)
wide_values = st.integers(-3, 3) | st.integers(1 - 10**38, 10**38 - 1)
keys = st.tuples(lane_values, lane_values)
diffs = st.sampled_from([1, 1, 1, -1, 2, -3])
rows = st.lists(
    st.tuples(keys, st.tuples(st.none() | lane_values, st.none() | wide_values), diffs), min_size=1, max_size=30
)
WIDTH = 1 + 3 + 5  # a count; a number of one lane, one of two


def lanes_of(rows):
    """Return the lanes of rows: two of the key, one of the first number, two of the second."""
    narrow = [NULL if numbers[0] is None else numbers[0] for _, numbers, _ in rows]
    broad = [(NULL, NULL) if numbers[1] is None else wide.to_lanes(numbers[1]) for _, numbers, _ in rows]
    return np.array(
        [(*key, value, *pair) for (key, _, _), value, pair in zip(rows, narrow, broad, strict=True)]
    ).T.copy()


@given(rows, st.integers(1, 4), st.sampled_from([(0, 1), (1,), ()]))
def test_keys_are_numbered_in_the_order_of_their_appearance(rows, capacity, key):
    data, lanes = lanes_of(rows), np.array(key, np.int64)
    groups, row, count, bits = np.empty(len(rows), np.int64), 0, 0, 3
    sums, slots = np.zeros((capacity, len(key) + 1), np.int64), np.zeros(1 << bits, np.int64)
    while True:
        row, count = number_groups(data, lanes, row, bits, slots, sums, count, groups)
        if row == len(rows):
            break
        assert count == len(sums)  # it stops only where it must
        sums, bits = np.concatenate([sums, np.zeros_like(sums)]), bits + 1
        slots = np.zeros(1 << bits, np.int64)
        fill_slots(sums[:count, : len(key)].T.copy(), bits, slots)
    assert groups.tolist() == twins.number_groups([tuple(full[lane] for lane in key) for full, _, _ in rows])
    assert count == 1 + groups.max()


@given(rows, st.booleans(), st.booleans())
def test_sums_are_those_of_the_twin(rows, same_diff, nullable):
    if same_diff:
        rows = [(key, numbers, rows[0][2]) for key, numbers, _ in rows]
    if not nullable:
        rows = [(key, tuple(number or 0 for number in numbers), diff) for key, numbers, diff in rows]
    expected = twins.sum_groups(rows, (1, 2))
    data, count = lanes_of(rows), len({key for key, _, _ in rows})
    weights = np.array([[diff for _, _, diff in (rows[:1] if same_diff else rows)]], np.int64)
    slots, sums = np.zeros(64, np.int64), np.zeros((count, 2 + WIDTH), np.int64)
    groups = np.empty(len(rows), np.int64)
    assert number_groups(data, np.array([0, 1]), 0, 6, slots, sums, 0, groups) == (len(rows), count)
    add_counts(groups, weights, 2, sums)
    if not nullable:
        add_counts(groups, weights, 3, sums)
        add_counts(groups, weights, 6, sums)
    add_numbers(data, 2, 0, int(nullable), groups, weights, 3, sums)
    add_wide_numbers(data, 3, int(nullable), groups, weights, 6, sums)
    out, totals = np.empty((2, count), np.int64), np.empty((WIDTH, count), np.int64)
    kept = write_groups(sums, count, 2, out, totals)
    actual = zip(out[:, :kept].T.tolist(), totals[:, :kept].T.tolist(), strict=True)
    wrapped = {key: tuple((v + 2**63) % 2**64 - 2**63 for v in total) for key, total in expected.items()}
    assert {tuple(key): tuple(total) for key, total in actual} == wrapped


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, NULL]), diffs), min_size=1, max_size=20))
def test_conditions_count_the_rows_on_which_they_are_true(rows):
    data = np.array([(key, value) for key, value, _ in rows], np.int64).T.copy()
    sums, weights = np.zeros((3, 2), np.int64), np.array([[diff for _, _, diff in rows]], np.int64)
    add_true(data, 1, data[0].copy(), weights, 1, sums)
    expected = [sum(diff for key, value, diff in rows if key == group and value == 1) for group in range(3)]
    assert sums[:, 1].tolist() == expected
