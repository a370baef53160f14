"""Pending rows have one owner, which can return to an earlier state until the clock moves."""

import numpy as np
import pytest

import kpg
from kpg.algebra.frontier import Frontier
from kpg.api.pending_rows import PendingRows
from kpg.columns.updates import Updates, constant

NOW, LATER = Frontier.at((3,)), Frontier.at((4,))


def one_row(value: int, time: int = 3) -> Updates:
    """An update of one row."""
    return Updates(np.array([[value]]), constant((time,)), constant((1,)))


def values(pending: PendingRows, name: str) -> list[int]:
    """The values of an input's pending rows, in order."""
    return [int(updates.data[0, 0]) for updates in pending.of(name)]


@pytest.fixture
def pending() -> PendingRows:
    rows = PendingRows(coordinates=1)
    rows.add("a", one_row(1))
    rows.add("b", one_row(2))
    rows.add("a", one_row(3, time=5))
    return rows


def test_rows_are_kept_by_input_in_the_order_of_insertion(pending):
    assert list(pending) == ["a", "b"] and len(pending) == 2
    assert values(pending, "a") == [1, 3] and values(pending, "b") == [2]
    assert "a" in pending and "c" not in pending and values(pending, "c") == []


def test_taken_rows_are_no_longer_pending(pending):
    assert len(pending.take("a")) == 2
    assert list(pending) == ["b"] and pending.take("a") == []
    assert pending.latest("a") == (5,), "the latest time outlives the rows"


def test_the_latest_time_is_the_join_of_all_times(pending):
    assert pending.latest("a") == (5,) and pending.latest("b") == (3,) and pending.latest("c") == (0,)


def test_restoring_a_mark_drops_exactly_the_later_rows(pending):
    mark = pending.mark(NOW)
    pending.add("a", one_row(4, time=9))
    pending.add("c", one_row(5))
    pending.restore(mark, NOW)
    assert list(pending) == ["a", "b"] and values(pending, "a") == [1, 3]
    assert pending.latest("a") == (5,) and pending.latest("c") == (0,)


def test_a_mark_can_be_restored_twice(pending):
    mark = pending.mark(NOW)
    for value in (6, 7):
        pending.add("b", one_row(value, time=8))
        pending.restore(mark, NOW)
        assert values(pending, "b") == [2] and pending.latest("b") == (3,)


def test_rows_cannot_be_undone_once_the_clock_has_moved(pending):
    mark = pending.mark(NOW)
    pending.take("a")
    pending.take("b")
    pending.add("a", one_row(8, time=4))
    pending.restore(mark, LATER)
    assert values(pending, "a") == [8]


def test_a_forgotten_input_leaves_nothing_behind(pending):
    pending.forget("a")
    assert list(pending) == ["b"] and pending.latest("a") == (0,)


def test_discarding_keeps_only_the_latest_times(pending):
    pending.discard()
    assert not pending and pending.latest("a") == (5,)


def test_a_failed_transaction_undoes_only_its_own_rows():
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output()
        rows.insert([(1,)])

        def fill(db):
            db["rows"].insert([(2,)])
            raise RuntimeError("no")

        with pytest.raises(RuntimeError):
            db.transact(fill)
        assert list(db.pending) == ["rows"]
        db.advance()
        assert answer.rows() == [(1,)] and not db.pending
