"""Correcting short histories: each kernel against its twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Ints, Updates, constant
from kpg.kernels.new_keys import new_keys
from kpg.kernels.unchanged_minimum import keys_with_changed_minimum
from kpg.operators.one_pass_tactic import FIRST, PRESENCE, SUMS, OnePassTactic
from kpg.operators.tactic import ReduceResult, ReduceTask
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, frontiers, times
from kpg.trace.batch import Batch
from kpg.trace.description import Description, elements
from kpg.trace.locate_batches import locate


def block_of(rows: list[tuple[int, ...]], lanes: int) -> Ints:
    """Rows as int64[lanes, n]."""
    return np.ascontiguousarray(np.array(rows, np.int64).reshape(len(rows), lanes).T)


def batch_of(updates: list[twins.Update], lanes: int, depth: int, width: int) -> Batch:
    """Updates of key 0 as a batch."""
    data = block_of([(0, *values) for values, _, _ in updates], 1 + lanes)
    made = Updates(data, block_of([t for _, t, _ in updates], depth), block_of([r for _, _, r in updates], width))
    return Batch(consolidate(made), 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))


@given(st.data(), depths(), st.booleans(), st.booleans())
def test_keys_that_are_not_there_yet_are_told_from_those_that_are(
    data: st.DataObject, depth: int, cut: bool, alike: bool
) -> None:
    """A5.10: fresh, settled and unclear keys, whatever rows the output's batches have of them."""
    count = data.draw(st.integers(1, 6))
    update = st.tuples(st.just(()), times(depth, 2), st.tuples(st.sampled_from([1, 1, -1])))
    found = [data.draw(st.lists(update, max_size=2, unique_by=lambda each: each[1])) for _ in range(count)]
    if alike:
        seeds = [[data.draw(times(depth, 2))]] * count
    else:
        seeds = [sorted(data.draw(st.sets(times(depth, 2), min_size=1, max_size=2))) for _ in range(count)]
    flat = [((key,), time, diff) for key, rows in enumerate(found) for _, time, diff in rows]
    parts = [flat[::2], flat[1::2]] if cut else [flat]
    batches = [keyed(part, depth) for part in parts]
    keys = np.arange(count).reshape(1, -1)
    table, ranges, _ = locate(batches, keys)
    fresh, unclear = np.empty(count, np.int64), np.empty(count, np.int64)
    offsets = np.cumsum([0] + [len(mine) for mine in seeds])
    given_seeds = block_of(seeds[0] if alike else [time for mine in seeds for time in mine], depth)
    upper = data.draw(frontiers(depth))
    n, others = new_keys(table, ranges, offsets, given_seeds, elements(upper, depth), fresh, unclear)
    assert (fresh[:n].tolist(), unclear[:others].tolist()) == twins.new_keys(seeds, found, upper)


@given(st.data(), depths(), st.booleans())
def test_groups_that_keep_their_least_row_are_told_from_others(data: st.DataObject, depth: int, cut: bool) -> None:
    """A5.10: rows before, at and after the least one come and go, whatever the output's batches have."""
    count, time = data.draw(st.integers(1, 6)), data.draw(times(depth, 2))
    value, diff = st.tuples(st.integers(0, 3)), st.tuples(st.sampled_from([1, 1, -1]))
    row, new = st.tuples(value, times(depth, 2), diff), st.tuples(value, st.just(time), diff)
    found = [data.draw(st.lists(row, max_size=2, unique_by=lambda each: each[:2])) for _ in range(count)]
    news = [
        sorted(data.draw(st.lists(new, min_size=1, max_size=3, unique_by=lambda each: each[0]))) for _ in range(count)
    ]
    flat = [((key, *values), at, change) for key, rows in enumerate(found) for values, at, change in rows]
    batches = [keyed(part, depth, 2) for part in ([flat[::2], flat[1::2]] if cut else [flat])]
    table, ranges, _ = locate(batches, np.arange(count).reshape(1, -1))
    fresh = [((key, *values), at, change) for key, rows in enumerate(news) for values, at, change in rows]
    came = keyed(fresh, depth, 2)
    offsets = np.cumsum([0] + [len(rows) for rows in news])
    chosen = np.empty(count, np.int64)
    n = keys_with_changed_minimum(
        table, ranges, 1, came.updates.times, offsets, came.updates.data, came.updates.diffs, chosen
    )
    assert chosen[:n].tolist() == twins.keys_with_changed_minimum(time, news, found)


