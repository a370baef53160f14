"""Least values by group where weights or counts are negative, sums leave 64 bits, or pairs come and go: A6.8."""

import numpy as np
import pytest

from kpg.errors import TooManyRounds
from kpg.seminaive import graph_lists, pair_values
from kpg.seminaive.least_values import LeastValueSpec
from kpg.seminaive.pair_values import PairValues
from kpg.seminaive.row_numbers import RowNumbers
from tests.kernels.test_pair_keys import apply

WEIGHTED = LeastValueSpec("test", 1000, weighted=True, group_lanes=1)
STEPS = LeastValueSpec("test", 1000, step=1, group_lanes=1)


def test_negative_weights_are_computed_from_scratch_until_they_are_gone():
    least, answer = PairValues(WEIGHTED), set()
    apply(least, answer, {(7, 0, 0): 1, (8, 9, 0): 1}, {(0, 1, 5): 1, (0, 2, 1): 1, (1, 3, 1): 1})
    apply(least, answer, {}, {(2, 1, -3): 1})
    assert answer == {(7, 0, 0), (7, 1, -2), (7, 2, 1), (7, 3, -1), (8, 9, 0)}
    apply(least, answer, {(8, 2, 1): 1}, {})
    assert {(8, 2, 1), (8, 1, -2), (8, 3, -1)} < answer
    apply(least, answer, {(8, 2, 1): -1}, {(2, 1, -3): -1, (2, 1, 0): 1})
    assert answer == {(7, 0, 0), (7, 1, 1), (7, 2, 1), (7, 3, 2), (8, 9, 0)} and not least.is_negative
    with pytest.raises(TooManyRounds, match="test did not reach a fixed point"):
        apply(least, answer, {}, {(3, 1, -2): 1})


def test_edges_removed_before_they_are_inserted_cancel_others_until_then():
    least, answer = PairValues(STEPS), set()
    apply(least, answer, {(7, 0, 0): 1, (7, 1, 0): 1, (8, 0, 0): 1}, {(0, 2, 0): 1, (2, 3, 0): 1})
    apply(least, answer, {}, {(1, 2, 0): -1})
    alone = {(8, 0, 0), (8, 2, 1), (8, 3, 2)}
    assert answer == {(7, 0, 0), (7, 1, 0)} | alone  # as a loop sums it: one copy of node 2, and minus one
    apply(least, answer, {}, {(1, 2, 0): 1})
    assert answer == {(7, 0, 0), (7, 1, 0), (7, 2, 1), (7, 3, 2)} | alone
    apply(least, answer, {(9, 3, 0): -1}, {(0, 2, 0): -1})
    assert answer == {(7, 0, 0), (7, 1, 0), (8, 0, 0)}
    apply(least, answer, {(9, 3, 0): 2}, {})
    assert answer == {(7, 0, 0), (7, 1, 0), (8, 0, 0), (9, 3, 0)}


def test_edges_without_groups_may_be_removed_before_they_are_inserted():
    least, answer = PairValues(WEIGHTED), set()
    apply(least, answer, {}, {(1, 2, 0): -1})
    apply(least, answer, {}, {(1, 2, 0): 2})
    apply(least, answer, {(7, 1, 0): 1}, {})
    assert answer == {(7, 1, 0), (7, 2, 0)}


@pytest.mark.parametrize("node_lanes", [1, 2])
def test_a_sum_beyond_64_bits_is_reported_while_it_is_there(node_lanes):
    least = PairValues(LeastValueSpec("test", 1000, weighted=True, group_lanes=1, node_lanes=node_lanes))
    answer, large = set(), 2**63 - 2
    nodes = [(node,) if node_lanes == 1 else (node % 3, node // 3) for node in range(4)]
    apply(least, answer, {(7, 0, 0): 1, (8, 0, -9): 1}, {(0, 1, large): 1, (1, 2, 5): 1, (1, 3, 1): 1})
    assert {row for row in answer if row[0] == 7} == {
        (7, *nodes[0], 0),
        (7, *nodes[1], large),
        (7, *nodes[3], large + 1),
    }
    assert least.overflows().T.tolist() == [[7, *nodes[1], *nodes[2], large, 5]]
    apply(least, answer, {}, {(0, 1, 1): 1})
    assert least.overflows().shape == (3 + 2 * node_lanes, 0) and (7, *nodes[2], 6) in answer


def test_more_rounds_than_allowed_are_refused():
    least, answer = PairValues(LeastValueSpec("test", 5, step=1, group_lanes=1)), set()
    apply(least, answer, {(7, 0, 0): 1}, {(n, n + 1, 0): 1 for n in range(4)})
    with pytest.raises(TooManyRounds, match="test did not reach a fixed point within 5 rounds"):
        apply(least, answer, {}, {(n, n + 1, 0): 1 for n in range(4, 9)})


def test_groups_and_nodes_that_come_and_go_are_forgotten(monkeypatch):
    monkeypatch.setattr(graph_lists, "MIN_SPARSE", 100)
    monkeypatch.setattr(pair_values, "MIN_UNUSED", 100)
    least, answer = PairValues(LeastValueSpec("test", 1000, group_lanes=1, node_lanes=2)), set()
    for at in range(1, 30):
        starts, edges = {(at, at, 0): 1}, {(at, at * 50 + n, 0): 1 for n in range(50)}
        apply(least, answer, starts, edges)
        assert len(answer) == 51
        assert least.used_groups().tolist() == [[at]] and least.used_nodes().shape == (2, 51)
        apply(least, answer, dict.fromkeys(starts, -1), dict.fromkeys(edges, -1))
    assert not answer and least.table.count < 500 and len(least.groups) < 10 and len(least.nodes) < 500


def test_rows_of_any_number_of_lanes_have_numbers():
    for lanes in range(4):
        numbers, random = RowNumbers(lanes), np.random.default_rng(lanes)
        for _ in range(3):
            rows = random.integers(-2, 3, (lanes, 40)) * 10**17
            found = numbers.add(rows)
            assert (numbers.rows(found) == rows).all()
            assert len(set(found.tolist())) == len(set(map(tuple, rows.T.tolist())))
        assert len(numbers) == max(1, min(5**lanes, len(numbers))) and int(found.max()) < len(numbers)
