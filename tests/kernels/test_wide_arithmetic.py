"""Sums, products and quotients of 128-bit integers are those of Python's integers."""

from hypothesis import given
from hypothesis import strategies as st

from kpg.columns import wide_integers as wide
from kpg.testing import kernel_twins as twins

LIMIT = wide.MAX_WIDE
edges = st.sampled_from([0, 1, -1, 2**32, 2**63, -(2**63), 2**64 - 1, 2**64, 10**18, 10**37, LIMIT, -LIMIT])
numbers = edges | st.integers(-LIMIT, LIMIT) | st.integers(-(10**19), 10**19) | st.integers(-9, 9)
columns = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6)


@given(pairs=columns, limit=st.sampled_from([LIMIT, 10**20, 0]), is_constant=st.booleans())
def test_products_are_those_of_the_twin(pairs: list[tuple[int, int]], limit: int, is_constant: bool) -> None:
    if is_constant:
        pairs = [(a, pairs[0][1]) for a, _ in pairs]
    a, b = (wide.from_integers([pair[side] for pair in pairs]) for side in (0, 1))
    products, failed = wide.multiply_wide(a, b[:, :1] if is_constant else b, limit)
    expected = [twins.multiply_wide(a, b, limit) for a, b in pairs]
    marks = [False] * len(pairs) if failed is None else failed.tolist()
    assert marks == [bool(mark) for _, mark in expected]
    good = [row for row, mark in enumerate(marks) if not mark]
    assert wide.to_integers(products[:, good]) == [expected[row][0] for row in good]


@given(pairs=columns, limit=st.sampled_from([LIMIT, 10**20, 0]), sign=st.sampled_from([1, -1]))
def test_sums_are_those_of_the_twin(pairs: list[tuple[int, int]], limit: int, sign: int) -> None:
    a, b = (wide.from_integers([pair[side] for pair in pairs]) for side in (0, 1))
    sums, failed = (wide.add_wide if sign == 1 else wide.subtract_wide)(a, b, limit)
    expected = [twins.add_wide(a, b, sign, limit) for a, b in pairs]
    marks = [False] * len(pairs) if failed is None else failed.tolist()
    assert marks == [bool(mark) for _, mark in expected]
    good = [row for row, mark in enumerate(marks) if not mark]
    assert wide.to_integers(sums[:, good]) == [expected[row][0] for row in good]


@given(pairs=columns, shift=st.integers(-76, 76), limit=st.sampled_from([LIMIT, 10**20, 0]))
def test_quotients_are_those_of_the_twin(pairs: list[tuple[int, int]], shift: int, limit: int) -> None:
    a, b = (wide.from_integers([pair[side] for pair in pairs]) for side in (0, 1))
    quotients, marks = wide.divide_wide(a, b, shift, limit)
    up, down = 10 ** max(shift, 0), 10 ** max(-shift, 0)
    expected = [twins.divide_wide(a, b, up, down, limit) for a, b in pairs]
    assert marks.tolist() == [mark for _, mark in expected]
    good = [row for row, (_, mark) in enumerate(expected) if not mark]
    assert wide.to_integers(quotients[:, good]) == [expected[row][0] for row in good]
