"""Least values of a changing graph equal those of passes over all edges, in all regimes: A6.8, A8.4."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.errors import Overflow, TooManyRounds
from kpg.kernels.neighbour_lists import HOPS, VALUE
from kpg.seminaive import graph_lists, least_values
from kpg.seminaive.graph_lists import GraphChange
from kpg.seminaive.least_values import LeastValues, LeastValueSpec
from kpg.testing import kernel_twins as twins

edge = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3))
start = st.tuples(st.integers(0, 6), st.integers(-2, 3))
epochs = st.lists(
    st.tuples(
        st.dictionaries(start, st.sampled_from([1, 1, 2, -1, -1]), max_size=3),
        st.dictionaries(edge, st.sampled_from([1, 1, 2, -1, -1]), max_size=12),
    ),
    min_size=1,
    max_size=8,
)
specs = st.builds(
    LeastValueSpec,
    st.just("test"),
    st.just(1000),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0, 1, 3]),
    st.booleans(),
)


own = st.builds(LeastValueSpec, st.just("test"), st.just(1000), both_ways=st.just(True), own_starts=st.just(True))


def change_of(changes, lanes):
    rows = sorted(changes.items())
    data = np.array([row[:lanes] for row, _ in rows], np.int64).reshape(len(rows), lanes).T.copy()
    return GraphChange(data, np.array([diff for _, diff in rows], np.int64))


def apply(least, answer, starts, edges):
    """Change the graph, apply the changes to the answer, and check that they fit."""
    spec = least.spec
    changed = least.change(change_of(starts, 1 + spec.has_values), change_of(edges, 2 + spec.weighted))
    diffs = np.broadcast_to(changed.diffs[0], changed.data.shape[1]).tolist()
    for row, diff in sorted(zip(map(tuple, changed.data.T.tolist()), diffs, strict=True), key=lambda pair: pair[1]):
        assert (row in answer) == (diff < 0)
        (answer.remove if diff < 0 else answer.add)(row)


def positive(counts, changes, lanes):
    """Return the changes, of which none removes what is not there, over the first columns; and count them."""
    kept = {}
    for row, diff in changes.items():
        before = counts.get(row[:lanes], 0) + kept.get(row[:lanes], 0)
        if before + diff >= 0:
            kept[row[:lanes]] = kept.get(row[:lanes], 0) + diff
    kept = {row: diff for row, diff in kept.items() if diff}
    for row, diff in kept.items():
        counts[row] = counts.get(row, 0) + diff
    return kept


def keys_of(spec, starts, edges):
    """Return the keys that the twin computes."""
    given_starts = {(row[0], row[1] if spec.has_values else 0): count for row, count in starts.items()}
    weights = {(*row[:2], row[2] if spec.weighted else spec.step): count for row, count in edges.items()}
    if spec.both_ways:
        for (source, target, weight), count in list(weights.items()):
            weights[target, source, weight] = max(weights.get((target, source, weight), 0), count)
    return twins.least_keys(given_starts, weights)


@settings(max_examples=150)
@given(
    epochs,
    specs | own,
    st.sampled_from([1, 10**15]),
    st.sampled_from([0, 1, 2]),
    st.sampled_from([0, 1 << 10]),
    st.sampled_from([-1, 1 << 16]),
)
def test_keys_equal_those_of_passes_over_all_edges(epochs, spec, factor, lightest, load_rows, sparse):
    """Nodes close together and far apart, loaded at once or row by row, built again after each change or never.

    Buckets replace the heap if no weight is 0.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(least_values, "MIN_HEAP", load_rows)
        patch.setattr(graph_lists, "MIN_SPARSE", sparse)
        least, answer, starts, edges = LeastValues(spec), set(), {}, {}
        least._heap = np.empty((1, 3), np.int64)
        for more_starts, more_edges in epochs:
            more_starts = {(row[0] * factor, row[1]): diff for row, diff in more_starts.items()}
            more_edges = {(u * factor, v * factor, w + lightest): diff for (u, v, w), diff in more_edges.items()}
            changed_starts = {} if spec.own_starts else positive(starts, more_starts, 1 + spec.has_values)
            apply(least, answer, changed_starts, positive(edges, more_edges, 2 + spec.weighted))
            if spec.own_starts:
                starts = {(end, end): 1 for row, count in edges.items() if count for end in row[:2]}
            keys = keys_of(spec, starts, edges)
            assert answer == {(node, key[0])[: 1 + spec.has_values] for node, key in keys.items()}
            graph = least.graph
            numbers = {int(graph.values[n]): n for n in range(1, graph.node_count) if graph.keys[n, HOPS] >= 0}
            assert {n: tuple(graph.keys[at, [VALUE, HOPS]].tolist()) for n, at in numbers.items()} == keys


