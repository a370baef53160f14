"""The primitives of reduce: after each call, the output is right at every time not beyond its upper.

    for all t not beyond upper:   accumulate(output, t)  ==  f(accumulate(input, t))

The updates, uppers and compactions are random.
"""

from collections.abc import Callable
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier, representative
from kpg.algebra.order import Time
from kpg.operators import corrections
from kpg.operators.corrections import Corrections, InterestingTimes
from kpg.testing import kernel_twins as naive
from kpg.testing.strategies import depths, times, uppers
from kpg.trace.key_history import KeyHistory

Evaluate = Callable[[InterestingTimes, KeyHistory, KeyHistory], Corrections]
Denotation = Callable[[dict[naive.Row, naive.Row]], naive.Target]
KEYS = 2


class Reduce:
    """The state that a reduce keeps: histories of input and output, and pending times."""

    def __init__(self, evaluate: Evaluate, depth: int, lanes: int, out_lanes: int, width: int) -> None:
        self.evaluate, self.depth, self.lanes, self.out_lanes, self.width = evaluate, depth, lanes, out_lanes, width
        self.inputs: list[list[naive.Update]] = [[] for _ in range(KEYS)]
        self.outputs: list[list[naive.Update]] = [[] for _ in range(KEYS)]
        self.pending: list[list[Time]] = [[] for _ in range(KEYS)]

    def compact(self, since: Frontier) -> None:
        """Compact the histories, as a trace may if all later calls are beyond since."""
        for histories in (self.inputs, self.outputs):
            for history in histories:
                history[:] = naive.consolidate((v, representative(since, t), r) for v, t, r in history)

    def call(self, news: list[list[naive.Update]], lower: Frontier, upper: Frontier) -> list[list[naive.Update]]:
        """Evaluate the updates of [lower, upper) and return the corrections of each key."""
        for history, new in zip(self.inputs, news, strict=True):
            history += new
        seeds = [sorted({t for _, t, _ in new} | set(p)) for new, p in zip(news, self.pending, strict=True)]
        inputs = naive.key_history(self.inputs, self.lanes, self.depth, self.width)
        outputs = naive.key_history(self.outputs, self.out_lanes, self.depth)
        flat = naive.block([t for one in seeds for t in one], self.depth)
        asked = corrections.interesting_times(naive.offsets(seeds), flat, inputs, outputs, upper)
        result = self.evaluate(asked, inputs, outputs)
        corrected: list[list[naive.Update]] = [[] for _ in range(KEYS)]
        blocks = (result.data, result.times, result.diffs)
        for key, value, time, diff in zip(result.key_index, *map(naive.columns, blocks), strict=True):
            assert lower.beyond(time) and not upper.beyond(time)
            corrected[key].append((value, time, diff))
        waiting = naive.columns(asked.pending_times)
        bounds = asked.pending_offsets
        self.pending = [waiting[bounds[key] : bounds[key + 1]] for key in range(KEYS)]
        assert all(upper.beyond(time) for time in waiting)
        for history, new in zip(self.outputs, corrected, strict=True):
            history += new
        return corrected


def simulate(
    data: st.DataObject, evaluate: Evaluate, f: Denotation, depth: int, lanes: int, out_lanes: int, width: int = 1
) -> None:
    """Feed random updates through random uppers; check all times of the closure after every call."""
    value = st.tuples(*[st.integers(0, 2)] * lanes)
    diff = st.tuples(*[st.sampled_from([1, 1, -1])] * width)
    update = st.tuples(value, times(depth, 4), diff)
    everything = [data.draw(st.lists(update, max_size=8)) for _ in range(KEYS)]
    compacting = data.draw(st.booleans())
    max_direct_reads = data.draw(st.sampled_from([-1, corrections.MAX_DIRECT_READS]))  # −1: replay every key
    reduce = Reduce(evaluate, depth, lanes, out_lanes, width)
    log: list[list[naive.Update]] = [[] for _ in range(KEYS)]  # all corrections, never compacted
    chain = data.draw(uppers(depth))
    for lower, upper in zip(chain[:-1], chain[1:], strict=True):
        news = [[u for u in one if lower.beyond(u[1]) and not upper.beyond(u[1])] for one in everything]
        if compacting:
            reduce.compact(lower)
        with mock.patch.object(corrections, "MAX_DIRECT_READS", max_direct_reads):
            new_corrections = reduce.call(news, lower, upper)
        for key in range(KEYS):
            log[key] += new_corrections[key]
            seen = [t for _, t, _ in everything[key] + log[key]]
            for time in naive.closure(seen, seen):
                if not upper.beyond(time):
                    have = {v: d for v, (d,) in naive.collection(log[key], time).items()}
                    assert have == f(naive.collection(everything[key], time)), f"key {key} at {time}, upper {upper}"
    assert not any(reduce.pending)


