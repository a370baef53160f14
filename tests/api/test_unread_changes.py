"""Unread changes: bounded in memory, and in cost."""

from collections import Counter

import pytest

import kpg
from kpg.api import unread_changes


def total(changes):
    """Return rows with their counts."""
    sums = Counter()
    for row, _, diff in changes:
        sums[row] += diff
    return Counter({row: n for row, n in sums.items() if n})


@pytest.fixture
def summed(monkeypatch):
    """The number of changes that each summation processed."""
    sizes = []
    plain = unread_changes.consolidate
    monkeypatch.setattr(unread_changes, "consolidate", lambda updates: sizes.append(len(updates)) or plain(updates))
    return sizes


def test_unread_changes_are_summed_and_each_row_only_a_few_times(monkeypatch, summed):
    """A2.9: an answer larger than the limit does not make every later transaction pay for all of it."""
    monkeypatch.setattr(unread_changes, "CHANGES_LIMIT", 100)
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        rows.insert([(x,) for x in range(500)])
        db.advance()
        for x in range(1000):
            rows.insert([(x,)])
            rows.remove([((x * 7) % 500,)] if x < 500 else [(x,)])
            db.advance()
        assert sum(summed) < 10 * 2500, "linear in the changes, not quadratic"
        assert total(answer.changes()) == Counter(row for row in answer.rows())
        assert list(answer.changes()) == []


def test_unread_changes_that_cancel_take_no_memory(monkeypatch):
    monkeypatch.setattr(unread_changes, "CHANGES_LIMIT", 100)
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        for x in range(1000):
            rows.insert([(x,)])
            db.advance()
            rows.remove([(x,)])
            db.advance()
        assert sum(len(updates) for _, updates in answer.unread()) <= 100
        assert total(answer.changes()) == {}


def test_unread_changes_are_bounded_by_the_limit_or_twice_the_total_change(monkeypatch):
    """Beside the trace, the buffer holds at most that many rows, plus the changes of one advance."""
    limit = 100
    monkeypatch.setattr(unread_changes, "CHANGES_LIMIT", limit)
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        rows.insert([(x,) for x in range(300)])
        db.advance()
        answer.take_changes()
        read = set(answer.rows())
        for epoch in range(300):
            rows.insert([(1000 + epoch,), (2000 + epoch,)])
            rows.remove([(2000 + epoch - 1,)] if epoch else [])
            if epoch % 2:
                rows.remove([(epoch,)])
            db.advance()
            held = sum(len(updates) for _, updates in answer.unread())
            net = len(read ^ set(answer.rows()))
            assert held <= max(limit, 2 * net) + 4, (held, net)


def test_changes_of_a_reader_that_keeps_up_are_each_at_their_own_time(monkeypatch):
    """Only a reader that falls behind by more than the limit receives sums, at the latest of the times."""
    monkeypatch.setattr(unread_changes, "CHANGES_LIMIT", 3)
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        prompt, late = rows.output("prompt"), rows.output("late")
        seen = []
        for x in range(5):
            rows.insert([(x,)])
            db.advance()
            seen += prompt.changes()
        assert seen == [((x,), x, 1) for x in range(5)]
        assert sorted(late.changes()) == [((0,), 3, 1), ((1,), 3, 1), ((2,), 3, 1), ((3,), 3, 1), ((4,), 4, 1)]


def test_a_kept_answer_without_readers_sums_nothing_until_the_first_read(monkeypatch, summed):
    """A2.9: its trace already holds all changes since the start; a late listener still receives them."""
    monkeypatch.setattr(unread_changes, "CHANGES_LIMIT", 3)
    with kpg.open() as db:
        rows = db.input("rows", x=int, y=int)
        answer, told = rows.output("answer"), []
        for x in range(20):
            rows.insert([(x, -x)])
            rows.remove([(x - 2, 2 - x)] if x > 1 else [])
            db.advance()
        assert not summed and sum(len(updates) for _, updates in answer.unread()) <= 3
        stop = answer.on_change(told.append)
        rows.insert([(7, 7)])
        db.advance()
        stop()
        assert total(told[0]) == Counter([(18, -18), (19, -19), (7, 7)]) and len(told) == 1
        rows.remove([(7, 7)])
        db.advance()
        assert list(answer.changes()) == [((7, 7), 21, -1)]
