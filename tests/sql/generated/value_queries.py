"""Random queries over the rarer types: comparisons, groups, joins, orders and casts of each column."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.sql.generated.tables import LITERALS, RARE

EXTREMES = "SELECT a, min({c}) AS l, max({c}) AS u FROM rare GROUP BY ROLLUP (a)"
WITHOUT_EXTREMES = ("g", "y", "j", "i")  # of i, equal values look different: any of them is right
ORDERED = [column for column in RARE.columns if column != "j"]
SHAPES = [
    "SELECT {c} AS v, a FROM rare",
    "SELECT count(*) AS n, count(DISTINCT {c}) AS d FROM rare GROUP BY {c}",
    "SELECT x.a, y.a AS b FROM rare AS x JOIN rare AS y ON x.{c} = y.{c}",
    "SELECT x.a, y.{c} AS b FROM rare AS x LEFT JOIN rare AS y ON x.{c} = y.{c} AND x.a < y.a",
    "SELECT a FROM rare WHERE {c} = {literal}",
    "SELECT a FROM rare WHERE {c} IS DISTINCT FROM {literal}",
    "SELECT a FROM rare WHERE {c} IN (SELECT {c} FROM rare WHERE a < 2)",
    "SELECT coalesce({c}, {literal}) AS v FROM rare",
    "SELECT CASE WHEN a < 2 THEN {c} ELSE {literal} END AS v FROM rare",
    "SELECT CAST({c} AS text) AS v FROM rare",
    "SELECT count(*) AS n FROM (SELECT DISTINCT {c} FROM rare) AS x",
    "SELECT x.a, (SELECT count(*) FROM rare AS y WHERE y.{c} = x.{c}) AS n FROM rare AS x",
    "SELECT a FROM (SELECT a, {c} AS v FROM rare EXCEPT ALL SELECT a, {literal} FROM rare) AS x",
    "SELECT a FROM rare WHERE {c} NOT IN (SELECT {c} FROM rare WHERE a < 2)",
]
ORDERED_SHAPES = [
    "SELECT a FROM rare WHERE {c} < {literal} OR {c} >= {literal}",
    "SELECT x.a, y.a AS b FROM rare AS x JOIN rare AS y ON x.{c} < y.{c}",
    "SELECT a FROM (SELECT a, {c} AS v FROM rare ORDER BY {c} DESC NULLS LAST, a LIMIT 2) AS x",
    "SELECT a FROM (SELECT DISTINCT ON (a) a, {c} AS v FROM rare ORDER BY a, {c}) AS x",
    "SELECT a, array_agg(a ORDER BY {c}, a) AS v FROM rare GROUP BY a",
    "SELECT a FROM rare WHERE {c} >= ALL (SELECT {c} FROM rare WHERE a < 2)",
    "SELECT greatest({c}, {literal}) AS v FROM rare WHERE a = 1",
]
FUNCTIONS = [
    "SELECT w + 1.5 AS p, w * 2 AS q, w - w AS r, abs(w) AS s, round(w, 2) AS t FROM rare",
    "SELECT sum(w) AS v, min(w) AS l, max(w) AS u, count(w) AS n FROM rare GROUP BY a",
    "SELECT i + i AS p, i * 2 AS q, - i AS r, extract(epoch FROM i) AS s FROM rare",
    "SELECT sum(i) AS v, avg(i) AS m FROM rare GROUP BY a",
    "SELECT sum(i) FILTER (WHERE a > 0) AS v, avg(i) AS m FROM rare",
    "SELECT z + i AS p, z - interval '1 month' AS q, extract(hour FROM z) AS r, date_trunc('day', z) AS s FROM rare",
    "SELECT o + interval '1 hour' AS p, extract(second FROM o) AS q FROM rare",
    "SELECT j -> 'a' AS p, j ->> 'a' AS q, j -> 'b' ->> 0 AS r FROM rare",
    "SELECT length(y) AS p, y || y AS q, encode(y, 'hex') AS r FROM rare",
    "SELECT h || 'x' AS p, length(h) AS q, h = 'a' AS r, h LIKE 'a%' AS s FROM rare",
    "SELECT q + q AS p, q * 2 AS d, q::float8 AS r FROM rare",
    "SELECT date_bin('15 minutes', z, timestamptz '2001-01-01 00:00+00') AS v FROM rare",
    "SELECT DISTINCT extract(epoch FROM i) AS e FROM rare",
]


@st.composite
def value_queries(draw: st.DrawFn) -> str:
    """Generate a query over one column of the table `rare`."""
    shape = draw(st.sampled_from([*SHAPES, *ORDERED_SHAPES, *FUNCTIONS, EXTREMES]))
    columns = ORDERED if shape in ORDERED_SHAPES else list(RARE.columns)
    if shape == EXTREMES:
        columns = [column for column in columns if column not in WITHOUT_EXTREMES]
    column = draw(st.sampled_from(columns))
    return shape.replace("{c}", column).replace("{literal}", draw(st.sampled_from(LITERALS[RARE.kind(column)])))
