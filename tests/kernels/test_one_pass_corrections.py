"""Groups with short histories are corrected in one pass as the twin does."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Ints, Updates, constant
from kpg.operators.one_pass_tactic import FIRST, PRESENCE, SUMS, OnePassTactic
from kpg.operators.tactic import ReduceResult, ReduceTask
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, frontiers, times
from kpg.trace.batch import Batch
from kpg.trace.description import Description


def batch_of(updates: list[twins.Update], lanes: int, depth: int, width: int) -> Batch:
    """Return updates of key 0 as a batch."""
    data = twins.block([(0, *values) for values, _, _ in updates], 1 + lanes)
    updates_of_key = Updates(
        data, twins.block([t for _, t, _ in updates], depth), twins.block([r for _, _, r in updates], width)
    )
    return Batch(consolidate(updates_of_key), 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))


@given(st.data(), depths(), st.sampled_from([PRESENCE, SUMS, FIRST]), st.integers(1, 2), st.booleans())
def test_short_histories_are_corrected_as_the_twin_says(
    data: st.DataObject, depth: int, kind: int, at_least: int, cut: bool
) -> None:
    """A5.4 A5.10: corrections and postponed times, for any histories."""
    in_values, out_values = (1 if kind == FIRST else 0), (0 if kind == PRESENCE else 1)
    diff = st.tuples(st.sampled_from([1, 1, -1]))

    def history(values: int) -> list[twins.Update]:
        update = st.tuples(st.tuples(*[st.integers(0, 2)] * values), times(depth, 3), diff)
        return data.draw(st.lists(update, max_size=6))

    inputs, outputs = history(in_values), history(out_values)
    seeds: list[Time] = sorted(data.draw(st.sets(times(depth, 3), min_size=1, max_size=3)))
    upper = data.draw(frontiers(depth))
    in_parts = [inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]] if cut else [inputs]
    batches = tuple(batch_of(part, in_values, depth, 1) for part in in_parts)
    task = ReduceTask(
        np.zeros((1, 1), np.int64),
        np.array([0, len(seeds)]),
        twins.block(seeds, depth),
        False,
        batches,
        (batch_of(outputs, out_values, depth, 1),),
        upper,
    )
    result = OnePassTactic(kind, at_least, in_values, out_values, 1, Never()).correct(task)
    corrected = result.corrections
    corrections = [
        (tuple(value), tuple(time), (count,))
        for value, time, count in zip(
            corrected.data.T.tolist(), corrected.times.T.tolist(), corrected.diffs[0].tolist(), strict=True
        )
    ]
    postponed = sorted(map(tuple, result.pending_times.T.tolist()))
    assert (corrections, postponed) == twins.one_pass_corrections(kind, at_least, seeds, inputs, outputs, upper)


def first_seen(
    kind: int, at_least: int, counts: list[int], time: Time, seed: Time, upper: Frontier
) -> tuple[list[tuple[int, ...]], list[Time]]:
    """Return the corrections (values, time, count) and postponed times of a key without output.

    The key holds value i counts[i] times.
    """
    values, depth = (1 if kind == FIRST else 0), len(time)
    present = [value for value, count in enumerate(counts) if count]
    diffs = np.array([[counts[value] for value in present]], np.int64)
    data = twins.block([(0, value) for value in present], 2)
    updates = Updates(data, constant(time), diffs)
    batch = Batch(updates, 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))
    task = ReduceTask(np.zeros((1, 1), np.int64), np.array([0, 1]), constant(seed), True, (batch,), (), upper)
    result = OnePassTactic(kind, at_least, values, values, 1, Never()).correct(task)
    corrected = result.corrections
    corrections = zip(corrected.data.T.tolist(), corrected.times.T.tolist(), corrected.diffs[0].tolist(), strict=True)
    return [(*value, *when, count) for value, when, count in corrections], list(
        map(tuple, result.pending_times.T.tolist())
    )


@given(
    st.data(),
    depths(),
    st.sampled_from([PRESENCE, FIRST]),
    st.lists(st.sampled_from([0, 1, 2, -1, -2]), max_size=60),
    st.integers(1, 3),
)
def test_a_new_group_is_corrected_as_the_twin_says(
    data: st.DataObject, depth: int, kind: int, counts: list[int], at_least: int
) -> None:
    """A5.4 A5.10: all its rows have one time, which may be before the seed or not, and the seed complete or not."""
    time, seed, upper = data.draw(times(depth, 2)), data.draw(times(depth, 2)), data.draw(frontiers(depth))
    inputs: list[twins.Update] = [
        ((value,) if kind == FIRST else (), time, (count,)) for value, count in enumerate(counts) if count
    ]
    at_least = at_least if kind == PRESENCE else 1
    expected, postponed = twins.one_pass_corrections(kind, at_least, [seed], inputs, [], upper)
    corrections = [(*values, *when, *diff) for values, when, diff in expected]
    assert first_seen(kind, at_least, counts, time, seed, upper) == (corrections, postponed)


def test_a_large_new_group_is_not_read() -> None:
    """A5.4: its minimum is its first row; the number of other rows does not matter."""
    assert first_seen(FIRST, 1, [0, 0, 3] + [1] * 10_000, (1, 0), (1, 2), Frontier()) == ([(2, 1, 2, 1)], [])
    assert first_seen(PRESENCE, 5, [1] * 10_000, (1, 0), (1, 2), Frontier()) == ([(1, 2, 1)], [])


class Never:
    """A tactic that must not be called."""

    def affected_keys(self, news: Updates, keys: Ints, offsets: Ints, outputs: tuple[Batch, ...]) -> Ints | None:
        raise AssertionError("the one-pass tactic does not delegate this")

    def correct(self, task: ReduceTask) -> ReduceResult:
        raise AssertionError("a short history was treated as long")
