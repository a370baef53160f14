"""Union-find equals its twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.kernels.union_find import connect
from kpg.testing import kernel_twins as twins

NODES = 12


@given(st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=20))
def test_every_node_has_the_least_node_of_its_component(pairs):
    parents = np.arange(NODES)
    connect(np.array(pairs, np.int64).reshape(-1, 2).T.copy(), parents)
    assert parents.tolist() == twins.connect(pairs, NODES)
