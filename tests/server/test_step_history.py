"""The steps that a client may not have received: numbered, bounded, and never with a gap."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kpg.server.change_payload import ChangePayload
from kpg.server.step_history import STEP_BYTES, HeldBytes, StepHistory

EMPTY = ChangePayload(1, 1, 1, pa.table({}))
ACTIONS = st.lists(st.one_of(st.just("append"), st.integers(0, 12)), max_size=30)


@given(ACTIONS, st.integers(0, 6))
def test_a_client_gets_every_step_after_the_one_it_names_or_none(actions, capacity):
    held = HeldBytes(capacity * STEP_BYTES)
    history, forgotten = StepHistory(held), 0
    for action in actions:
        if action == "append":
            history.append(EMPTY, 0.0)
        else:
            history.forget(action)
            forgotten = max(forgotten, min(action, history.last))
    for step in range(history.last + 3):
        steps = history.after(step)
        numbers = None if steps is None else [kept.number for kept in steps]
        expected = list(range(step + 1, history.last + 1))
        assert numbers in (None, expected)
        if forgotten <= step <= history.last and len(expected) <= capacity:
            assert numbers == expected
    assert held.count <= held.limit
    history.clear()
    assert held.count == 0


def test_old_steps_of_a_client_that_never_acknowledges_are_dropped():
    history = StepHistory(HeldBytes(10**6), max_age_seconds=60.0)
    for now in (0.0, 30.0, 70.0):
        history.append(EMPTY, now)
    assert history.after(0) is None and len(history.after(1)) == 2


def test_steps_move_to_the_session_that_continues():
    first, second = HeldBytes(10**6), HeldBytes(10**6)
    history = StepHistory(first)
    history.append(EMPTY, 0.0)
    history.move_to(second)
    assert (first.count, second.count) == (0, STEP_BYTES)
