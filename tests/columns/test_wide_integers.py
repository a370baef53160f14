"""128-bit integers in two lanes sort, add and convert as Python's integers do."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns import wide_integers as wide

LIMIT = wide.MAX_WIDE
edges = st.sampled_from([0, 1, -1, 2**63, -(2**63), 2**64 - 1, 2**64, -(2**64), LIMIT, -LIMIT])
numbers = edges | st.integers(-LIMIT, LIMIT) | st.integers(-9, 9)
pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8)


@given(values=st.lists(numbers))
def test_lanes_hold_the_numbers_and_sort_as_they_do(values: list[int]) -> None:
    block = wide.from_integers(values)
    assert wide.to_integers(block) == values
    assert [wide.from_lanes(*wide.to_lanes(value)) for value in values] == values
    order = np.lexsort((block[1], block[0]))
    assert wide.to_integers(block[:, order]) == sorted(values)
    words = wide.to_words(block)
    assert (wide.from_words(words[:, 0], words[:, 1]) == block).all()


@given(values=st.lists(numbers | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_numbers_of_64_bits_are_widened_and_narrowed(values: list[int]) -> None:
    block = wide.from_integers(values)
    lane, unfit = wide.narrow_wide(block)
    assert unfit.tolist() == [not -(2**63) <= value < 2**63 for value in values]
    fits = ~unfit
    assert (wide.widen(lane[fits]) == block[:, fits]).all()


@given(rows=pairs, limit=st.sampled_from([LIMIT, 10**20]))
def test_sums_and_differences_are_exact_or_fail(rows: list[tuple[int, int]], limit: int) -> None:
    a, b = (wide.from_integers([row[side] for row in rows]) for side in (0, 1))
    for function, expected in (
        (wide.add_wide, [a + b for a, b in rows]),
        (wide.subtract_wide, [a - b for a, b in rows]),
    ):
        results, failed = function(a, b, limit)
        marks = np.zeros(len(rows), np.bool_) if failed is None else failed
        assert marks.tolist() == [abs(value) > limit for value in expected]
        assert wide.to_integers(results[:, ~marks]) == [value for value in expected if abs(value) <= limit]
    assert wide.less(a, b).tolist() == [a < b for a, b in rows]
    assert wide.to_integers(wide.negate_wide(a)) == [-a for a, _ in rows]
    assert wide.to_integers(wide.absolute_wide(a)) == [abs(a) for a, _ in rows]


@given(values=st.lists(numbers, min_size=1), scale=st.integers(0, 38))
def test_floats_are_near_the_numbers(values: list[int], scale: int) -> None:
    floats = wide.to_floats(wide.from_integers(values), scale).tolist()
    for value, number in zip(values, floats, strict=True):
        assert abs(number - value / 10**scale) <= 4e-16 * abs(value / 10**scale)
