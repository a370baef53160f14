"""Stages on few rows in one call equal the stages one after the other; other rows and stages are left to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg import col
from kpg.columns.bind import bind
from kpg.columns.table_rows import encode
from kpg.columns.updates import Updates, constant
from kpg.operators import stages_of_few
from kpg.operators.linear import ComputeStage, NegateStage, PickStage
from kpg.operators.stages_of_few import CALLS_BEFORE_FORM, MAX_ROWS, StagesOfFew
from kpg.testing import kernel_twins as twins
from tests.operators.test_loop_program import (
    SCHEMA,
    SYMBOLS,
    Failures,
    conditions,
    floats,
    integers,
    large,
    odd_floats,
    passed_on,
    rows,
    small,
    some_floats,
    stages_of,
)


@pytest.fixture(autouse=True)
def machine_code(monkeypatch):
    """Make forms also in a run in which all kernels are interpreted."""
    monkeypatch.setattr(stages_of_few, "uses_machine_code", lambda: True)


def one_after_the_other(stages, updates):
    """Return the output of the stages, or None if a row fails."""
    failures = Failures()
    for stage in stages:
        if len(updates):
            updates = stage.apply(updates, failures)
    return None if failures.failed else updates


def with_form(stages, updates):
    """Return stages that had rows so often that they have a form for one row."""
    few = StagesOfFew(stages)
    for _ in range(CALLS_BEFORE_FORM - 1):
        assert few.run(updates) is None
    return few


@st.composite
def some_updates(draw, row):
    """Generate up to five updates with constant or varying times and diffs."""
    n = draw(st.integers(1, 5))
    data = encode(SCHEMA, [draw(row) for _ in range(n)], SYMBOLS)
    width, depth = draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 2]))
    blocks = []
    for lanes, values in ((depth, st.integers(0, 3)), (width, st.sampled_from([-1, 1, 5]))):
        columns = draw(st.sampled_from([1, n]))
        blocks.append(np.array([[draw(values) for _ in range(columns)] for _ in range(lanes)], np.int64))
    return Updates(data, *blocks)


@given(
    updates=some_updates(rows(small | large, some_floats | odd_floats)),
    condition=conditions(integers(small | large, True), floats(True)),
    computed=st.lists(integers(small | large, True) | floats(True) | passed_on, min_size=1, max_size=3),
)
def test_few_rows_at_once_equal_stages_one_after_the_other(updates, condition, computed):
    stages = stages_of(condition, computed, False, False)
    found = with_form(stages, updates).run(updates)
    if found is not None:  # else a row fails, or cannot be proven to be small enough
        expected = one_after_the_other(stages, updates)
        assert expected is not None and twins.sorted_rows(found) == twins.sorted_rows(expected)
        assert found.data.flags.c_contiguous and (not len(found) or found.data.shape == expected.data.shape)


@given(
    updates=some_updates(rows(small, some_floats)),
    condition=conditions(integers(small, False), floats(False)),
    computed=st.lists(integers(small, False) | floats(False), min_size=1, max_size=3),
)
def test_few_rows_of_small_numbers_need_no_other_way(updates, condition, computed):
    stages = stages_of(condition, computed, False, False)
    assert with_form(stages, updates).run(updates) is not None


def test_many_rows_and_other_stages_are_left_to_the_stages():
    block = np.zeros((SCHEMA.width, MAX_ROWS + 1), np.int64)
    many = Updates(block, constant((0,)), constant((1,)))
    one = Updates(block[:, :1].copy(), constant((0,)), constant((1,)))
    few = with_form([PickStage((1, 0))], one)
    assert few.run(one) is not None and few.run(many) is None
    assert few.run(Updates(block[:, :2], constant((0,)), constant((1,)))) is None, "its lanes are not adjacent"
    upper = ComputeStage((bind(col("t") + "x", SCHEMA, SYMBOLS),))
    for stage in (NegateStage(), upper):
        few = with_form([stage], one)
        assert few.run(one) is None and few.run(one) is None
