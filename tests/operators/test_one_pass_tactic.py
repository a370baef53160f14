"""The one-pass tactic on real batches: after every call, the output is right at every time not beyond its upper.

    for all t not beyond upper:   accumulate(output, t)  ==  f(accumulate(input, t))

The limit on history rows is also made tiny, so that most keys go to the general tactic.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier, representative
from kpg.algebra.order import Time
from kpg.columns.consolidation import consolidate
from kpg.columns.updates import Updates, constant, spread
from kpg.operators import corrections, one_pass_tactic
from kpg.operators.one_pass_tactic import FIRST, PRESENCE, SUMS, OnePassTactic
from kpg.operators.tactic import ReduceTask, ReplayTactic, Tactic
from kpg.testing import kernel_twins as naive
from kpg.testing.strategies import depths, times, uppers
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.key_history import distinct_keys

Row = tuple[int, ...]
Update = tuple[Row, Time, Row]  # key and values, time, diff


def batch_of(updates: list[Update], lanes: int, depth: int, width: int, lower: Frontier, upper: Frontier) -> Batch:
    """Return some updates as a batch with the first lane as its key."""
    n = len(updates)
    blocks = [
        np.array([update[i] for update in updates], np.int64).reshape(n, size).T.copy()
        for i, size in ((0, lanes), (1, depth), (2, width))
    ]
    description = Description(lower, upper, Frontier.start(depth))
    return Batch(consolidate(Updates(*blocks)), 1, description)


class Caller:
    """The state that a reduce keeps around a tactic: batches of input and output, and pending times."""

    def __init__(self, tactic: Tactic, depth: int, lanes: int, out_lanes: int, width: int) -> None:
        self.tactic, self.depth, self.lanes, self.out_lanes, self.width = tactic, depth, lanes, out_lanes, width
        self.inputs: list[Batch] = []
        self.outputs: list[Batch] = []
        self.pending: set[tuple[int, Time]] = set()
        self.never_retracted = True

    def compact(self, since: Frontier) -> None:
        """Compact the batches, as a trace may if all later tasks are beyond since."""
        for batches, lanes, width in ((self.inputs, self.lanes, self.width), (self.outputs, self.out_lanes, 1)):
            compacted = [(d, representative(since, t), r) for batch in batches for d, t, r in unpack(batch.updates)]
            batches[:] = [batch_of(compacted, lanes, self.depth, width, Frontier.start(self.depth), since)]

    def unaffected(self) -> set[int]:
        """Return the keys that the last input batch, if it has a single time, does not affect."""
        updates = self.inputs[-1].updates
        if updates.times.shape[1] > 1 or not len(updates):
            return set()
        keys, offsets = distinct_keys(updates, 1)
        chosen = self.tactic.affected_keys(updates, keys, offsets, tuple(self.outputs))
        return set() if chosen is None else set(keys[0].tolist()) - set(keys[0, chosen].tolist())

    def call(self, news: list[Update], lower: Frontier, upper: Frontier) -> list[Update]:
        """Call the tactic with the updates of [lower, upper) and return its corrections."""
        self.inputs.append(batch_of(news, self.lanes, self.depth, self.width, lower, upper))
        due = {(k, t) for k, t in self.pending if not upper.beyond(t)}
        asked = sorted({(d[0], t) for d, t, _ in news if d[0] not in self.unaffected()} | due)
        self.pending -= due
        if not asked:
            return []
        rows = np.array([[k, *t] for k, t in asked], np.int64).T.copy()
        seeds = Updates(rows[:1].copy(), rows[1:].copy(), constant((1,)))
        keys, offsets = distinct_keys(seeds, 1)
        monotone = not due and all(all(r > 0 for r in diff) for _, _, diff in news)
        inputs, outputs = tuple(self.inputs), tuple(self.outputs)
        self.never_retracted = self.never_retracted and all(all(r > 0 for r in diff) for _, _, diff in news)
        never_retracted = monotone and self.never_retracted
        task = ReduceTask(keys, offsets, seeds.times, monotone, inputs, outputs, upper, never_retracted)
        result = self.tactic.correct(task)
        for index, time in zip(result.pending_keys.tolist(), map(tuple, result.pending_times.T.tolist()), strict=True):
            assert upper.beyond(time)
            self.pending.add((int(keys[0, index]), time))
        produced = result.corrections
        all_times, all_diffs = spread(produced.times, len(produced)), spread(produced.diffs, len(produced))
        order = [(k, *v, *t) for k, v, t in zip(produced.key_index, produced.data.T, all_times.T, strict=True)]
        assert order == sorted(order), "corrections come sorted, as a batch needs them"
        corrections = [
            ((int(keys[0, k]), *value), time, (diff,))
            for k, value, time, diff in zip(
                produced.key_index.tolist(),
                map(tuple, produced.data.T.tolist()),
                map(tuple, all_times.T.tolist()),
                all_diffs[0].tolist(),
                strict=True,
            )
        ]
        self.outputs.append(batch_of(corrections, self.out_lanes, self.depth, 1, lower, upper))
        return corrections


def unpack(updates: Updates) -> list[Update]:
    """The updates as tuples."""
    n = len(updates)
    every = (updates.data, updates.times, updates.diffs)
    blocks = [np.broadcast_to(block, (block.shape[0], n)).T.tolist() for block in every]
    return [(tuple(d), tuple(t), tuple(r)) for d, t, r in zip(*blocks, strict=True)]


def simulate(data: st.DataObject, tactic: Tactic, f: object, depth: int, out_values: int, width: int = 1) -> None:
    """Feed random updates through random uppers; check all times of the closure after every call."""
    key_and_value = st.tuples(st.integers(0, 1), st.integers(0, 2))
    positive = data.draw(st.booleans())
    diff = st.tuples(*[st.sampled_from([1, 2] if positive else [1, 1, -1])] * width)
    everything = data.draw(st.lists(st.tuples(key_and_value, times(depth, 4), diff), max_size=14))
    compacting = data.draw(st.booleans())
    caller = Caller(tactic, depth, 2, 1 + out_values, width)
    log: list[Update] = []
    chain = data.draw(uppers(depth))
    for lower, upper in zip(chain[:-1], chain[1:], strict=True):
        news = [u for u in everything if lower.beyond(u[1]) and not upper.beyond(u[1])]
        if compacting:
            caller.compact(lower)
        log += caller.call(news, lower, upper)
        for key in (0, 1):
            mine = [(d[1:], t, r) for d, t, r in everything if d[0] == key]
            output = [(d[1:], t, r) for d, t, r in log if d[0] == key]
            seen = [t for _, t, _ in mine + output]
            for time in naive.closure(seen, seen):
                if not upper.beyond(time):
                    have = {v: d for v, (d,) in naive.collection(output, time).items()}
                    assert have == f(naive.collection(mine, time)), f"key {key} at {time}, upper {upper}"  # type: ignore[operator]
    assert not caller.pending


@pytest.fixture(params=[96, 3], ids=["usual", "tiny"])
def max_history_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The limit on history rows: the usual one, or so small that most keys exceed it."""
    monkeypatch.setattr(one_pass_tactic, "MAX_HISTORY_ROWS", request.param)
    return int(request.param)


