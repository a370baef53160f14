"""Linear operators send the output of few rows without slices: the changes, and the errors, are those of slices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg import col, lit
from kpg.operators import linear

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=6)


def changes_of_epochs(epochs: list[tuple[list[tuple[int, int]], int]]) -> list[object]:
    """Return what two answers of linear operators hold after each epoch; for an answer that fails, its error."""
    seen: list[object] = []
    with kpg.open() as db:
        rows = db.input("rows", a=int, b=int)
        moved = rows.select(b=col("b"), sum=col("a") + col("b"), one=lit(1), a=col("a")).filter(col("sum") > 0)
        divided = rows.select(a=col("a"), quotient=lit(6) // col("b"), copy=col("b")).negate().negate()
        answers = [moved.output("moved"), divided.output("divided")]
        for inserted, removed in epochs:
            rows.insert(inserted)
            rows.remove(inserted[:removed])
            db.advance()
            for answer in answers:
                try:
                    seen.append(sorted(answer.rows()))
                except kpg.DataError as error:
                    seen.append(str(error))
    return seen


@given(st.lists(st.tuples(ROWS, st.integers(0, 3)), min_size=1, max_size=4))
def test_few_rows_have_the_output_of_slices(epochs):
    few = changes_of_epochs(epochs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "FEW_ROWS", -1)
        sliced = changes_of_epochs(epochs)
    assert few == sliced
    kept: list[tuple[int, int]] = [row for rows, removed in epochs for row in rows[removed:]]
    assert few[-2] == sorted((b, a + b, 1, a) for a, b in kept if a + b > 0)
    if all(b for _, b in kept):
        assert few[-1] == sorted((a, 6 // b, b) for a, b in kept)