def keyed(updates: list[twins.Update], depth: int, lanes: int = 1) -> Batch:
    """Updates of keys as a batch."""
    made = Updates(
        block_of([row for row, _, _ in updates], lanes),
        block_of([time for _, time, _ in updates], depth),
        block_of([diff for _, _, diff in updates], 1),
    )
    return Batch(consolidate(made), 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))


@given(st.data(), depths(), st.sampled_from([PRESENCE, SUMS, FIRST]), st.integers(1, 2), st.booleans())
def test_short_histories_are_corrected_as_the_twin_says(
    data: st.DataObject, depth: int, kind: int, at_least: int, cut: bool
) -> None:
    """A5.4 A5.10: corrections and times put off, whatever the histories say."""
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
    question = ReduceTask(
        np.zeros((1, 1), np.int64),
        np.array([0, len(seeds)]),
        block_of(seeds, depth),
        False,
        batches,
        (batch_of(outputs, out_values, depth, 1),),
        upper,
    )
    made = OnePassTactic(kind, at_least, in_values, out_values, 1, Never()).correct(question)
    found = made.corrections
    corrections = [
        (tuple(value), tuple(time), (count,))
        for value, time, count in zip(
            found.data.T.tolist(), found.times.T.tolist(), found.diffs[0].tolist(), strict=True
        )
    ]
    late = sorted(map(tuple, made.pending_times.T.tolist()))
    assert (corrections, late) == twins.one_pass_corrections(kind, at_least, seeds, inputs, outputs, upper)


def first_seen(
    kind: int, at_least: int, counts: list[int], time: Time, seed: Time, upper: Frontier
) -> tuple[list[tuple[int, ...]], list[Time]]:
    """Corrections (values, time, count) of a key that has no output, whose value i is there counts[i] times; and the
    times put off."""
    values, depth = (1 if kind == FIRST else 0), len(time)
    there = [value for value, count in enumerate(counts) if count]
    diffs = np.array([[counts[value] for value in there]], np.int64)
    data = block_of([(0, value) for value in there], 2)
    updates = Updates(data, constant(time), diffs)
    batch = Batch(updates, 1, Description(Frontier.start(depth), Frontier(), Frontier.start(depth)))
    question = ReduceTask(np.zeros((1, 1), np.int64), np.array([0, 1]), constant(seed), True, (batch,), (), upper)
    made = OnePassTactic(kind, at_least, values, values, 1, Never()).correct(question)
    found = made.corrections
    corrections = zip(found.data.T.tolist(), found.times.T.tolist(), found.diffs[0].tolist(), strict=True)
    return [(*value, *when, count) for value, when, count in corrections], list(
        map(tuple, made.pending_times.T.tolist())
    )


@given(
    st.data(),
    depths(),
    st.sampled_from([PRESENCE, FIRST]),
    st.lists(st.sampled_from([0, 1, 2, -1, -2]), max_size=60),
    st.integers(1, 3),
)
def test_a_group_that_is_seen_for_the_first_time_is_what_the_twin_says(
    data: st.DataObject, depth: int, kind: int, counts: list[int], at_least: int
) -> None:
    """A5.4 A5.10: all its rows of one time, whether or not that is before the seed, or the seed complete."""
    time, seed, upper = data.draw(times(depth, 2)), data.draw(times(depth, 2)), data.draw(frontiers(depth))
    inputs: list[twins.Update] = [
        ((value,) if kind == FIRST else (), time, (count,)) for value, count in enumerate(counts) if count
    ]
    at_least = at_least if kind == PRESENCE else 1
    made, late = twins.one_pass_corrections(kind, at_least, [seed], inputs, [], upper)
    corrections = [(*values, *when, *diff) for values, when, diff in made]
    assert first_seen(kind, at_least, counts, time, seed, upper) == (corrections, late)


def test_a_large_group_that_is_seen_for_the_first_time_is_not_read() -> None:
    """A5.4: its least row is the first; how many follow does not matter."""
    assert first_seen(FIRST, 1, [0, 0, 3] + [1] * 10_000, (1, 0), (1, 2), Frontier()) == ([(2, 1, 2, 1)], [])
    assert first_seen(PRESENCE, 5, [1] * 10_000, (1, 0), (1, 2), Frontier()) == ([(1, 2, 1)], [])


class Never:
    """A tactic that must not be needed."""

    def moved(self, news: Updates, keys: Ints, offsets: Ints, outputs: tuple[Batch, ...]) -> Ints | None:
        raise AssertionError("nobody asks it")

    def correct(self, question: ReduceTask) -> ReduceResult:
        raise AssertionError("a short history was called long")
