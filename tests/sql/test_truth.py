"""The comparison of answers finds differences, and only those."""

import datetime
from decimal import Decimal

import pytest

from tests.sql.truth.compare import difference
from tests.sql.truth.postgres import Refusal, Span

SAME = [
    (["int4"], [(1,), (None,), (1,)], [(1,), (1,), (None,)]),
    (["float8"], [(0.1 + 0.2,), (float("nan"),), (-0.0,)], [(0.3,), (float("nan"),), (0.0,)]),
    (["numeric"], [(Decimal("1.3333333333333333"),)], [(Decimal("1.33333333333333333333"),)]),
    (["numeric"], [(Decimal("40107.553725490196"),)], [(Decimal("40107.5537254901960784"),)]),
    (["numeric"], [(Decimal("1"),), (Decimal("2.50"),)], [(Decimal("2.50"),), (Decimal("1.00"),)]),
    (["interval"], [(Span(0, 1, 5),)], [(datetime.timedelta(days=1, microseconds=5),)]),
    (["jsonb"], [({"a": "1.50", "b": None},)], [('{"b": null, "a": 1.50}',)]),
    (["int4[]", "text"], [([1, None], "a")], [([1, None], "a")]),
    (["bpchar(3)"], [("a  ",)], [("a",)]),
    (["text", "float8"], [("a", 1.0), ("a", 2.0)], [("a", 2.0 + 1e-15), ("a", 1.0)]),
]
DIFFERENT = [
    (["int4"], [(1,), (1,)], [(1,)]),
    (["int4"], [(1,)], [(None,)]),
    (["text"], [("a",)], [("a ",)]),
    (["numeric"], [(Decimal("1.50"),)], [(Decimal("1.5"),)]),
    (["numeric"], [(Decimal("1.50"),)], [(Decimal("1.51"),)]),
    (["numeric"], [(Decimal("0.3333333333333333"),)], [(Decimal("0.3333333333333353"),)]),
    (["float8"], [(1.0,)], [(1.0 + 1e-11,)]),
    (["float8"], [(1.0,), (2.0,)], [(1.0,), (1.0,)]),
    (["float8"], [(float("inf"),)], [(1.0,)]),
    (["interval"], [(Span(1, 0, 0),)], [(Span(0, 30, 0),)]),
    (["int4[]"], [([1, 2],)], [([2, 1],)]),
]


@pytest.mark.parametrize(("types", "left", "right"), SAME)
def test_equal_multisets_do_not_differ(types, left, right):
    assert difference(left, right, types) is None


@pytest.mark.parametrize(("types", "left", "right"), DIFFERENT)
def test_other_multisets_differ(types, left, right):
    assert difference(left, right, types) is not None


@pytest.mark.parametrize("value", [1.0, Decimal(1), True])
def test_an_integer_is_an_int(value):
    with pytest.raises(AssertionError):
        difference([(1,)], [(value,)], ["int4"])


def test_postgresql_gives_values_that_keep_everything(postgres):
    answer = postgres.rows("SELECT 1.50 AS n, interval '1 mon 2 days 3 s' i, '[1.0]'::jsonb j, ARRAY[1, NULL] a")
    assert answer.rows == [(Decimal("1.50"), Span(1, 2, 3_000_000), ["1.0"], [1, None])]
    assert answer.names == ("n", "i", "j", "a") and answer.types == ("numeric", "interval", "jsonb", "int4[]")
    assert str(answer.rows[0][0]) == "1.50"


def test_postgresql_gives_the_sqlstate_of_a_refusal(postgres):
    for statement, sqlstate in {"SELECT 1 / 0": "22012", "SELECT nothing": "42703", "SELEC": "42601"}.items():
        refusal = postgres.sql(statement)
        assert isinstance(refusal, Refusal) and refusal.sqlstate == sqlstate
    assert postgres.checked("SELECT 1 + true").sqlstate == "42883" and postgres.checked("SELECT 1") is None


def test_postgresql_orders_text_by_code_point(postgres):
    rows = postgres.rows("SELECT t FROM (VALUES ('a'), ('B'), ('é'), ('_')) AS v(t) ORDER BY t").rows
    assert [text for (text,) in rows] == ["B", "_", "a", "é"]
