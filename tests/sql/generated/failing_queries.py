"""Random queries that fail on some rows: divisions by zero, values out of range, casts of text that is no number.

The failing expression is in the select list over one table, so PostgreSQL evaluates it for exactly the rows that the
condition leaves. It stands alone or in a branch of CASE and COALESCE, which must not fail if it is not needed.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.sql.generated.expressions import completed, conditions
from tests.sql.generated.sources import Source, tables

FAILING = [
    "1 / {int}",
    "5 % {int}",
    "{numeric} / {int}",
    "{float} / {int}",
    "CAST({text} AS int)",
    "CAST({text} AS numeric)",
    "CAST({text} AS date)",
    "CAST({text} AS boolean)",
    "CAST({int} * 20000 AS smallint)",
    "{int} * 1000000000::int",
    "{int}::int * 2000000000",
    "CAST({int} * 1000 AS numeric(3,0))",
    "sqrt({int}::float8)",
    "ln({numeric})",
    "substring({text} FROM 1 FOR {int}::int)",
    "power({float}, 0.5::float8)",
    "left({text}, 1 / {int}::int)",
    "CAST({float} * 1e300::float8 AS int)",
]
PLACES = [
    "{fails}",
    "CASE WHEN {bool} THEN {fails} END",
    "CASE WHEN {bool} THEN NULL ELSE {fails} END",
    "coalesce({fails}, NULL)",
]


CASTS = {"int": "{}", "numeric": "{}::numeric", "float": "{}::float8", "text": "{}::text"}


def columns(source: Source, kind: str) -> st.SearchStrategy[str]:
    """Generate a column of a kind, or one of integers that is cast.

    PostgreSQL computes expressions of constants before it sees a row, and would fail without any row.
    """
    texts = [column.sql for column in source.scope if column.kind == kind]
    integers = [CASTS[kind].format(column.sql) for column in source.scope if column.kind == "int"]
    return st.sampled_from(texts or integers)


@st.composite
def failing_queries(draw: st.DrawFn) -> str:
    """Generate a query that fails on rows with certain values."""
    source = draw(tables("j0"))
    fails = completed(draw, draw(st.sampled_from(FAILING)), {kind: columns(source, kind) for kind in CASTS})
    clause = draw(st.sampled_from(PLACES))
    value = completed(draw, clause, {"fails": st.just(fails), "bool": conditions(source.scope, 1)})
    return f"SELECT {value} AS c0 FROM {source.sql} WHERE {draw(conditions(source.scope, 1))}"
