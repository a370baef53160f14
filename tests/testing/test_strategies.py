"""The strategies generate what they promise."""

from hypothesis import given
from hypothesis import strategies as st

from kpg.testing.model import accumulate, times_to_check
from kpg.testing.strategies import (
    advances,
    batch_cuts,
    depths,
    histories,
    interleavings,
    rows,
    schedules,
    sealed_batches,
    updates,
)


@given(st.data(), st.lists(st.integers()))
def test_cuts_keep_all_items_in_order(data, items):
    assert [item for piece in data.draw(batch_cuts(items)) for item in piece] == items


@given(st.data(), st.lists(st.integers(0, 3), min_size=1, max_size=3))
def test_a_schedule_gives_each_source_its_steps(data, sizes):
    schedule = data.draw(schedules(*sizes))
    assert [schedule.count(source) for source in range(len(sizes))] == sizes


@given(interleavings("abc", "xy"))
def test_an_interleaving_keeps_the_order_of_each_sequence(played):
    assert [item for source, item in played if source == 0] == ["a", "b", "c"]
    assert [item for source, item in played if source == 1] == ["x", "y"]


@given(depths().flatmap(lambda depth: histories(rows(1), depth)))
def test_a_history_never_goes_negative(stream):
    for at in times_to_check(stream):
        assert all(count > 0 for count in accumulate(stream, at).values())


@given(st.data(), depths())
def test_sealed_batches_hold_each_update_once_in_its_interval(data, depth):
    """The upper of a batch is the lower of the next, and each time is in its interval."""
    stream = data.draw(updates(rows(1), depth))
    batches = data.draw(sealed_batches(stream, depth))
    assert sorted(update for _, _, held in batches for update in held) == sorted(stream)
    assert [upper for _, upper, _ in batches][:-1] == [lower for lower, _, _ in batches][1:]
    assert all(lower.precedes(upper) for lower, upper, _ in batches)


@given(depths().flatmap(advances))
def test_an_advancing_frontier_never_closes(steps):
    assert all(steps)