def general(evaluate: object, out_values: int) -> ReplayTactic:
    """The general tactic for a function of histories."""
    return ReplayTactic(lambda keys, times, inputs, outputs: evaluate(times, inputs, outputs), out_values)  # type: ignore[operator]


@pytest.mark.usefixtures("max_history_rows")
@given(data=st.data(), depth=depths(), at_least=st.integers(1, 2))
def test_presence_is_right_after_every_call(data: st.DataObject, depth: int, at_least: int) -> None:
    """A5.10 A5.13: distinct and threshold at any depth, pending joins, compacted histories, long histories."""
    tactic = OnePassTactic(PRESENCE, at_least, 0, 0, 1, general(partial(corrections.evaluate_presence, at_least), 0))
    simulate(data, tactic, naive.presence(at_least), depth, 0)


def test_without_retractions_a_key_is_searched_in_the_output_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A5.10: the minimum number of keys is set to one, so every call without retractions takes this path."""
    asked: list[bool] = []
    insert_new_keys = one_pass_tactic._insert_new_keys

    def counted(task: ReduceTask) -> object:
        asked.append(task.never_retracted)
        return insert_new_keys(task)

    monkeypatch.setattr(one_pass_tactic, "MIN_KEYS_FOR_NEW_KEYS", 1)
    monkeypatch.setattr(one_pass_tactic, "_insert_new_keys", counted)

    @given(data=st.data(), depth=depths(), at_least=st.sampled_from([1, 1, 2]))
    def right(data: st.DataObject, depth: int, at_least: int) -> None:
        tactic = OnePassTactic(
            PRESENCE, at_least, 0, 0, 1, general(partial(corrections.evaluate_presence, at_least), 0)
        )
        simulate(data, tactic, naive.presence(at_least), depth, 0)

    right()
    assert all(asked)
    asked.clear()
    caller = Caller(
        OnePassTactic(PRESENCE, 1, 0, 0, 1, general(partial(corrections.evaluate_presence, 1), 0)), 1, 1, 1, 1
    )
    first, second, third = (Frontier.at((epoch,)) for epoch in range(3))
    assert caller.call([((0,), (0,), (1,))], first, second) == [((0,), (0,), (1,))]
    assert caller.call([((0,), (1,), (1,))], second, third) == [] and asked == [True, True]


@pytest.mark.usefixtures("max_history_rows")
@given(data=st.data(), depth=depths(), width=st.integers(1, 2))
def test_sums_are_right_after_every_call(data: st.DataObject, depth: int, width: int) -> None:
    """A5.10 A5.13: count, and sums in the diff."""
    tactic = OnePassTactic(SUMS, 1, 0, width, width, general(corrections.evaluate_sums, width))
    simulate(data, tactic, naive.sums, depth, width, width)


@pytest.mark.usefixtures("max_history_rows")
@given(data=st.data(), depth=depths())
def test_the_first_value_is_right_after_every_call(data: st.DataObject, depth: int) -> None:
    """A5.10: min, max and argmin."""
    tactic = OnePassTactic(FIRST, 1, 1, 1, 1, general(partial(corrections.evaluate_first, 1, 0), 1))
    simulate(data, tactic, naive.first(1), depth, 1)


def test_the_first_value_stays_where_only_larger_ones_are_inserted_and_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A5.10: the minimum number of keys is set to one, so groups are left out whenever a batch has one time."""
    left_out = 0
    unaffected = Caller.unaffected

    def counted(caller: Caller) -> set[int]:
        nonlocal left_out
        keys = unaffected(caller)
        left_out += len(keys)
        return keys

    monkeypatch.setattr(one_pass_tactic, "MIN_KEYS_FOR_MINIMUM", 1)
    monkeypatch.setattr(Caller, "unaffected", counted)

    @given(data=st.data(), depth=depths())
    def right(data: st.DataObject, depth: int) -> None:
        tactic = OnePassTactic(FIRST, 1, 1, 1, 1, general(partial(corrections.evaluate_first, 1, 0), 1))
        simulate(data, tactic, naive.first(1), depth, 1)

    right()
    caller = Caller(OnePassTactic(FIRST, 1, 1, 1, 1, general(partial(corrections.evaluate_first, 1, 0), 1)), 1, 2, 2, 1)
    first, second, third = (Frontier.at((epoch,)) for epoch in range(3))
    assert caller.call([((0, 1), (0,), (1,))], first, second) == [((0, 1), (0,), (1,))]
    left_out = 0
    assert caller.call([((0, 2), (1,), (1,))], second, third) == [] and left_out
