"""The reduction as an operator: what it keeps pending, what it may take for granted (A5.10, A5.11, A5.12)."""

import kpg


def test_a_retraction_that_had_to_wait_is_not_taken_for_an_insertion():
    """A5.10: at (2, 2) nothing arrives; it is the join of times at which rows came and went."""
    with kpg.open(coordinates=2) as db:
        rows = db.input("rows", x=int)
        there = rows.distinct().output()
        for time, diff, until in [
            ((1, 0), 1, (0, 0)),
            ((2, 0), -1, (0, 1)),
            ((0, 1), 1, (0, 2)),
            ((1, 2), -1, (2, 2)),
        ]:
            rows.update_at([(7,), (8,)] if diff > 0 else [(7,)], time, diff)
            db.advance_to(until)
            db.idle()
        db.advance_to((3, 3))
        assert there.rows(as_of=(2, 2)) == [(8,)]
