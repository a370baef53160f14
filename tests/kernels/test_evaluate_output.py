"""The target rows at each evaluation time, and the corrections, equal those of recomputing everything."""

import time
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.operators import corrections
from kpg.operators.corrections import Corrections, InterestingTimes
from kpg.testing import kernel_twins as twins
from kpg.testing.strategies import depths, times
from kpg.trace.key_history import KeyHistory

REPLAY_ALL = -1  # a limit of reads with which every key with several evaluation times is replayed


Evaluate = Callable[[InterestingTimes, KeyHistory, KeyHistory], Corrections]
Denotation = Callable[[dict[twins.Row, twins.Row]], twins.Target]


def interesting(evals: list[list[tuple[int, ...]]], depth: int) -> InterestingTimes:
    flat = [time for times_of_key in evals for time in times_of_key]
    none = np.empty((depth, 0), np.int64)
    return InterestingTimes(twins.offsets(evals), twins.block(flat, depth), np.zeros(len(evals) + 1, np.int64), none)


def rows(corrections: Corrections) -> list[twins.Correction]:
    blocks = (corrections.data, corrections.times, corrections.diffs)
    data, moments, diffs = map(twins.columns, blocks)
    return [(int(k), *rest, d) for k, *rest, (d,) in zip(corrections.key_index, data, moments, diffs, strict=True)]


@st.composite
def histories(draw: st.DrawFn, keys: int, lanes: int, depth: int, width: int = 1) -> list[list[twins.Update]]:
    """Generate, per key, updates of few values and times, so that they cancel."""
    data = st.tuples(*[st.integers(0, 2)] * lanes)
    diff = st.tuples(*[st.sampled_from([1, -1, 1, 2])] * width)
    return [draw(st.lists(st.tuples(data, times(depth, 3), diff), max_size=12)) for _ in range(keys)]


def assert_corrects(
    data: st.DataObject,
    evaluate: Evaluate,
    denotation: Denotation,
    depth: int,
    lanes: int,
    out_lanes: int,
    width: int = 1,
) -> None:
    keys = data.draw(st.integers(0, 3))
    inputs = data.draw(histories(keys, lanes, depth, width))
    outputs = data.draw(histories(keys, out_lanes, depth))
    evals = [sorted(set(data.draw(st.lists(times(depth, 3), max_size=8)))) for _ in range(keys)]
    with mock.patch.object(
        corrections, "MAX_DIRECT_READS", data.draw(st.sampled_from([REPLAY_ALL, corrections.MAX_DIRECT_READS]))
    ):
        got = evaluate(
            interesting(evals, depth),
            twins.key_history(inputs, lanes, depth, width),
            twins.key_history(outputs, out_lanes, depth),
        )
    want = []
    for key in range(keys):
        target = twins.evaluate_output(denotation, evals[key], inputs[key])
        want += [(key, v, t, d) for v, t, (d,) in twins.correct_output(evals[key], target, outputs[key])]
    assert rows(got) == want


