"""The algebra that queries become: what names and types are resolved to, and how clauses are nested."""

import datetime
from decimal import Decimal
from textwrap import dedent

import pytest

import kpg
from kpg.sql import sql_types
from kpg.sql.relational.references import all_scalars
from kpg.sql.relational.relations import Project, without_order
from kpg.sql.relational.show_relations import literal
from tests.sql.bind.table_catalog import TableCatalog


@pytest.fixture(scope="module")
def catalog():
    return TableCatalog(
        "CREATE TABLE r (id INT PRIMARY KEY, a INT, t TEXT, n NUMERIC(8,2))",
        "CREATE TABLE s (a INT, c BIGINT)",
        "CREATE VIEW described AS SELECT a, count(*) AS many FROM s GROUP BY a",
        "CREATE MATERIALIZED VIEW installed AS SELECT a, sum(c) AS total FROM s GROUP BY a",
        "CREATE VIEW above (x) AS SELECT many FROM described WHERE a > 1",
    )


SHOWN = {
    "SELECT a, t FROM r WHERE n > 1.5 AND t LIKE 'x%'": """
        Project a'2=a, t'2=t
          Filter (n > 1.5) and (t ~~ 'x%')
            Scan r(id, a, t, n)""",
    "SELECT t, count(*) + 1 AS many FROM r GROUP BY t HAVING sum(a) > 1": """
        Project t'3=t'2, many=count + 1
          Filter sum > 1
            Aggregate by (t'2=t) count=count(*), sum=sum(a)
              Scan r(id, a, t, n)""",
    "SELECT r.id FROM r LEFT JOIN s ON s.a = r.a AND s.c > 1": """
        Project id'2=id
          Join left on (a'2 = a) and (c > 1)
            Scan r(id, a, t, n)
            Scan s(a'2, c)""",
    "SELECT id FROM r RIGHT JOIN s USING (a)": """
        Project id'2=id
          Join left on a'2 = a
            Scan s(a, c)
            Scan r(id, a'2, t, n)""",
    "SELECT id FROM r WHERE a IN (SELECT a FROM s WHERE s.c = r.id)": """
        Project id'2=id
          Filter any (a = a'3) in [Project a'3=a'2(Filter c = id(Scan s(a'2, c)))]
            Scan r(id, a, t, n)""",
    "SELECT id, q.m FROM r, LATERAL (SELECT max(c) AS m FROM s WHERE s.a = r.a) AS q": """
        Project id'2=id, m'2=m
          Join dependent inner on true
            Scan r(id, a, t, n)
            Project m=max
              Aggregate by () max=max(c)
                Filter a'2 = a
                  Scan s(a'2, c)""",
    "SELECT DISTINCT ON (t) t, a FROM r ORDER BY t, n DESC": """
        TopRows by (t) order t, key desc limit 1
          Project t=t'2, a'2=a, key=n
            Scan r(id, a, t'2, n)""",
    "SELECT many FROM described WHERE a = 3": """
        Project many'2=many
          Filter a'3 = 3
            Project a'3=a'2, many=count
              Aggregate by (a'2=a) count=count(*)
                Scan s(a, c)""",
    "SELECT total FROM installed": """
        Project total'2=total
          Scan installed(a, total)""",
    "WITH RECURSIVE p(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM p WHERE x < 5) SELECT x FROM p": """
        Project x'4=x'3
          Project x'3=x'2
            Recursion p sum
              Project ?column?=1
                Values() ()
              Project ?column?'2=x + 1
                Filter x < 5
                  VariableScan p(x)
              VariableScan p(x'2)""",
    "WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 9) p (x BIGINT) AS (SELECT c FROM s UNION SELECT y FROM q), "
    "q (y BIGINT) AS (SELECT x + 1 FROM p WHERE x < 5) SELECT y FROM q": """
        Recursion p replace, q replace return at 9
          Union as (c'3)
            Project c'2=c
              Scan s(a, c)
            Project y'2=y
              VariableScan q(y)
          Project ?column?=x + 1
            Filter x < 5
              VariableScan p(x)
          Project y'4=y'3
            VariableScan q(y'3)""",
}  # fmt: skip


@pytest.mark.parametrize("text", SHOWN)
def test_a_query_becomes_algebra(catalog, text):
    assert catalog.show(text) == dedent(SHOWN[text]).strip()


def test_a_common_table_is_bound_once(catalog):
    query = catalog.bind("WITH w AS (SELECT a FROM r) SELECT 1 FROM w AS x, w AS y")
    left, right = (side for side in (query.relation.input.left, query.relation.input.right))
    assert isinstance(left, Project) and isinstance(right, Project)
    assert left.input is right.input and not set(left.columns) & set(right.columns)


def test_an_order_without_a_limit_is_no_part_of_the_relation(catalog):
    query = catalog.bind("SELECT a FROM r ORDER BY n DESC, a")
    assert isinstance(query.relation, Project) and len(query.order) == 2
    assert [key.descending for key in query.order] == [True, False]
    assert len(query.relation.columns) == 2 and len(query.names) == 1  # n is carried for the order
    assert [column.name for column in without_order(query).relation.columns] == ["a"]


