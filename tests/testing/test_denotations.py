"""Each denotation on a case small enough to check by eye, and the laws that relate them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.testing import denotations as means
from kpg.testing.strategies import rows

collections = st.dictionaries(rows(2), st.sampled_from([-1, 1, 2]), max_size=6)
PEOPLE = {("ann", "sales", 10): 1, ("bob", "sales", 30): 2, ("cat", "lab", 20): 1}


def test_linear_operators_work_row_by_row():
    """Map, filter, flat_map, concat, negate."""
    assert means.map(PEOPLE, lambda row: (row[1],)) == {("sales",): 3, ("lab",): 1}
    assert means.select(PEOPLE, (1,)) == {("sales",): 3, ("lab",): 1}
    assert means.filter(PEOPLE, lambda row: row[2] > 15) == {("bob", "sales", 30): 2, ("cat", "lab", 20): 1}
    assert means.flat_map({(2,): 3}, lambda row: [(0,)] * row[0]) == {(0,): 6}
    assert means.explode({(2,): 3}, lambda row: [((7,), 2), ((8,), -1)]) == {(7,): 6, (8,): -3}
    assert means.concat({(1,): 1}, {(1,): -1, (2,): 1}) == {(2,): 1}
    assert means.negate({(1,): 2}) == {(1,): -2}


def test_joins_pair_rows_of_equal_keys():
    """Join, semijoin, antijoin."""
    floors = {("sales", 1): 1, ("sales", 2): 1}
    assert means.join(PEOPLE, floors, (1,), (0,)) == {
        ("ann", "sales", 10, 1): 1,
        ("ann", "sales", 10, 2): 1,
        ("bob", "sales", 30, 1): 2,
        ("bob", "sales", 30, 2): 2,
    }
    assert means.semijoin(PEOPLE, floors, (1,), (0,)) == {("ann", "sales", 10): 1, ("bob", "sales", 30): 2}
    assert means.antijoin(PEOPLE, floors, (1,), (0,)) == {("cat", "lab", 20): 1}


def test_reductions_see_all_rows_of_a_key():
    """Count, sum, avg, min, max, top_k, argmin, argmax, threshold, distinct, and any function."""
    assert means.count(PEOPLE, (1,)) == {("sales", 3): 1, ("lab", 1): 1}
    assert means.sum(PEOPLE, (1,), 2) == {("sales", 70): 1, ("lab", 20): 1}
    assert means.avg(PEOPLE, (1,), 2) == {("sales", 70 / 3): 1, ("lab", 20.0): 1}
    assert means.min(PEOPLE, (1,), 2) == {("sales", 10): 1, ("lab", 20): 1}
    assert means.max(PEOPLE, (1,), 2) == {("sales", 30): 1, ("lab", 20): 1}
    assert means.argmin(PEOPLE, (1,), 2) == {("ann", "sales", 10): 1, ("cat", "lab", 20): 1}
    assert means.argmax(PEOPLE, (1,), 2) == {("bob", "sales", 30): 1, ("cat", "lab", 20): 1}
    assert means.top_k(PEOPLE, (), 2, 3) == {("bob", "sales", 30): 2, ("cat", "lab", 20): 1}
    assert means.threshold(PEOPLE, 2) == {("bob", "sales", 30): 1}
    assert means.distinct(PEOPLE) == dict.fromkeys(PEOPLE, 1)
    assert means.reduce(PEOPLE, (1,), lambda key, values: [((len(values),), 1)]) == {("sales", 2): 1, ("lab", 1): 1}


def test_rows_of_negative_count_and_groups_that_cancel_are_not_present():
    """Counts may be negative for a while."""
    owed = {("a", 1): 1, ("a", 2): -1, ("b", 5): -1}
    assert means.distinct(owed) == {("a", 1): 1}
    assert means.min(owed, (0,), 1) == means.max(owed, (0,), 1) == {("a", 1): 1}
    assert means.top_k(owed, (0,), 1, 2) == {("a", 1): 1}
    assert means.count(owed, (0,)) == {("b", -1): 1}
    assert means.semijoin({(1,): 1, (2,): 3, (5,): 1}, owed, (0,), (1,)) == {(1,): 1}
    assert means.sum(owed, (0,), 1) == {("b", -5): 1}
    assert means.avg(owed, (0,), 1) == {("b", 5.0): 1}


def test_reachability_is_a_fixed_point():
    """The example of the papers."""
    edges = {(1, 2): 1, (2, 3): 1, (3, 1): 1, (5, 6): 1}

    def step(reach):
        return means.distinct(means.concat(reach, means.select(means.join(reach, edges, (0,), (0,)), (2, 1))))

    assert set(means.iterate({(1, 1): 1}, step)) == {(1, 1), (2, 1), (3, 1)}


def test_a_recursion_without_fixed_point_is_stopped():
    """The limit of rounds."""
    with pytest.raises(RecursionError, match="within 5 rounds"):
        means.iterate({(0,): 1}, lambda rows: means.map(rows, lambda row: (row[0] + 1,)), limit=5)


@given(collections, collections)
def test_join_is_bilinear(left, right):
    """Twice the rows give twice the pairs."""
    pairs = means.join(left, right, (0,), (0,))
    assert means.join(means.concat(left, left), right, (0,), (0,)) == means.concat(pairs, pairs)
    assert means.join(left, means.negate(right), (0,), (0,)) == means.negate(pairs)


@given(collections, collections)
def test_semijoin_and_antijoin_partition_the_left(left, right):
    kept, dropped = means.semijoin(left, right, (0,), (1,)), means.antijoin(left, right, (0,), (1,))
    assert means.concat(kept, dropped) == left and not kept.keys() & dropped.keys()


@given(collections, st.integers(0, 4))
def test_top_k_takes_the_first_k_copies(rows, k):
    for group, members in means.groups(rows, (0,)).items():
        copies = sorted(Counter({row: n for row, n in members.items() if n > 0}).elements(), key=lambda r: (-r[1], r))
        assert Counter(copies[:k]) == Counter(means.top_k(members, (0,), 1, k)), group


@given(collections)
def test_built_in_reductions_are_special_cases_of_reduce(rows):
    """Count and min written as functions of a group."""

    def count(key, values):
        total = sum(n for _, n in values)
        return [((total,), 1)] if total else []

    def least(key, values):
        return [(value, 1) for value, n in values if n > 0][:1]

    assert means.reduce(rows, (0,), count) == means.count(rows, (0,))
    assert means.reduce(rows, (0,), least) == means.min(rows, (0,), 1)