@given(st.data(), depths(), st.integers(1, 2))
def test_presence_is_right_after_every_call(data: st.DataObject, depth: int, at_least: int) -> None:
    """A5.10 A5.13: distinct and threshold at any depth, with pending joins and compacted histories."""

    def evaluate(times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        return corrections.evaluate_presence(at_least, times, inputs, outputs)

    simulate(data, evaluate, naive.presence(at_least), depth, 1, 0)


@given(st.data(), depths(), st.integers(1, 2))
def test_sums_are_right_after_every_call(data: st.DataObject, depth: int, width: int) -> None:
    """A5.10 A5.13: count, and sums in the diff."""
    simulate(data, corrections.evaluate_sums, naive.sums, depth, 1, width, width)


@given(st.data(), depths(), st.integers(1, 2), st.integers(0, 1))
def test_first_values_are_right_after_every_call(data: st.DataObject, depth: int, limit: int, by_copies: int) -> None:
    """A5.10 A5.9: min, max, top-k."""

    def evaluate(times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        return corrections.evaluate_first(limit, by_copies, times, inputs, outputs)

    simulate(data, evaluate, naive.copies(limit) if by_copies else naive.first(limit), depth, 1, 1)


@given(st.data(), depths())
def test_a_python_reducer_is_right_after_every_call(data: st.DataObject, depth: int) -> None:
    """A5.10 A5.9: an arbitrary function, here the parity of each count and the largest value."""

    def function(
        key: int, values: corrections.Ints, counts: corrections.Ints
    ) -> tuple[corrections.Ints, corrections.Ints]:
        return np.concatenate([values[:, -1:], values], axis=1), np.concatenate([[1], counts % 2])

    def denotation(values: dict[naive.Row, naive.Row]) -> naive.Target:
        output = {value: count % 2 for value, (count,) in values.items()}
        for last in sorted(values)[-1:]:
            output[last] += 1
        return {value: count for value, count in output.items() if count}

    def evaluate(times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        return corrections.evaluate_with(function, times, inputs, outputs)

    simulate(data, evaluate, denotation, depth, 1, 1)


def test_a_nondeterministic_reducer_is_corrected_by_subtraction() -> None:
    """A5.11: the earlier output is read from the output history; the function is not called again."""
    answers = iter(range(100))

    def evaluate(times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        def nondeterministic(
            key: int, values: corrections.Ints, counts: corrections.Ints
        ) -> tuple[corrections.Ints, corrections.Ints]:
            return np.array([[next(answers)]]), np.array([1])

        return corrections.evaluate_with(nondeterministic, times, inputs, outputs)

    reduce = Reduce(evaluate, 1, 1, 1, 1)
    for epoch in range(5):
        news: list[list[naive.Update]] = [[((epoch,), (epoch,), (1,))], []]
        reduce.call(news, Frontier.at((epoch,)), Frontier.at((epoch + 1,)))
        output = naive.collection(reduce.outputs[0], (epoch,))
        assert output == {(epoch,): (1,)}


def test_output_is_corrected_where_only_output_had_changed() -> None:
    """A5.11 A5.10: output times are joined too: an output can outlive the input times that caused it."""
    answers = iter(range(100))

    def nondeterministic(
        key: int, values: corrections.Ints, counts: corrections.Ints
    ) -> tuple[corrections.Ints, corrections.Ints]:
        return np.array([[next(answers)]]), np.array([1])

    reduce = Reduce(lambda *run: corrections.evaluate_with(nondeterministic, *run), 2, 1, 1, 1)
    reduce.call([[((0,), (0, 0), (1,)), ((1,), (0, 3), (1,)), ((1,), (1, 3), (-1,))], []],
                Frontier.start(2), Frontier.at((2, 0)))  # fmt: skip
    reduce.compact(Frontier.at((2, 0)))
    assert {t for _, t, _ in reduce.inputs[0]} == {(2, 0)}  # the input of round 3 has cancelled
    assert {t for _, t, _ in reduce.outputs[0]} == {(2, 0), (2, 3)}  # the output of round 3 has not
    reduce.call([[((2,), (2, 1), (1,))], []], Frontier.at((2, 0)), Frontier.at((3, 0)))
    for time in ((2, 0), (2, 1), (2, 3)):
        assert list(naive.collection(reduce.outputs[0], time).values()) == [(1,)]


def test_pending_times_stay_few() -> None:
    """A5.10: a key with a history of many rounds has one pending time, not all its joins."""
    reduce = Reduce(lambda *run: corrections.evaluate_presence(1, *run), 2, 1, 0, 1)
    rounds: list[naive.Update] = [((r,), (0, r), (1,)) for r in range(50)]
    reduce.call([rounds, []], Frontier.start(2), Frontier.at((1, 0)))
    reduce.call([[((0,), (1, 0), (-1,))], []], Frontier.at((1, 0)), Frontier.at((1, 1)))
    assert reduce.pending == [[(1, 1)], []]
