"""Changes whose effect depends on the present rows are resolved by the workers that own these, without a round trip."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.cluster.rank_commands.time_commands import TimeCommand
from tests.columns.change_model import CHANGES, ROWS, model

HOW = st.sampled_from([(3, None, ("x",)), (3, None, ("y", "z")), (1, None, ("x",)), (2, None, ("x",)), (1, 2, ("x",))])
COLUMNS = ("x", "y", "z")
TRANSACTIONS = st.tuples(st.lists(ROWS, max_size=2), st.lists(CHANGES, min_size=1, max_size=3))


def changed(source, changes, key, order):
    """Apply changes to an input, as a service does."""
    data = np.array([row for row, _ in changes], np.int64).T.copy()
    diffs = np.array([diff for _, diff in changes], np.int64)
    source.change_lanes(data, diffs, COLUMNS[:key], None if order is None else COLUMNS[order])


@settings(max_examples=40, deadline=None)
@given(st.lists(TRANSACTIONS, max_size=3), HOW, st.sampled_from([2, 3]), st.booleans())
def test_changes_agree_with_a_model(clusters, transactions, how, workers, indexed_first):
    """A7.4: several changes within a transaction, beside rows that were inserted without regard to their owners."""
    key, order, indexed = how
    db = clusters(workers)
    source = db.input("changed", key=None if key == 3 else COLUMNS[:key], x=int, y=int, z=int)
    answer = None
    state: set = set()
    try:
        if indexed_first:
            source.keep_by(*indexed)
        answer = source.output("changed rows")
        for inserted, changed_together in transactions:
            new = set(inserted) - state if key == 3 else set()  # rows that are not at their owners
            source.insert(sorted(new))
            state |= new
            for changes in changed_together:
                changed(source, changes, key, order)
                state = model(state, changes, key, order)
            db.advance()
            assert sorted(answer.rows()) == sorted(state)
    finally:
        if answer is not None:
            answer.release()
        source.drop()


def test_changes_are_one_command_with_the_advance(clusters):
    db = clusters(2)
    source = db.input("asked", key="k", k=int, v=int)
    answer = source.output("asked rows")
    for value in range(6):
        before = db.coordinator.last_number
        source.change_lanes(np.array([[1], [value]]), np.array([1]), ("k",), None)
        db.advance()
        assert db.coordinator.last_number == before + 1 or value == 0  # the first change arranges the relation
    assert answer.rows() == [(1, 5)]
    answer.release()
    source.drop()


@pytest.mark.parametrize("kept", [True, False], ids=["query kept", "query released"])
def test_changes_reach_their_owners_again_when_a_worker_dies(tmp_path: Path, kept: bool) -> None:
    """The relation was arranged for a query; new workers arrange it in the same way, also if that query has ended."""
    with kpg.open(tmp_path / "db", workers=2) as db:
        source = db.input("pairs", x=int, y=int)
        by_y = source.arrange("y").count("y").output("by y")
        every = source.output("all")
        rows = np.stack([np.arange(40), np.arange(40) % 7])
        source.change_lanes(rows, np.ones(40, np.int64), ("x", "y"), None)
        db.advance()
        source.change_lanes(rows[:, :10], -np.ones(10, np.int64), ("x", "y"), None)
        source.change_lanes(rows[:, 5:12], np.ones(7, np.int64), ("x", "y"), None)
        if not kept:
            by_y.release()
        os.kill(db.coordinator.members[1].pid, signal.SIGKILL)
        db.advance()
        assert every.rows() == sorted((x, x % 7) for x in range(5, 40))
        assert db.recoveries == 1


def test_rows_that_a_worker_refuses_leave_all_clocks_where_they_were() -> None:
    """The advance may follow the rows in one message; a refusal must not leave the clocks of workers ahead.

    An advance that raises after the clocks have moved has accepted its rows.
    """
    with kpg.open(workers=2, memory_limit=300 << 20) as db:
        source = db.input("load", key="k", k=int, v=int)
        with pytest.raises(kpg.OverBudget):
            for load in range(40):
                keys = np.arange(500_000) + 500_000 * load
                source.insert({"k": keys, "v": keys})
                db.advance()
        assert [reply.value for reply in db.ask(TimeCommand())] == [db.time.elements] * 2
        assert source.size == 500_000 * db.epoch and "load" not in db.pending
