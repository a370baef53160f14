"""Random typed expressions over the columns in scope, which do not fail at run time.

`scalars(scope, kind)` generates text of one kind; `conditions(scope)` is the same for Booleans. The rules are a table
of shapes by kind: `{int}` in a shape is an expression of that kind. Numbers stay small enough not to overflow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from tests.sql.generated.tables import Column, literals

Scope = Sequence[Column]
COMPARED = ("int", "numeric", "float", "text", "date", "timestamp", "bool")

SHAPES: dict[str, list[str]] = {
    "int": [
        "({int} + {int})", "({int} - {int})", "({int} * 2)", "(- {int})", "abs({int})", "length({text})",
        "coalesce({int}, {int})", "nullif({int}, {int})", "greatest({int}, {int})", "least({int}, {int})",
        "CASE WHEN {bool} THEN {int} ELSE {int} END", "CASE WHEN {bool} THEN {int} END",
        "CASE {int} WHEN 1 THEN {int} WHEN {int} THEN {int} END",
        "({int} / nullif({int}, 0))", "({int} % nullif({int}, 0))", "({date} - {date})", "CAST({bool} AS int)",
        "extract(year FROM {date})::int", "position({text} IN {text})",
    ],
    "numeric": [
        "({numeric} + {numeric})", "({numeric} - {int})", "({numeric} * {int})", "({numeric} * {numeric})",
        "round({numeric}, 1)", "abs({numeric})", "coalesce({numeric}, {int})", "floor({numeric})", "ceil({numeric})",
        "CASE WHEN {bool} THEN {numeric} ELSE {int} END", "CAST({int} AS numeric(10,1))", "trunc({numeric})",
        "extract(month FROM {timestamp})", "sign({numeric})",
    ],
    "float": [
        "({float} + {int})", "({float} * {float})", "({float} - {numeric})", "CAST({numeric} AS double precision)",
        "coalesce({float}, {float})", "CASE WHEN {bool} THEN {float} END", "abs({float})", "sqrt(abs({float}))",
    ],
    "text": [
        "({text} || {text})", "upper({text})", "lower({text})", "substring({text} FROM 1 FOR 2)", "trim({text})",
        "coalesce({text}, {text})", "CASE WHEN {bool} THEN {text} ELSE {text} END", "CAST({int} AS text)",
        "replace({text}, 'a', 'xy')", "nullif({text}, {text})", "left({text}, 1)", "reverse({text})",
        "concat({text}, {int})", "CAST({numeric} AS text)", "to_char({date}, 'YYYY-MM-DD')",
    ],
    "bool": [
        "({bool} AND {bool})", "({bool} OR {bool})", "(NOT {bool})", "({bool} IS NULL)", "({bool} IS NOT TRUE)",
        "({int} = {int})", "({int} < {int})", "({numeric} >= {int})", "({float} <= {numeric})", "({text} <> {text})",
        "({text} < {text})", "({date} < {timestamp})", "({int} IS NULL)", "({text} IS NOT NULL)",
        "({int} IS DISTINCT FROM {int})", "({text} IS NOT DISTINCT FROM {text})", "({int} BETWEEN {int} AND {int})",
        "({numeric} NOT BETWEEN {int} AND {numeric})", "({int} IN ({int}, {int}, NULL))",
        "({text} NOT IN ('a', {text}))",
        "({text} LIKE 'a%')", "({text} NOT LIKE '_')", "({text} ILIKE 'B%')", "({text} ~ '^[ab]+$')",
        "(({int}, {text}) = ({int}, {text}))", "coalesce({bool}, {bool})",
    ],
    "date": [
        "({date} + CAST({int} AS int))", "CAST({timestamp} AS date)", "coalesce({date}, {date})",
        "greatest({date}, {date})",
        "CASE WHEN {bool} THEN {date} END",
    ],
    "timestamp": [
        "({timestamp} + interval '1 day')", "date_trunc('month', {timestamp})", "CAST({date} AS timestamp)",
        "({timestamp} - interval '1 month')", "coalesce({timestamp}, {timestamp})",
    ],
}  # fmt: skip
HOLE = re.compile(r"\{(\w+)\}")


@st.composite
def scalars(draw: st.DrawFn, scope: Scope, kind: str, depth: int = 2) -> str:
    """Generate an expression of a kind."""
    columns = [column.sql for column in scope if column.kind == kind]
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        leaf = st.sampled_from(columns) if columns else literals(kind)
        return draw(st.one_of(leaf, leaf, leaf, literals(kind)))
    shape = draw(st.sampled_from(SHAPES[kind]))
    return HOLE.sub(lambda hole: draw(scalars(scope, hole[1], depth - 1)), shape)


def completed(draw: st.DrawFn, shape: str, holes: dict[str, st.SearchStrategy[str]]) -> str:
    """Return a shape with its holes filled: each occurrence is drawn anew."""
    return HOLE.sub(lambda hole: draw(holes[hole[1]]), shape)


def conditions(scope: Scope, depth: int = 2) -> st.SearchStrategy[str]:
    """Generate a condition."""
    return scalars(scope, "bool", depth)


@st.composite
def any_scalar(draw: st.DrawFn, scope: Scope, depth: int = 1) -> Column:
    """Generate an expression of any kind that can be compared, grouped and ordered."""
    kind = draw(st.sampled_from(COMPARED))
    return Column(draw(scalars(scope, kind, depth)), kind)


@st.composite
def select_lists(draw: st.DrawFn, scope: Scope, min_size: int = 1, max_size: int = 3) -> list[Column]:
    """Generate the expressions of a select list."""
    return [draw(any_scalar(scope)) for _ in range(draw(st.integers(min_size, max_size)))]


def listed(columns: Sequence[Column]) -> str:
    """Return a select list with names c0, c1, …"""
    return ", ".join(f"{column.sql} AS c{number}" for number, column in enumerate(columns))


def outputs(columns: Sequence[Column], alias: str) -> list[Column]:
    """Return the columns that a query with this select list has, for a query around it."""
    return [Column(f"{alias}.c{number}", column.kind) for number, column in enumerate(columns)]