def test_a_budget_of_no_visits_pauses_after_each_node(monkeypatch):
    monkeypatch.setattr(least_values, "MAX_VISITS", 0)
    pauses = []
    monkeypatch.setattr(least_values, "pause", lambda: pauses.append(1))
    least, answer = LeastValues(LeastValueSpec("test", 1000, step=1)), set()
    chain = {(n, n + 1, 0): 1 for n in range(50)}
    apply(least, answer, {(0, 0): 1}, chain)
    apply(least, answer, {}, {(10, 11, 0): -1})
    apply(least, answer, {}, {(10, 11, 0): 1, (0, 40, 0): 1})
    assert answer == {(n, min(n, n - 39 if n >= 40 else n)) for n in range(51)} and len(pauses) > 100


def test_buckets_pause_and_have_any_width(monkeypatch):
    monkeypatch.setattr(least_values, "MAX_VISITS", 0)
    monkeypatch.setattr(least_values, "MIN_HEAP", 0)
    pauses = []
    monkeypatch.setattr(least_values, "pause", lambda: pauses.append(1))
    random = np.random.default_rng(1)
    for least_weight in (1, 4, 100):
        ends, weights = random.integers(0, 30, (2, 90)).tolist(), random.integers(least_weight, 400, 90).tolist()
        rows = zip(*ends, weights, strict=True)
        starts, edges = {(0, 5): 1, (7, -3): 1, (9, 900): 1}, dict.fromkeys(rows, 1)
        least, answer = LeastValues(LeastValueSpec("test", 1000, weighted=True)), set()
        apply(least, answer, starts, edges)
        assert answer == {(node, key[0]) for node, key in twins.least_keys(starts, edges).items()}
    assert len(pauses) > 50
    with pytest.raises(TooManyRounds, match="test did not reach a fixed point"):
        LeastValues(LeastValueSpec("test", 3, weighted=True)).change(
            change_of({(0, 0): 1}, 2), change_of({(n, n + 1, 2): 1 for n in range(9)}, 3)
        )


@pytest.mark.parametrize("visits", [0, 1 << 20])
@pytest.mark.parametrize("greatest", [0, 1, 3, 40])
def test_first_values_of_many_nodes_at_once_are_those_of_the_twin(monkeypatch, visits, greatest):
    """Buckets of several blocks, which are used again, and queues in which later nodes are looked at ahead."""
    monkeypatch.setattr(least_values, "MAX_VISITS", visits)
    monkeypatch.setattr(least_values, "MIN_HEAP", 0)
    random = np.random.default_rng(greatest)
    ends = random.integers(0, 1_500, (2, 6_000)).tolist()
    weights = random.integers(1, greatest + 1, 6_000).tolist() if greatest else [0] * 6_000
    starts, edges = {(n, n % 3): 1 for n in range(20)}, dict.fromkeys(zip(*ends, weights, strict=True), 1)
    spec = LeastValueSpec("test", 1000, weighted=True) if greatest else LeastValueSpec("test", 1000, step=1)
    least, answer = LeastValues(spec), set()
    apply(least, answer, starts, edges)
    same = edges if greatest else {(source, target, 1): 1 for source, target, _ in edges}
    assert answer == {(node, key[0]) for node, key in twins.least_keys(starts, same).items()}


