"""What changes mean: each semantics against a plain model, whole transactions at a time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kpg.columns.resolve_changes import resolve_changes
from tests.columns.change_model import CHANGES, model


@settings(max_examples=150, deadline=None)
@given(st.lists(CHANGES, max_size=4), st.sampled_from([(3, None), (1, None), (2, None), (1, 2)]))
def test_resolved_changes_agree_with_a_model(transactions, how):
    """A7.4: distinct, cardinality one and last write wins."""
    key, order = how
    state: set = set()
    for changes in transactions:
        rows = np.array([row for row, _ in changes], np.int64).T.copy()
        touched = {row[:key] for row, _ in changes}
        there = sorted(row for row in state if row[:key] in touched)
        updates = resolve_changes(
            np.array(there, np.int64).reshape(-1, 3).T.copy(), rows, np.array([diff for _, diff in changes], np.int64),
            list(range(key)), None if order is None else (order,),
        )  # fmt: skip
        expected = model(state, changes, key, order)
        diffs = np.broadcast_to(updates.diffs[0], len(updates)).tolist()
        moved = dict(zip(map(tuple, updates.data.T.tolist()), diffs, strict=True))
        assert moved == {**dict.fromkeys(expected - state, 1), **dict.fromkeys(state - expected, -1)}
        state = expected
