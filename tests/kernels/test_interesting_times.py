"""The times at which output may change: exactly the closure, split at upper."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.operators.corrections import InterestingTimes, interesting_times
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, times
from kpg.trace.key_history import KeyHistory


def split(offsets: np.ndarray, block: np.ndarray) -> list[list[Time]]:
    return [twins.columns(block[:, lo:hi]) for lo, hi in zip(offsets[:-1], offsets[1:], strict=True)]


def at(history: list[Time]) -> list[twins.Update]:
    return [((value,), time, (1,)) for value, time in enumerate(history)]


def asked(
    seeds: list[list[Time]], inputs: KeyHistory, outputs: KeyHistory, upper: Frontier, depth: int
) -> InterestingTimes:
    flat = [time for times_of_key in seeds for time in times_of_key]
    return interesting_times(twins.offsets(seeds), twins.block(flat, depth), inputs, outputs, upper)


@given(st.data(), depths(), st.integers(0, 3))
def test_interesting_times_are_those_of_the_twin(data: st.DataObject, depth: int, keys: int) -> None:
    """A5.10: joins of seeds with input and output times; sorted, distinct; the minimal ones beyond upper wait."""
    some = st.lists(times(depth, 3), max_size=6)
    seeds = [sorted(set(data.draw(some))) for _ in range(keys)]
    inputs = [data.draw(some) for _ in range(keys)]
    outputs = [data.draw(some) for _ in range(keys)]
    upper = Frontier(data.draw(st.lists(times(depth, 4), max_size=3)))
    got = asked(
        seeds,
        twins.key_history(list(map(at, inputs)), 1, depth),
        twins.key_history(list(map(at, outputs)), 1, depth),
        upper,
        depth,
    )
    want = [twins.find_interesting_times(s, i + o, upper) for s, i, o in zip(seeds, inputs, outputs, strict=True)]
    assert split(got.eval_offsets, got.eval_times) == [evals for evals, _ in want]
    assert split(got.pending_offsets, got.pending_times) == [pending for _, pending in want]


def test_full_buffers_are_grown() -> None:
    """A5.10: a closure far larger than its seeds, at depths 2 and 3, and keys before and after it."""
    for depth, width in ((2, 60), (3, 9)):
        axes = [tuple(i if d == axis else 0 for d in range(depth)) for axis in range(depth) for i in range(width)]
        seeds = [[(0,) * depth], sorted(set(axes)), [(1,) * depth]]
        none = twins.key_history([[], [], []], 1, depth)
        for upper in (Frontier(), Frontier([(width // 2,) * depth])):
            got = asked(seeds, none, none, upper, depth)
            want = [twins.find_interesting_times(s, [], upper) for s in seeds]
            assert split(got.eval_offsets, got.eval_times) == [evals for evals, _ in want]
            assert split(got.pending_offsets, got.pending_times) == [pending for _, pending in want]


@pytest.mark.jit
def test_many_times_of_one_key_are_closed_in_about_linear_time() -> None:
    """A5.4: 10⁵ times in a chain at depth 1, and 10⁴ epochs of a few rounds with an old history at depth 2."""
    chain = [(i,) for i in range(100_000)]
    epochs = [(i, i % 4) for i in range(10_000)]
    for seeds, history, depth, size in ((chain, chain, 1, 100_000), (epochs, epochs[:9000], 2, 24_994)):
        inputs, outputs = twins.key_history([at(history)], 1, depth), twins.key_history([[]], 1, depth)
        asked([seeds[:2]], inputs, outputs, Frontier(), depth)
        start = time.thread_time()
        got = asked([seeds], inputs, outputs, Frontier(), depth)
        assert time.thread_time() - start < 1.0
        assert got.eval_times.shape[1] == size
