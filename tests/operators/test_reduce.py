"""The reduction as an operator: what it keeps pending, what it may take for granted (A5.10, A5.11, A5.12)."""

import kpg


def test_a_retraction_that_had_to_wait_is_not_taken_for_an_insertion():
    """A5.10: at (2, 2) nothing arrives; it is the join of times at which rows came and went."""
    with kpg.open(history=None, coordinates=2) as db:
        rows = db.input("rows", x=int)
        there = rows.distinct().output()
        for time, diff, until in [
            ((1, 0), 1, None),
            ((2, 0), -1, (0, 1)),
            ((0, 1), 1, (0, 2)),
            ((1, 2), -1, (2, 2)),
            ((2, 2), 0, (3, 3)),
        ]:
            rows.update_at([(7,)], time, diff)
            if until is not None:
                db.advance_to(until)
        assert there.snapshot(as_of=(2, 2)).num_rows == 0
        assert there.snapshot(as_of=(2, 1)).num_rows == 1
