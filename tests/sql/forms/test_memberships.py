"""Long lists of IN and disjunctions of comparisons have the meaning of single comparisons."""

import datetime
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

import kpg
from kpg.sql.lower import constant_memberships

DAY = datetime.date(2024, 1, 1)
ROWS = [
    (number, None if number % 7 == 0 else number % 11, None if number % 5 == 0 else f"t{number % 6}",
     None if number % 9 == 0 else DAY + datetime.timedelta(number % 8))
    for number in range(60)
]  # fmt: skip
INTEGERS = st.integers(-2, 12).map(str) | st.just("null") | st.just("3000000000")
TEXTS = st.integers(0, 8).map(lambda number: f"'t{number}'") | st.just("null")
DATES = st.integers(0, 9).map(lambda number: f"date '{DAY + datetime.timedelta(number)}'") | st.just("null")
LISTS = (
    st.tuples(st.just("a"), st.lists(INTEGERS, min_size=1, max_size=30))
    | st.tuples(st.just("s"), st.lists(TEXTS, min_size=1, max_size=30))
    | st.tuples(st.just("d"), st.lists(DATES, min_size=1, max_size=30))
)


@cache
def table():
    """Return a db with the rows."""
    db = kpg.open()
    db.sql("CREATE TABLE t (k bigint PRIMARY KEY, a integer, s text, d date)")
    db.inputs["t"].insert(ROWS)
    db.advance()
    return db


@settings(max_examples=60)
@given(LISTS, LISTS, st.booleans(), st.sampled_from(["{}", "NOT ({})", "({}) IS NULL", "({}) OR 10 / (k - 3) = 1"]))
def test_a_long_list_means_what_its_comparisons_mean(one, two, is_list, form):
    """Whether few comparisons stay comparisons or all become tests of membership makes no difference."""
    terms = [f"{column} IN ({', '.join(values)})" for column, values in (one, two)]
    if not is_list:
        terms = [" OR ".join(f"{value} = {column}" for value in values) for column, values in (one, two)]
    query = f"SELECT k FROM t WHERE {form.format(' OR '.join(terms))} ORDER BY k"
    answers = []
    for least in (2, 10**6):
        constant_memberships.MIN_MEMBERS, before = least, constant_memberships.MIN_MEMBERS
        try:
            answers.append(table().sql(query).rows())
        except kpg.DataError as error:
            answers.append(type(error))
        finally:
            constant_memberships.MIN_MEMBERS = before
    assert answers[0] == answers[1]


def test_a_list_of_thousands_is_one_test():
    values = ", ".join(map(str, range(5, 8_000)))
    found = table().sql(f"SELECT k FROM t WHERE a IN ({values})").rows()
    assert len(found) == sum((row[1] or 0) >= 5 for row in ROWS)
