"""Columns are sorted as the twin sorts them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.kernels.compare_rows import ORDER, sort_columns
from kpg.testing import kernel_twins as twins


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=60), st.integers(0, 2), st.integers(0, 2))
def test_columns_are_sorted_as_the_twin_sorts_them(columns: list[tuple[int, int]], first: int, end: int) -> None:
    """A5.4: stable, by a range of lanes, by merging runs."""
    block = twins.block(columns, 2)
    work = np.zeros((2, len(columns)), np.int64)
    work[ORDER] = np.arange(len(columns))
    sort_columns(block, first, end, work, len(columns))
    assert work[ORDER].tolist() == twins.sort_columns(block, first, end, range(len(columns)))
