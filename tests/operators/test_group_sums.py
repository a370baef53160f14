"""Sums of groups in a hash table equal those of the sorted rows, however the rows are cut."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.columns.consolidation import consolidate, consolidate_all
from kpg.columns.schema import BOOL, FLOAT64, INT64, UINT64, decimal
from kpg.columns.updates import Updates, constant
from kpg.operators import group_sums, linear
from kpg.operators.group_sums import MAX_COUNTED_ROWS, SumGroups
from kpg.operators.linear import Linear, view_of
from kpg.operators.sums_in_diff import IntoDiffStage

WIDE = decimal(38, 2)
COLUMNS = (
    (2, INT64),
    (3, INT64.optional()),
    (4, UINT64),
    (5, BOOL.optional()),
    (slice(6, 8), WIDE),
    (slice(8, 10), WIDE.optional()),
)
values = st.sampled_from([0, 1, -1, 2**32, -(2**63), 2**63 - 1]) | st.integers(-(2**40), 2**40)
rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), *[values] * 8), min_size=1, max_size=40)
diffs = st.sampled_from([1, 1, -1, 3, MAX_COUNTED_ROWS // 4, 2**50])


def updates_of(rows, same_time, diff_choices):
    """Return rows as updates; two times, or all diffs equal, as the choices say."""
    n = len(rows)
    data = np.array(rows, np.int64).T.copy()
    times = constant((4,)) if same_time else np.arange(n).reshape(1, n) % 2
    weights = [diff_choices[row % len(diff_choices)] for row in range(n)]
    block = constant((weights[0],)) if len(diff_choices) == 1 else np.array([weights], np.int64)
    return Updates(data, np.ascontiguousarray(times), block)


class NoErrors:
    """An error report that must not be used."""


def collected(stage, updates, slice_rows):
    cuts = range(0, len(updates), slice_rows)
    parts = list(SumGroups(stage)((view_of(updates, cut, cut + slice_rows) for cut in cuts), NoErrors()))
    return parts


@given(
    rows,
    st.booleans(),
    st.lists(diffs, min_size=1, max_size=3),
    st.sampled_from([(0, 1), (1,), (0,), ()]),
    st.integers(1, 7),
    st.sampled_from([1, 5, 100]),
)
def test_sums_of_groups_are_those_of_sorted_rows(rows, same_time, weights, keys, slice_rows, sampled):
    stage, updates = IntoDiffStage(keys, COLUMNS), updates_of(rows, same_time, weights)
    with (
        patch.object(group_sums, "MIN_SUMMED_ROWS", 2),
        patch.object(group_sums, "SAMPLED_ROWS", sampled),
        patch.object(group_sums, "FIRST_GROUPS", 1),
    ):
        parts = collected(stage, updates, slice_rows)
    assert all(part.data.flags.c_contiguous and part.diffs.flags.c_contiguous for part in parts)
    sums, expected = consolidate_all(parts), consolidate(stage.apply(updates, NoErrors()))
    assert sums.data.tolist() == expected.data.tolist()
    n = len(sums)
    for block, other in ((sums.times, expected.times), (sums.diffs, expected.diffs)):
        assert (
            np.broadcast_to(block, (block.shape[0], n)).tolist() == np.broadcast_to(other, (other.shape[0], n)).tolist()
        )


def test_few_groups_leave_as_few_updates_and_many_leave_as_they_are():
    n = 4 * group_sums.SAMPLED_ROWS
    data = np.stack([np.arange(n) % 5, np.arange(n)])
    updates = Updates(np.ascontiguousarray(data), constant((0,)), constant((1,)))
    (few,) = collected(IntoDiffStage((0,), ((1, INT64),)), updates, 1 << 12)
    assert len(few) == 5 and few.diffs[0].tolist() == [n // 5 + (key < n % 5) for key in few.data[0].tolist()]
    many = collected(IntoDiffStage((1,), ((0, INT64),)), updates, 1 << 12)
    assert sum(map(len, many)) == n and len(many) > 1


def test_floats_are_summed_as_sorted_rows():
    data = np.stack([np.zeros(1000, np.int64), np.arange(1000.0).view(np.int64)])
    updates = Updates(data, constant((0,)), constant((1,)))
    parts = collected(IntoDiffStage((0,), ((1, FLOAT64),)), updates, 300)
    assert [len(part) for part in parts] == [300, 300, 300, 100]


@given(st.integers(1, 40), st.integers(1, 9), st.booleans())
def test_an_operator_computes_the_same_in_slices(n, slice_rows, spread):
    """Slices of a chain of stages give the rows of the whole, contiguous and in order."""
    data = np.arange(2 * n).reshape(2, n)
    diffs = np.arange(1, n + 1).reshape(1, n) if spread else constant((1,))
    operator = Linear("pick", [linear.PickStage((1, 0)), linear.NegateStage()])
    with patch.object(linear, "SLICE_ROWS", slice_rows):
        (output,) = operator.collector(operator._outputs(Updates(data, constant((0,)), diffs)), operator)
    assert output.data.tolist() == data[[1, 0]].tolist() and output.diffs.tolist() == (-diffs).tolist()
    assert output.data.flags.c_contiguous and output.diffs.flags.c_contiguous