PARAMETERS = {
    "int": (5, sql_types.INTEGER),
    "long": (2**40, sql_types.BIGINT),
    "huge": (2**70, sql_types.numeric(22, 0)),
    "least": (-(2**31), sql_types.INTEGER),
    "exact": (Decimal("1.50"), sql_types.numeric(3, 2)),
    "float": (1.5, sql_types.DOUBLE),
    "bool": (True, sql_types.BOOLEAN),
    "string": ("x", sql_types.TEXT),
    "date": (datetime.date(2026, 1, 2), sql_types.DATE),
    "moment": (datetime.datetime(2026, 1, 2), sql_types.TIMESTAMP),
    "zoned": (datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), sql_types.TIMESTAMPTZ),
    "bytes": (b"x", sql_types.BYTEA),
    "list": ([1, 2], sql_types.array_of(sql_types.INTEGER)),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_has_the_type_of_its_value(catalog, name):
    value, expected = PARAMETERS[name]
    (column,) = catalog.bind(f"SELECT :{name}", **{name: value}).relation.columns
    assert column.type == expected


def test_a_string_parameter_takes_the_type_of_its_place(catalog):
    text = catalog.show("SELECT id FROM r WHERE a = :a AND t = $1", a="12", **{"1": "12"})
    assert "= 12)" in text and "= '12')" in text
    with pytest.raises(kpg.UndefinedName, match="there is no parameter b") as caught:
        catalog.bind("SELECT :b", a=1)
    assert caught.value.sqlstate == "42P02"


def test_scalars_know_the_text_that_they_were_written_as(catalog):
    text = "SELECT n / (a - 1) AS ratio FROM r WHERE lower(t) = 'x'"
    query = catalog.bind(text)
    spans = {scalar.span.text() for scalar in all_scalars(query.relation) if scalar.span is not None}
    assert {"n / (a - 1)", "(a - 1)", "lower(t) = 'x'", "lower(t)", "'x'", "n"} <= spans


@pytest.mark.parametrize("text, name", [
    ("SELECT random() FROM r", r"random\(\) in a view"), ("SELECT now()", r"now\(\) in a view"),
    ("SELECT 1 + generate_series(1, 2)", "a function that returns rows"),
    ("SELECT unnest(array_agg(a)) FROM r", "in a query with groups"), ("SELECT r FROM r", "a whole row"),
    ("SELECT (1, 2)", "a row as a value"), ("SELECT (ARRAY[1])[1:2]", "a slice"), ("SELECT current_time", "_time"),
    ("SELECT t COLLATE \"de\" FROM r", "COLLATE de"),
    ("SELECT a FROM r WHERE n < mz_now()", "a temporal filter"), ("SELECT sum(a) OVER w FROM r", "a window function"),
])  # fmt: skip
def test_what_the_binder_lacks_is_refused_by_name(catalog, text, name):
    with pytest.raises(kpg.NotSupported, match=name) as caught:
        catalog.bind(text)
    assert caught.value.sqlstate == "0A000"


def test_an_error_inside_a_view_shows_the_text_of_the_view(catalog):
    catalog.entries.pop("s")
    try:
        with pytest.raises(kpg.UndefinedName, match=r"view described:1:\d+: relation \"s\" does not exist"):
            catalog.bind("SELECT x FROM above")
    finally:
        catalog.create("CREATE TABLE s (a INT, c BIGINT)")


@pytest.mark.parametrize("text, hint", [
    ("SELECT tt FROM r", "Did you mean 't'"), ("SELECT * FROM rr", "Did you mean 'r'"),
    ("SELECT r.idd FROM r", "Did you mean 'id'"), ("SELECT lowr(t) FROM r", "Did you mean 'lower'"),
    ("SELECT a FROM r, s", "Write r.a or s.a"), ("SELECT '1'::tex", "Did you mean 'text'"),
])  # fmt: skip
def test_an_error_names_what_is_near(catalog, text, hint):
    with pytest.raises(kpg.ProgramError) as caught:
        catalog.bind(text)
    assert hint in caught.value.hint and "^" in caught.value.detail


def test_deep_nesting_is_an_error_of_the_statement(catalog):
    for text in (f"SELECT {'(' * 5000}1{')' * 5000}", f"SELECT {' + '.join(['a'] * 5000)} FROM r"):
        with pytest.raises(kpg.ProgramError, match="nested too deeply") as caught:
            catalog.bind(text)
        assert caught.value.sqlstate == "54001"


def test_many_terms_of_logic_and_long_lists_are_not_deep(catalog):
    terms = " OR ".join(f"a = {number}" for number in range(3000))
    assert catalog.bind(f"SELECT id FROM r WHERE {terms}").names == ("id",)
    assert catalog.bind(f"SELECT id FROM r WHERE a IN ({', '.join(map(str, range(3000)))})").names == ("id",)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (0.5, "0.5"),
        (Decimal("1.50"), "1.50"),
        ("it's", "'it''s'"),
        (b"\x01\xff", "'\\x01ff'"),
        (datetime.date(2026, 1, 2), "'2026-01-02'"),
        (datetime.datetime(2026, 1, 2, 3, 4), "'2026-01-02 03:04:00'"),
        ((1, None), "ARRAY[1, null]"),
    ],
)
def test_constants_are_shown_as_sql_writes_them(value: object, text: str) -> None:
    assert literal(value) == text
