"""The first copies of counted rows are the beginning of all copies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns.count_limits import first_copies, repeat_rows
from kpg.errors import DataError


@given(counts=st.lists(st.integers(1, 5), max_size=8), size=st.integers(0, 12))
def test_the_first_copies_are_the_beginning_of_all(counts, size):
    data = np.arange(len(counts)).reshape(1, -1)
    every = repeat_rows("all", data, np.array(counts, np.int64))
    first = repeat_rows("first", *first_copies(data, np.array(counts, np.int64), size))
    assert first.tolist() == every[:, :size].tolist()


def test_counts_beyond_64_bits_have_first_copies_and_a_negative_count_is_an_error():
    data, counts = np.arange(3).reshape(1, -1), np.array([2, 2**70, -(2**70)], object)
    assert repeat_rows("huge", *first_copies(data[:, :2], counts[:2], 5)).tolist() == [[0, 0, 1, 1, 1]]
    with pytest.raises(DataError, match="fewer than zero"):
        repeat_rows("huge", *first_copies(data, counts, 5))
