"""Random subqueries of every kind in every place, correlated or not, up to two levels deep.

`subquery_conditions` gives a condition with EXISTS, IN, NOT IN, ANY, ALL or a scalar subquery; the scope that it gets
is visible inside, so that it correlates by equality, inequality, or in its select list.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.sql.generated.expressions import Scope, completed, conditions, listed, scalars, select_lists
from tests.sql.generated.grouped_queries import aggregates
from tests.sql.generated.sources import Source, derived_tables, items, joins, tables
from tests.sql.generated.tables import Column

CONDITIONS = [
    "EXISTS ({rows})",
    "NOT EXISTS ({rows})",
    "{value} IN ({column})",
    "{value} NOT IN ({column})",
    "{value} = ANY ({column})",
    "{value} < ALL ({column})",
    "{value} >= ANY ({column})",
    "{value} <> ALL ({column})",
    "{value} < ({scalar})",
    "({scalar}) IS NULL",
    "({value}, {value}) IN ({pair})",
]


@st.composite
def subquery_conditions(draw: st.DrawFn, scope: Scope, depth: int = 1, alias: str = "q") -> str:
    """Generate a condition on a subquery."""
    kind = draw(st.sampled_from(["int", "text", "numeric"]))
    shape = draw(st.sampled_from(CONDITIONS))
    holes = {
        "value": scalars(scope, kind, 1),
        "rows": inner_queries(scope, kind, depth, alias),
        "column": inner_queries(scope, kind, depth, alias),
        "scalar": scalar_subqueries(scope, kind, depth, alias),
        "pair": inner_queries(scope, kind, depth, alias, width=2),
    }
    return f"({completed(draw, shape, holes)})"


@st.composite
def inner_queries(draw: st.DrawFn, scope: Scope, kind: str, depth: int, alias: str, width: int = 1) -> str:
    """Generate a subquery with columns of one kind, of any number of rows."""
    source = draw(tables(alias))
    seen = [*source.scope, *scope]
    columns = [Column(draw(scalars(seen if draw(st.booleans()) else source.scope, kind, 1)), kind)] * width
    where = draw(inner_conditions(source, scope, depth, alias))
    return f"SELECT {listed(columns)} FROM {source.sql} WHERE {where}"


@st.composite
def scalar_subqueries(draw: st.DrawFn, scope: Scope, kind: str, depth: int = 1, alias: str = "q") -> str:
    """Generate a subquery of exactly one row: an aggregate of an inner column."""
    source = draw(tables(alias))
    shape = {"int": "count(*)", "numeric": "sum({})", "text": "max({})"}[kind]
    value = shape.format(draw(scalars(source.scope, kind, 1)))
    if kind == "int" and draw(st.booleans()):
        value = f"max({draw(scalars([*source.scope, *scope], 'int', 1))} + {source.scope[0].sql} * 0)"
        if source.scope[0].kind != "int":
            value = "count(*)"
    return f"SELECT {value} FROM {source.sql} WHERE {draw(inner_conditions(source, scope, depth, alias))}"


@st.composite
def inner_conditions(draw: st.DrawFn, source: Source, scope: Scope, depth: int, alias: str) -> str:
    """Generate the condition of a subquery: mostly a correlation, sometimes with a subquery of its own."""
    pairs = [(a.sql, b.sql) for a in source.scope for b in scope if a.kind == b.kind and a.kind != "array"]
    parts = []
    if pairs and draw(st.integers(0, 3)):
        inner, outer = draw(st.sampled_from(pairs))
        parts.append(f"{inner} {draw(st.sampled_from(['=', '=', '=', '<', '<>', '>=']))} {outer}")
    if draw(st.booleans()):
        parts.append(draw(conditions([*source.scope, *scope], 1)))
    if depth > 0 and draw(st.integers(0, 2)) == 0:
        parts.append(draw(subquery_conditions([*source.scope, *scope], depth - 1, f"{alias}q")))
    return " AND ".join(parts) or "true"


@st.composite
def filtered_by_subquery(draw: st.DrawFn) -> str:
    """Generate subqueries in WHERE, alone or within AND, OR and NOT."""
    source = draw(st.one_of(items("j0"), joins(max_size=2)))
    shape = draw(
        st.sampled_from(["{sub}", "{sub} AND {c}", "{sub} OR {c}", "NOT {sub}", "{sub} AND {sub}", "{sub} OR {sub}"])
    )
    condition = completed(draw, shape, {"sub": subquery_conditions(source.scope), "c": conditions(source.scope, 1)})
    return f"SELECT {listed(draw(select_lists(source.scope)))} FROM {source.sql} WHERE {condition}"


@st.composite
def selected_subqueries(draw: st.DrawFn) -> str:
    """Generate subqueries in the select list: scalars, conditions, and within CASE."""
    source = draw(items("j0"))
    kind = draw(st.sampled_from(["int", "numeric", "text"]))
    holes = {"scalar": scalar_subqueries(source.scope, kind), "condition": subquery_conditions(source.scope)}
    shapes = ["({scalar})", "{condition}", "CASE WHEN {condition} THEN ({scalar}) END", "coalesce(({scalar}), NULL)"]
    value = completed(draw, draw(st.sampled_from(shapes)), holes)
    return f"SELECT {listed([*draw(select_lists(source.scope)), Column(value, kind)])} FROM {source.sql}"


@st.composite
def subqueries_of_groups(draw: st.DrawFn) -> str:
    """Generate subqueries in HAVING, in the select list of a grouped query, and inside an aggregate."""
    source = draw(tables("j0"))
    key = draw(st.sampled_from(source.scope))
    total = draw(aggregates(source.scope, "int"))
    clause = draw(st.sampled_from(["having", "select", "argument"]))
    group = f"FROM {source.sql} GROUP BY {key.sql}"
    if clause == "having":
        compared = st.builds("{} >= ({})".format, st.just(total.sql), scalar_subqueries([key], "int", 0))
        condition = draw(st.one_of(subquery_conditions([key], 0), compared))
        return f"SELECT {listed([key, total])} {group} HAVING {condition}"
    if clause == "select":
        value = f"({draw(scalar_subqueries([key], 'int', 0))})"
        return f"SELECT {listed([key, Column(value, 'int'), total])} {group}"
    argument = f"sum(({draw(scalar_subqueries(source.scope, 'int', 0))}))"
    return f"SELECT {listed([key, Column(argument, 'int')])} {group}"


@st.composite
def joined_by_subquery(draw: st.DrawFn) -> str:
    """Generate a subquery in the condition of a join."""
    left, right = draw(tables("j0")), draw(tables("j1"))
    scope = [*left.scope, *right.scope]
    kind = draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
    side = draw(st.sampled_from([scope, right.scope]))
    condition = draw(subquery_conditions(side, 0))
    return f"SELECT {listed(draw(select_lists(scope)))} FROM {left.sql} {kind} {right.sql} ON {condition}"


@st.composite
def lateral_joins(draw: st.DrawFn) -> str:
    """Generate LATERAL subqueries: plain, grouped, or the first rows by an order."""
    left = draw(tables("j0"))
    shape = draw(st.sampled_from(["plain", "grouped", "first"]))
    if shape == "plain":
        right = draw(derived_tables("j1", left.scope))
    elif shape == "grouped":
        total = Column(draw(scalar_subqueries(left.scope, "int")).removeprefix("SELECT "), "int")
        value, _, rest = total.sql.partition(" FROM ")
        right = Source(f"(SELECT {value} AS c0 FROM {rest}) AS j1", [Column("j1.c0", "int")])
    else:
        right = draw(first_rows(left.scope))
    on = draw(st.sampled_from(["CROSS JOIN LATERAL {}", "JOIN LATERAL {} ON true", "LEFT JOIN LATERAL {} ON true"]))
    columns = draw(select_lists([*left.scope, *right.scope]))
    return f"SELECT {listed(columns)} FROM {left.sql} {on.format(right.sql)}"


@st.composite
def first_rows(draw: st.DrawFn, outer: Scope) -> Source:
    """Generate the first rows of a table for each outer row, with a total order."""
    inner = draw(tables("j1i"))
    order = draw(st.permutations([column.sql for column in inner.scope]))
    columns = ", ".join(f"{column.sql} AS c{number}" for number, column in enumerate(inner.scope))
    where = draw(inner_conditions(inner, outer, 0, "j1q"))
    text = f"(SELECT {columns} FROM {inner.sql} WHERE {where} ORDER BY {', '.join(order)} LIMIT 2) AS j1"
    return Source(text, [Column(f"j1.c{number}", column.kind) for number, column in enumerate(inner.scope)])
