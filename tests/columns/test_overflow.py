"""Checked arithmetic reports exactly the rows that overflow."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns.overflow import add_constant

ends = st.sampled_from([-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1])
numbers = ends | st.integers(-(2**63), 2**63 - 1)


@given(st.lists(numbers, max_size=6), ends)
def test_adding_a_constant_reports_the_rows_that_overflow(values, constant):
    total, failed = add_constant(constant, np.array(values, np.int64))
    beyond = [not -(2**63) <= value + constant < 2**63 for value in values]
    assert (failed is None and not any(beyond)) or failed.tolist() == beyond
    assert [int(sum_) for sum_, bad in zip(total, beyond, strict=True) if not bad] == [
        value + constant for value, bad in zip(values, beyond, strict=True) if not bad
    ]
