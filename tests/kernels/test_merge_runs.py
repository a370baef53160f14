"""Merging equals consolidating both sides together, wherever it is interrupted."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.kernels import merge_runs as kernel
from kpg.kernels.merge_runs import FROM_A, FROM_B, merge_runs
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, frontiers, times

Side = list[twins.Update]


@st.composite
def sides(draw: st.DrawFn, lanes: int, depth: int, width: int) -> Side:
    """Generate sorted, consolidated updates: often of one time or one diff, and sometimes with long runs."""
    largest = draw(st.sampled_from([0, 2, 200]))
    data = st.tuples(*[st.integers(0, largest)] * lanes)
    moments = draw(st.sampled_from([times(depth, 3), st.just((1,) * depth)]))
    diffs = draw(st.sampled_from([st.sampled_from([1, -1]), st.just(1), st.just(-1)]))
    rows = draw(st.lists(st.tuples(data, moments, st.tuples(*[diffs] * width)), max_size=40))
    if draw(st.booleans()):
        rows += [((i,) * lanes, draw(moments), (1,) * width) for i in range(draw(st.integers(0, 150)))]
    return twins.consolidate(rows)


def merged(
    a: Side,
    b: Side,
    shape: tuple[int, int, int],
    frontier: Frontier,
    one_time_sides: int,
    fuel: int,
    spread: bool = False,
) -> Side:
    _, depth, _ = shape
    left, right = twins.updates(a, *shape, spread=spread), twins.updates(b, *shape)
    n = len(a) + len(b)
    data, moments, diffs = (np.empty((size, n), np.int64) for size in shape)
    state = np.zeros(8, np.int64)
    elements = np.array(frontier.elements, np.int64).reshape(len(frontier), depth)
    read = 0
    while read < n:
        now = merge_runs(
            left.data, left.times, left.diffs, right.data, right.times, right.diffs, elements, one_time_sides,
            data, moments, diffs, state, fuel,
        )  # fmt: skip
        assert 0 < now <= fuel + 1
        read += now
    kept, written, timed = int(state[2]), int(state[4]), int(state[5])
    if n and not timed:
        moments[:] = moments[:, :1].copy()
    if n and not written:
        diffs[:] = (left if a else right).diffs
    parts = (twins.columns(part[:, :kept]) for part in (data, moments, diffs))
    return list(zip(*parts, strict=True))


@given(st.data(), st.integers(1, 3), depths(), st.sampled_from([1, 2]), st.sampled_from([1, 7, 1 << 62]), st.booleans())
def test_merge_matches_twin(data, lanes, depth, width, fuel, spread):
    """A3.14: representatives of times are summed, also on a side that is only copied (A17.6)."""
    shape = (lanes, depth, width)
    a, b = data.draw(sides(*shape)), data.draw(sides(*shape))
    frontier = data.draw(frontiers(depth))
    assert merged(a, b, shape, frontier, 0, fuel, spread) == twins.merge_runs(a, b, frontier)


@given(st.data(), st.integers(1, 2), st.sampled_from([1, 5, 1 << 62]))
def test_sides_known_to_have_one_time_are_summed_without_comparing_times(data, lanes, fuel):
    a, b = data.draw(sides(lanes, 1, 1)), data.draw(sides(lanes, 1, 1))
    frontier = Frontier.at((3,))  # at or after all times drawn
    for one_time_sides in (0, FROM_A, FROM_B, FROM_A | FROM_B):
        assert merged(a, b, (lanes, 1, 1), frontier, one_time_sides, fuel) == twins.merge_runs(a, b, frontier)


@given(st.data())
@example(None)
def test_one_datum_with_many_times_out_of_order(data):
    """Representatives of (1, 9) and (2, 3) at {(2, 0)} sort in the opposite order."""
    size = data.draw(st.integers(0, 60)) if data is not None else 3000
    generator = np.random.default_rng(size)
    rows = twins.consolidate([((7,), (int(e), int(r)), (1,)) for e, r in generator.integers(0, (4, 50), (size, 2))])
    frontier = Frontier.at((2, 0))
    assert merged(rows, [], (1, 2, 1), frontier, 0, 100) == twins.merge_runs(rows, [], frontier)
    assert merged([], rows, (1, 2, 1), frontier, 0, 1 << 62) == twins.merge_runs([], rows, frontier)


def test_blocks_and_runs_of_all_lengths():
    """Longer than a block of steps, with runs around the length that is copied."""
    for length in (
        kernel.MIN_COPIED_ROWS - 1,
        kernel.MIN_COPIED_ROWS,
        kernel.MIN_COPIED_ROWS + 1,
        kernel.BLOCK_STEPS + 1,
    ):
        a = [((i,), (0,), (1,)) for i in range(4 * length) if (i // length) % 2 == 0]
        b = [((i,), (0,), (-1 if i % 3 else 1,)) for i in range(2 * length, 5 * length) if (i // length) % 4 != 3]
        assert merged(a, b, (1, 1, 1), CLOSED, 0, 1 << 62) == twins.merge_runs(a, b, CLOSED)


def test_everything_cancels():
    a = [((i, 0), (i % 3,), (1,)) for i in range(100)]
    b = [((i, 0), (2,), (-1,)) for i in range(100)]
    assert merged(a, b, (2, 1, 1), Frontier.at((5,)), 0, 13) == []


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("timed", [False, True])
def test_runs_too_short_to_copy_are_predicted_to_continue(lanes, timed):
    """Groups in which some SAMPLE_STEPS steps are all of one kind.

    These are rows of A alone, rows of B alone, and rows that cancel, up to one in the middle that does not or has
    another time.
    """
    length = 3 * kernel.SAMPLE_STEPS
    assert length < kernel.MIN_COPIED_ROWS
    a: Side = []
    b: Side = []
    for group in range(24):
        for i in range(length):
            row = (group,) * (lanes - 1) + (group * length + i,)
            time = (i % 3 if timed else 0,)
            odd = i == length - kernel.SAMPLE_STEPS
            if group % 4 != 1:
                a.append((row, time, (1, 2)))
            if group % 4 != 0:
                b.append((row, (4,) if odd and group % 8 == 3 and timed else time, (-1, -1 if odd else -2)))
    for fuel in (1, kernel.SAMPLE_STEPS, 100, 1 << 62):
        for frontier in (CLOSED, Frontier.at((1,)), Frontier.at((5,))):
            assert merged(a, b, (lanes, 1, 2), frontier, 0, fuel) == twins.merge_runs(a, b, frontier)


@pytest.mark.parametrize("fuel", [700, 1 << 62])
def test_keys_of_one_lane_and_time_are_merged_in_a_single_loop(fuel):
    """A3.14: on one side, on both, cancelling and not, longer than a block of steps and in short runs."""
    a = [((3 * i // 2,), (1,), ((-1) ** i * (1 + i % 3),)) for i in range(1500)]
    b = [((i,), (1,), ((-1) ** (i // 5) * (1 + i % 2),)) for i in range(2600)]
    for left, right in ((a, b), (b, a), (a, [(data, time, (2,)) for data, time, _ in b])):
        result = merged(left, right, (1, 1, 1), Frontier.at((1,)), 0, fuel)
        assert result == twins.merge_runs(left, right, Frontier.at((1,)))
        assert 0 < len(result) < len({data for data, _, _ in left + right})


@pytest.mark.parametrize("fuel", [700, 1 << 62])
def test_groups_of_any_size_are_sorted_again_when_their_times_change(fuel):
    """A3.14: one, two and more rows of a datum that become equal, change order or cancel, across blocks."""
    a = [((i,), (1 + i % 2, 3 - k), ((-1) ** k,)) for i in range(900) for k in reversed(range(1 + i % 3))]
    b = [((i,), (3, (i + k) % 3), (1 if i % 5 else -1,)) for i in range(0, 900, 2) for k in range(1 + i % 4 // 3)]
    a, b = twins.consolidate(a), twins.consolidate(b)
    for frontier in (Frontier.at((4, 0)), Frontier.at((4, 2)), Frontier([(4, 0), (0, 4)])):
        assert merged(a, b, (1, 2, 1), frontier, 0, fuel) == twins.merge_runs(a, b, frontier)
