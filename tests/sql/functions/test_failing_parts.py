"""A failure counts only where its value is needed, in any order of terms; its message names what the user wrote."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kpg

VALUES = st.sampled_from(["NULL", "0", "1", "2", "-1"])
LEAVES = st.sampled_from(
    ["x > 0", "y = 1", "10 / x > 2", "10 / y > 2", "x IS NULL", "(y::text || '!')::int = 1", "NULL::boolean"]
)
TERMS = st.one_of(
    LEAVES,
    st.builds("({} AND {})".format, LEAVES, LEAVES),
    st.builds("({} OR {})".format, LEAVES, LEAVES),
    st.builds("NOT ({})".format, LEAVES),
    st.builds("CASE WHEN {} THEN {} ELSE {} END".format, LEAVES, LEAVES, LEAVES),
    st.builds("COALESCE({}, {})".format, LEAVES, LEAVES),
)


@pytest.fixture(scope="module")
def db():
    """A db with a table of one row, which examples replace."""
    with kpg.open() as opened:
        opened.sql("CREATE TABLE r (id INT PRIMARY KEY, x INT, y INT)")
        yield opened


def outcome(db, query: str):
    """Return the rows, or the SQLSTATE of the failure."""
    try:
        return db.sql(query).rows()
    except kpg.DataError as error:
        return error.sqlstate


@given(x=VALUES, y=VALUES, terms=st.lists(TERMS, min_size=2, max_size=2))
def test_the_order_of_terms_does_not_matter(db, x, y, terms):
    db.sql(f"INSERT INTO r VALUES (1, {x}, {y}) ON CONFLICT (id) DO UPDATE SET x = excluded.x, y = excluded.y")
    for junction in (" AND ", " OR "):
        selected = {str(outcome(db, f"SELECT {junction.join(order)} FROM r")) for order in permutations(terms)}
        kept = {str(outcome(db, f"SELECT 1 FROM r WHERE {junction.join(order)}")) for order in permutations(terms)}
        assert len({"failed" if text[0] != "[" else text for text in selected}) == 1, selected
        assert len({"failed" if text[0] != "[" else text for text in kept}) == 1, kept


def test_branches_that_are_not_chosen_do_not_fail(db):
    db.sql("TRUNCATE r")
    db.sql("INSERT INTO r VALUES (1, 0, 2), (2, 5, NULL), (3, NULL, 0)")
    query = """SELECT id, CASE WHEN x = 0 THEN -1 WHEN x IS NULL THEN 10 / y ELSE 10 / x END, COALESCE(y, 10 / x),
                      x <> 0 AND 10 / x > 1, x = 0 OR 10 / x > 1 FROM r WHERE id < 3 ORDER BY id"""
    assert db.sql(query).rows() == [(1, -1, 2, False, True), (2, 2, 2, True, True)]
    assert outcome(db, "SELECT CASE WHEN x IS NULL THEN 10 / y END FROM r WHERE id = 3") == "22012"


def test_a_message_names_the_innermost_expression_that_failed(db):
    db.sql("TRUNCATE r")
    db.sql("INSERT INTO r VALUES (1, 0, 7)")
    with pytest.raises(kpg.DataError) as failure:
        db.sql("SELECT y + (10\n / x) * 2 FROM r")
    message = str(failure.value)
    assert "division by zero in (10 / x)" in message
    assert "query:1:12" in message
    assert "x = 0" in message and "y = 7" not in message
