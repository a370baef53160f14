"""Times advance to their representatives, and frontiers split them, as the algebra defines."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.kernels.advance_times import advance_times, minimal_times, split_times
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, frontiers, times


def some_times(depth: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(times(depth, 3), max_size=12)


def elements(frontier: Frontier, depth: int) -> np.ndarray:
    return np.array(frontier.elements, np.int64).reshape(len(frontier), depth)


@given(st.data(), depths())
def test_advance_matches_twin(data, depth):
    """A3.15"""
    moments, frontier = data.draw(some_times(depth)), data.draw(frontiers(depth, min_size=1))
    out = np.empty((depth, len(moments)), np.int64)
    advance_times(twins.block(moments, depth), elements(frontier, depth), out)
    assert twins.columns(out) == twins.advance_times(moments, frontier)


@given(st.data(), depths())
def test_split_matches_twin(data, depth):
    moments, frontier = data.draw(some_times(depth)), data.draw(frontiers(depth))
    early, late = np.empty(len(moments), np.int64), np.empty(len(moments), np.int64)
    n = split_times(twins.block(moments, depth), elements(frontier, depth), early, late)
    assert (early[:n].tolist(), late[: len(moments) - n].tolist()) == twins.split_times(moments, frontier)


@given(st.data(), depths())
def test_minimal_matches_twin(data, depth):
    moments = data.draw(some_times(depth))
    out = np.empty((depth, len(moments)), np.int64)
    n = minimal_times(twins.block(moments, depth), out)
    got = twins.columns(out[:, :n])
    assert set(got) == twins.minimal_times(moments) and len(got) == len(set(got))
