"""An output without a trace still reports that its answer has failed."""

import pytest

import kpg
from kpg import col


def test_changes_of_a_failed_answer_are_refused_until_the_row_is_removed() -> None:
    """Errors are data for outputs without a trace too: the row and reason, then the changes once the row is removed."""
    with kpg.open() as db:
        rows = db.input("rows", a=int, b=int)
        answer = rows.select(c=col("a") // col("b")).output("answer", keep=False)
        rows.insert([(4, 2)])
        db.advance()
        assert list(answer.changes()) == [((2,), 0, 1)]
        rows.insert([(1, 0), (9, 3)])
        db.advance()
        assert answer.failure() is not None
        with pytest.raises(kpg.DataError, match="answer has no answer at 1"):
            answer.take_changes()
        rows.remove([(1, 0)])
        db.advance()
        assert answer.failure() is None
        assert list(answer.changes()) == [((3,), 1, 1)]