def test_negative_weights_are_computed_from_scratch_until_they_are_gone():
    least, answer = LeastValues(LeastValueSpec("test", 1000, weighted=True)), set()
    apply(least, answer, {(0, 0): 1}, {(0, 1, 5): 1, (0, 2, 1): 1, (1, 3, 1): 1})
    apply(least, answer, {}, {(2, 1, -3): 1})
    assert answer == {(0, 0), (1, -2), (2, 1), (3, -1)}
    apply(least, answer, {}, {(2, 1, -3): -1, (2, 1, 0): 1})
    assert answer == {(0, 0), (1, 1), (2, 1), (3, 2)} and not least.is_irregular
    with pytest.raises(TooManyRounds, match="test did not reach a fixed point"):
        apply(least, answer, {}, {(3, 1, -2): 1})


def test_edges_removed_before_they_are_inserted_cancel_others_until_then():
    least, answer = LeastValues(LeastValueSpec("test", 1000, step=1)), set()
    apply(least, answer, {(0, 0): 1, (1, 0): 1}, {(0, 2, 0): 1, (2, 3, 0): 1})
    apply(least, answer, {}, {(1, 2, 0): -1})
    assert answer == {(0, 0), (1, 0)}  # as a loop sums it: one copy of node 2, and minus one
    apply(least, answer, {}, {(1, 2, 0): 1})
    assert answer == {(0, 0), (1, 0), (2, 1), (3, 2)}
    apply(least, answer, {}, {(0, 2, 0): -1})
    assert answer == {(0, 0), (1, 0)}


def test_a_sum_beyond_64_bits_is_reported_while_it_is_there():
    least, answer = LeastValues(LeastValueSpec("test", 1000, weighted=True)), set()
    large = 2**63 - 2
    apply(least, answer, {(0, 0): 1}, {(0, 1, large): 1, (1, 2, 5): 1, (1, 3, 1): 1})
    assert answer == {(0, 0), (1, large), (3, large + 1)}
    assert least.overflows().T.tolist() == [[1, 2, large, 5]]
    apply(least, answer, {}, {(0, 1, 1): 1})
    assert least.overflows().shape == (4, 0) and (2, 6) in answer


def test_counts_and_values_never_wrap():
    least, answer = LeastValues(LeastValueSpec("test", 1000, step=1)), set()
    apply(least, answer, {(0, 0): 1}, {(0, 1, 0): 2**62})
    with pytest.raises(Overflow, match="more than 2\\^63 times"):
        apply(least, answer, {}, {(0, 1, 0): 2**62})
    negative, answer = LeastValues(LeastValueSpec("test", 1000, weighted=True)), set()
    apply(negative, answer, {(0, 0): 1}, {(0, 1, 2**62): 2**62, (1, 2, 1): -(2**62), (3, 2, 0): 2**62})
    assert answer == {(0, 0), (1, 2**62)}
    with pytest.raises(Overflow, match="a value of test leaves 64 bits"):
        apply(negative, answer, {}, {(1, 4, 2**62): 1})


def test_more_rounds_than_allowed_are_refused():
    least, answer = LeastValues(LeastValueSpec("test", 5, step=1)), set()
    apply(least, answer, {(0, 0): 1}, {(n, n + 1, 0): 1 for n in range(4)})
    with pytest.raises(TooManyRounds, match="test did not reach a fixed point within 5 rounds"):
        apply(least, answer, {}, {(n, n + 1, 0): 1 for n in range(4, 9)})


def test_nodes_that_come_and_go_are_forgotten():
    least, answer = LeastValues(LeastValueSpec("test", 1000)), set()
    apply(least, answer, {(0, 0): 1}, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph_lists, "MIN_SPARSE", 100)
        patch.setattr(least_values, "MIN_HEAP", 100)
        for at in range(1, 40):
            rows = {(0, at * 100 + n, 0): 1 for n in range(100)}
            apply(least, answer, {}, rows)
            apply(least, answer, {}, dict.fromkeys(rows, -1))
    assert answer == {(0, 0)} and least.graph.node_count < 1000
