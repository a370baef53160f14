"""Loads of several workers: what a batcher returns, in any order of rows, whoever sends what and when."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kpg.algebra.frontier import Frontier
from kpg.columns.consolidation import consolidate
from kpg.columns.packed_updates import pack_updates
from kpg.columns.updates import Updates, constant
from kpg.operators import worker_loads
from kpg.operators.worker_loads import WorkerLoads
from kpg.trace.batcher import Batcher

SENDERS = 3
messages = st.lists(
    st.tuples(
        st.integers(0, SENDERS - 1),
        st.integers(0, 2),
        st.lists(st.tuples(st.integers(0, 4), st.sampled_from([1, 1, 2, -1])), min_size=1, max_size=8),
        st.booleans(),
        st.booleans(),
    ),
    max_size=8,
)


def updates_of(sender, time, rows, sort, pack):
    """Rows that only this sender has: their first lane is its number, modulo the number of senders."""
    values, diffs = np.array([rows]).T.reshape(2, -1)
    updates = Updates(np.stack([SENDERS * values + sender, values]), constant((time,)), diffs[None].copy())
    updates = consolidate(updates) if sort else updates
    return (pack_updates(updates) if pack else None) or updates


@given(messages, st.integers(0, 3))
def test_a_seal_returns_what_a_batcher_returns(sent, upper):
    least, worker_loads.MIN_LOAD_ROWS = worker_loads.MIN_LOAD_ROWS, 2
    try:
        plain = Batcher(2, 1)
        loads = WorkerLoads(2, 1, lambda updates: int(updates.data[0, 0]) % SENDERS)
        for sender, time, rows, sort, pack in sent:
            for batcher in (plain, loads):
                updates = updates_of(sender, time, rows, sort, pack)
                batcher.push(updates, updates.consolidated)
        for frontier in (Frontier.at((upper,)), Frontier.at((9,))):
            sealed, expected = loads.seal(frontier), plain.seal(frontier)
            assert as_rows(consolidate(sealed)) == as_rows(expected)
            assert len(sealed) == len(expected) and loads.is_empty == plain.is_empty
        assert loads.rows == 0 and loads.nbytes == plain.nbytes
    finally:
        worker_loads.MIN_LOAD_ROWS = least


def as_rows(updates):
    times = np.broadcast_to(updates.times, (1, len(updates)))
    diffs = np.broadcast_to(updates.diffs, (1, len(updates)))
    return np.concatenate([updates.data, times, diffs]).T.tolist()
