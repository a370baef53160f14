"""Numbers of keys: equal columns of lanes have equal numbers, in the order of the columns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kpg.sql.session.row_tables import numbers_of_columns

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 40))
VALUES = st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1])


@given(SHAPES.flatmap(lambda shape: arrays(np.int64, shape, elements=VALUES)))
def test_numbers_of_columns_are_the_ranks_of_different_columns(data):
    different = sorted({tuple(column) for column in data.T.tolist()})
    assert numbers_of_columns(data).tolist() == [different.index(tuple(column)) for column in data.T.tolist()]
