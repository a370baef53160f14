"""LIKE with a constant pattern fails on no row if the pattern is whole, so its filter may go below a join."""

from hypothesis import given
from hypothesis import strategies as st

import kpg
from kpg.sql.functions.resolve import resolve
from kpg.sql.relational.scalars import Constant, ScalarCall
from kpg.sql.rewrites.scalar_properties import is_like_of_constant
from kpg.sql.sql_types import BOOLEAN, TEXT
from tests.sql.truth.postgres import Answer


def like(pattern: str) -> ScalarCall:
    """Return 'a' LIKE pattern."""
    arguments = tuple(Constant(value, type=TEXT) for value in ("a", pattern))
    return ScalarCall(resolve("~~", (TEXT, TEXT)).function, arguments, type=BOOLEAN)


def test_a_valid_pattern_fails_on_no_text(postgres):
    failures = set()

    @given(st.text("a%_\\", max_size=6))
    def holds(pattern):
        answers = [postgres.sql(f"SELECT '{text}' LIKE '{pattern}'") for text in ("", "a", "aa", "a\\", "\\", "aaaa")]
        valid = is_like_of_constant(like(pattern))
        failures.add(valid)
        assert not valid or all(isinstance(answer, Answer) for answer in answers)

    holds()
    assert failures == {True, False}


def test_a_filter_by_pattern_goes_below_a_join():
    with kpg.open() as db:
        db.sql("CREATE TABLE part (id INT PRIMARY KEY, name VARCHAR(9))")
        db.sql("CREATE TABLE line (part INT, n INT)")
        plan = str(db.sql("EXPLAIN SELECT n FROM part, line WHERE part = id AND name LIKE '%green%'")).splitlines()
        join, condition = (next(line for line in plan if word in line) for word in ("Join inner", "%green%"))
        assert plan.index(condition) > plan.index(join)
