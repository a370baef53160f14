"""Few updates of several messages are joined; nothing is lost, and their times bound them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.order import less_equal
from kpg.columns.updates import Updates, spread
from kpg.dataflow.operator import Message
from kpg.operators import payload
from kpg.operators.payload import joined_updates

rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3)), max_size=6)


def updates_from(drawn):
    """Return updates of one lane, at times of two coordinates."""
    columns = np.array(drawn, dtype=np.int64).reshape(-1, 3).T.copy()
    return Updates(columns[:1], columns[1:], np.ones((1, len(drawn)), np.int64))


def rows_of(updates):
    return sorted(map(tuple, np.concatenate([updates.data, spread(updates.times, len(updates))]).T.tolist()))


@given(st.lists(rows, max_size=8), st.integers(1, 8))
def test_joined_messages_have_the_same_updates_and_times_that_bound_them(drawn, few):
    messages = [Message(tuple((t, r) for _, t, r in part), updates_from(part)) for part in drawn]
    before, payload.FEW_ROWS = payload.FEW_ROWS, few
    try:
        joined = list(joined_updates(messages))
    finally:
        payload.FEW_ROWS = before
    assert sorted(row for updates, _ in joined for row in rows_of(updates)) == sorted(map(tuple, sum(drawn, [])))
    for updates, times in joined:
        assert len(updates)
        assert all(any(less_equal(time, (t, r)) for time in times) for _, t, r in rows_of(updates))


def test_a_lagging_operator_takes_small_messages_as_one_and_large_ones_as_they_are():
    small = [Message(((epoch, 0),), updates_from([(epoch, epoch, 0)])) for epoch in range(5)]
    large = Message(((7, 0),), updates_from([(1, 7, 0)] * (payload.FEW_ROWS + 1)))
    joined = list(joined_updates([*small[:3], large, *small[3:]]))
    assert [len(updates) for updates, _ in joined] == [payload.FEW_ROWS + 1, 5]
    assert joined[0][0] is large.payload and joined[1][1] == ((0, 0),)
