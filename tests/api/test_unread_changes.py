"""Unread changes: bounded in memory, and in cost."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.api import unread_changes, unread_parts
from kpg.api.unread_parts import UnreadParts
from kpg.columns.updates import Updates, constant, spread


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


def counted(parts):
    """Return the sum of each row and time."""
    sums = Counter()
    for part in parts:
        times, diffs = (spread(block, len(part))[0].tolist() for block in (part.times, part.diffs))
        for change in zip(part.data[0].tolist(), times, diffs, strict=True):
            sums[change[:2]] += change[2]
    return {key: total for key, total in sums.items() if total}


def by_row(sums, through):
    """Return the sum of each row through an epoch."""
    rows = Counter()
    for (row, time), total in sums.items():
        if time <= through:
            rows[row] += total
    return {row: total for row, total in rows.items() if total}


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([-1, 1])), max_size=5), max_size=40),
    st.integers(1, 8),
    st.sets(st.integers(0, 40), max_size=3),
)
def test_parts_keep_the_changes_of_each_epoch(epochs, joined, reads):
    """However parts are joined, a reader gets each change once, at its time; a sum has all changes up to its epoch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unread_parts, "MAX_SMALL_PARTS", joined)
        parts, taken, made = UnreadParts(), [], []
        for epoch, changes in enumerate(epochs):
            if changes:
                rows, diffs = np.array(changes).T
                made.append(Updates(rows[None].copy(), constant((epoch,)), diffs[None].copy()))
                parts.add(made[-1])
            if epoch in reads:
                taken += parts.take(epoch - 1)
                assert all(time < epoch for _, time in counted(taken))
        assert len(parts) <= len(epochs) // joined + joined and parts.rows == sum(map(len, parts))
        assert counted([*taken, *parts]) == counted(made)
        before, middle = counted(parts), len(epochs) // 2
        parts.sum_through(middle)
        after, summed = counted(parts), parts.summed_through
        assert {key: n for key, n in after.items() if key[1] > middle} == {
            key: n for key, n in before.items() if key[1] > middle
        }
        assert all(time > middle or time == summed for _, time in after)
        assert all(by_row(after, epoch) == by_row(before, epoch) for epoch in range(max(0, summed), len(epochs)))
