"""Changes that nobody reads: kept within bounds, and at a bounded cost."""

from collections import Counter

import kpg
from kpg.api import output


def total(changes):
    """Rows with their counts."""
    sums = Counter()
    for row, _, diff in changes:
        sums[row] += diff
    return Counter({row: n for row, n in sums.items() if n})


def test_unread_changes_are_summed_up_and_each_row_only_a_few_times(monkeypatch):
    """A2.9: an answer larger than the limit does not make every later transaction pay for all of it."""
    monkeypatch.setattr(output, "CHANGES_LIMIT", 100)
    summed = []
    plain = output.consolidate
    monkeypatch.setattr(output, "consolidate", lambda updates: summed.append(len(updates)) or plain(updates))
    with kpg.open() as db:
        rows = db.input("rows", x=int)
        answer = rows.output("answer")
        rows.insert([(x,) for x in range(500)])
        db.advance()
        for x in range(1000):
            rows.insert([(x,)])
            rows.remove([((x * 7) % 500,)] if x < 500 else [(x,)])
            db.advance()
        assert sum(summed) < 10 * 2500, "linear in what came, not its square"
        assert total(answer.changes()) == Counter(row for row in answer.rows())
        assert list(answer.changes()) == []


def test_unread_changes_that_cancel_take_no_room(monkeypatch):
    monkeypatch.setattr(output, "CHANGES_LIMIT", 100)
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