@given(st.data(), depths(), st.integers(-1, 3), st.integers(0, 2))
def test_presence_is_that_of_the_twin(data: st.DataObject, depth: int, at_least: int, lanes: int) -> None:
    """A5.13 A5.10: for any output before, the corrected output is right at each evaluation time."""

    def evaluate(times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        return corrections.evaluate_presence(at_least, times, inputs, outputs)

    assert_corrects(data, evaluate, twins.presence(at_least), depth, lanes, 0)


@given(st.data(), depths(), st.integers(1, 3))
def test_sums_are_those_of_the_twin(data: st.DataObject, depth: int, width: int) -> None:
    """A5.13: counts, and sums that are part of the diff."""
    assert_corrects(data, corrections.evaluate_sums, twins.sums, depth, 1, width, width)


@given(st.data(), depths(), st.integers(1, 3), st.integers(0, 2), st.integers(0, 1))
def test_first_values_are_those_of_the_twin(
    data: st.DataObject, depth: int, limit: int, lanes: int, by_copies: int
) -> None:
    """A5.9: min, max and top-k, values once each or copies counted; rows of negative multiplicity are not present."""

    def evaluate(times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        return corrections.evaluate_first(limit, by_copies, times, inputs, outputs)

    denotation = twins.copies(limit) if by_copies else twins.first(limit)
    assert_corrects(data, evaluate, denotation, depth, lanes, lanes)


@given(st.data(), depths(), st.integers(0, 2))
def test_any_reducer_sees_its_groups(data: st.DataObject, depth: int, lanes: int) -> None:
    """A5.9: only present rows, sorted, no call for an empty group; the results may repeat and be unsorted."""

    def function(
        key: int, values: corrections.Ints, counts: corrections.Ints
    ) -> tuple[corrections.Ints, corrections.Ints]:
        assert counts.all() and twins.columns(values) == sorted(twins.columns(values))
        total = counts.sum()
        return np.array([[total, 7, total], [0, 0, 0]]), np.array([1, 2, 3])

    def evaluate(times: InterestingTimes, inputs: KeyHistory, outputs: KeyHistory) -> Corrections:
        return corrections.evaluate_with(function, times, inputs, outputs)

    def denotation(values: dict[twins.Row, twins.Row]) -> twins.Target:
        total = sum(count for (count,) in values.values())
        return {} if not values else {(7, 0): 6} if total == 7 else {(total, 0): 4, (7, 0): 2}

    assert_corrects(data, evaluate, denotation, depth, lanes, 2)


@pytest.mark.parametrize("shape", [(300, 1, 40), (30, 4, 200), (4, 30, 200), (12, 12, 70)])
def test_long_histories_of_many_values_are_those_of_the_twin(shape: tuple[int, int, int]) -> None:
    """A5.4: keys that are replayed without being forced to, in few passes or many, sweeping either coordinate."""
    epochs, rounds, distinct = shape
    rng = np.random.default_rng(7)
    drawn = rng.integers(0, [distinct, epochs, rounds, 3], (400, 4)).tolist()
    inputs = [((v,), (e, r), (1 if s else -1,)) for v, e, r, s in drawn]
    evals = sorted({t for _, t, _ in inputs[:120]})
    outputs = [((v,), (e, r), (1,)) for v, e, r, _ in drawn[:50]]
    got = corrections.evaluate_first(
        2, 1, interesting([evals], 2), twins.key_history([inputs], 1, 2), twins.key_history([outputs], 1, 2)
    )
    target = twins.evaluate_output(twins.copies(2), evals, inputs)
    assert rows(got) == [(0, v, t, d) for v, t, (d,) in twins.correct_output(evals, target, outputs)]


def test_full_buffers_are_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    """A5.9: a buffer for a few rows at a time changes no result, between keys or within one."""
    rng = np.random.default_rng(5)
    inputs = [[((int(v),), (int(e), int(r)), (1,)) for v, e, r in rng.integers(0, 6, (40, 3))] for _ in range(6)]
    outputs: list[list[twins.Update]] = [[] for _ in inputs]
    evals = [sorted({time for _, time, _ in history}) for history in inputs]
    asked = interesting(evals, 2)
    arguments = (asked, twins.key_history(inputs, 1, 2), twins.key_history(outputs, 1, 2))
    whole = rows(corrections.evaluate_first(4, 1, *arguments))
    groups = rows(corrections.evaluate_with(lambda key, values, counts: (values, counts), *arguments))
    monkeypatch.setattr(corrections, "MAX_TARGET_ROWS", 8)
    for max_reads in (REPLAY_ALL, corrections.MAX_DIRECT_READS, 1 << 40):
        monkeypatch.setattr(corrections, "MAX_DIRECT_READS", max_reads)
        assert rows(corrections.evaluate_first(4, 1, *arguments)) == whole
        assert rows(corrections.evaluate_with(lambda key, values, counts: (values, counts), *arguments)) == groups


def chain(n: int, depth: int) -> tuple[InterestingTimes, KeyHistory]:
    """Return a key with n values, at times that form a chain; each but the last is retracted at the next time."""
    updates = [((v,), (v,) * depth, (1,)) for v in range(n)] + [((v,), (v + 1,) * depth, (-1,)) for v in range(n - 1)]
    return interesting([[(i,) * depth for i in range(n)]], depth), twins.key_history([updates], 1, depth)


def grid(epochs: int, rounds: int) -> tuple[InterestingTimes, KeyHistory]:
    """Return a key with a value per epoch and round, each retracted an epoch later, evaluated at all of these times."""
    updates = []
    for e in range(epochs):
        for r in range(rounds):
            updates += [((r,), (e, r), (1,)), ((r,), (e + 1, r), (-1,))]
    return interesting([[(e, r) for e in range(epochs) for r in range(rounds)]], 2), twins.key_history([updates], 1, 2)


@pytest.mark.jit
@pytest.mark.parametrize(
    "make", [lambda: chain(100_000, 1), lambda: chain(20_000, 2), lambda: grid(10_000, 4), lambda: grid(4, 10_000)]
)
def test_many_times_of_one_key_take_about_linear_time(make: Callable[[], tuple[InterestingTimes, KeyHistory]]) -> None:
    """A5.4: 10⁵ times on one key, 10⁴ epochs of a few rounds, a few epochs of 10⁴ rounds: well under a second."""
    asked, inputs = make()
    depth = asked.eval_times.shape[0]
    reductions = (
        (0, lambda o: corrections.evaluate_presence(1, asked, inputs, o)),
        (1, lambda o: corrections.evaluate_sums(asked, inputs, o)),
        (1, lambda o: corrections.evaluate_first(1, 0, asked, inputs, o)),
        (1, lambda o: corrections.evaluate_first(3, 1, asked, inputs, o)),
    )
    for lanes, evaluate in reductions:
        evaluate(twins.key_history([[]], lanes, depth))  # loads the kernel
        start = time.thread_time()
        got = evaluate(twins.key_history([[]], lanes, depth))
        assert time.thread_time() - start < 1.0
        assert len(got) > 0
