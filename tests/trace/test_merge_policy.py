"""The merge policy: levels, fuel and idle work."""

import pytest

from kpg.errors import InputError
from kpg.trace.merge_policy import DEFAULT, PRESETS, MergePolicy, policy_for


def test_a_batch_belongs_to_the_lowest_level_that_holds_it():
    policy = MergePolicy(tail_rows=4)
    for rows in range(1, 200):
        level = policy.level_of(rows)
        assert rows <= policy.level_capacity(level)
        assert level == 0 or rows > policy.level_capacity(level - 1)


@pytest.mark.parametrize("effort", ["eager", "default", "lazy"])
def test_a_merge_is_done_before_the_next_batch_enters_its_level(effort):
    """A3.11: a merge at level k reads at most two full batches, and receives at least that much fuel."""
    policy = PRESETS[effort]
    for level in range(20):
        assert policy.fuel_before_level(level) >= 2 * policy.level_capacity(level)


def test_busy_advances_get_idle_work_now_and_then_and_idle_advances_always():
    assert DEFAULT.fuel_after_advance(0) == DEFAULT.idle_fuel
    fuels = [DEFAULT.fuel_after_advance(busy) for busy in range(1, 2 * DEFAULT.busy_interval + 1)]
    assert [fuel for fuel in fuels if fuel] == 2 * [DEFAULT.busy_fuel]
    assert fuels[DEFAULT.busy_interval - 1] == DEFAULT.busy_fuel


def test_presets_differ_only_in_fuel_and_in_completing_merges():
    """A3.12."""
    assert PRESETS["eager"] == MergePolicy(completes_merges=True)
    assert PRESETS["default"] == MergePolicy()
    assert PRESETS["lazy"] == MergePolicy(fuel_per_row=4)


def test_an_unknown_effort_is_an_error_that_lists_the_presets():
    with pytest.raises(InputError, match="there is no effort 'keen'") as raised:
        policy_for("keen")
    assert raised.value.hint == "Use one of: eager, default, lazy."
