"""Random set operations, orders with limits, DISTINCT ON, common table expressions and recursion."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.sql.generated.expressions import conditions, listed, outputs, scalars, select_lists
from tests.sql.generated.sources import items, tables
from tests.sql.generated.tables import Column

SET_OPERATORS = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]


@st.composite
def set_operations(draw: st.DrawFn) -> str:
    """Generate two or three queries with columns of the same kinds, combined in any grouping."""
    kinds = draw(st.lists(st.sampled_from(["int", "numeric", "text", "bool", "date"]), min_size=1, max_size=2))
    terms = [draw(terms_of(kinds, f"j{number}")) for number in range(draw(st.integers(2, 3)))]
    operators = [draw(st.sampled_from(SET_OPERATORS)) for _ in terms[1:]]
    text = terms[0]
    for operator, term in zip(operators, terms[1:], strict=True):
        text = f"{text} {operator} {term}" if draw(st.booleans()) else f"({text}) {operator} ({term})"
    return text


@st.composite
def terms_of(draw: st.DrawFn, kinds: list[str], alias: str) -> str:
    """Generate a query with columns of given kinds."""
    source = draw(tables(alias))
    columns = [Column(draw(scalars(source.scope, kind, 1)), kind) for kind in kinds]
    return f"SELECT {listed(columns)} FROM {source.sql} WHERE {draw(conditions(source.scope, 1))}"


@st.composite
def limited_queries(draw: st.DrawFn) -> str:
    """Generate ORDER BY … LIMIT … OFFSET with a total order."""
    source = draw(items("j0"))
    columns = draw(select_lists(source.scope))
    limit = f" LIMIT {draw(st.integers(0, 4))}" + draw(st.sampled_from(["", " OFFSET 1", " OFFSET 3"]))
    return f"SELECT {listed(columns)} FROM {source.sql} ORDER BY {draw(total_orders(len(columns)))}{limit}"


@st.composite
def ordered_queries(draw: st.DrawFn) -> str:
    """Generate ORDER BY of all columns, with or without a limit: its rows have one order."""
    source = draw(items("j0"))
    columns = draw(select_lists(source.scope))
    limit = draw(st.sampled_from(["", " LIMIT 2", " OFFSET 1"]))
    return f"SELECT {listed(columns)} FROM {source.sql} ORDER BY {draw(total_orders(len(columns)))}{limit}"


@st.composite
def total_orders(draw: st.DrawFn, columns: int) -> str:
    """Generate an order by all output columns, in any direction."""
    names = draw(st.permutations([f"c{number}" for number in range(columns)]))
    directions = ["", " ASC", " DESC", " NULLS FIRST", " DESC NULLS LAST"]
    return ", ".join(name + draw(st.sampled_from(directions)) for name in names)


@st.composite
def distinct_on(draw: st.DrawFn) -> str:
    """Generate DISTINCT ON with an order that decides which row stays."""
    source = draw(items("j0"))
    key = draw(st.sampled_from(source.scope))
    columns = [key, *draw(select_lists(source.scope))]
    rest = ", ".join(f"c{number}" for number in range(1, len(columns)))
    return f"SELECT DISTINCT ON ({key.sql}) {listed(columns)} FROM {source.sql} ORDER BY {key.sql}, {rest}"


@st.composite
def common_tables(draw: st.DrawFn) -> str:
    """Generate a CTE that is used twice: it is joined with itself, or with another CTE over it."""
    source = draw(items("j0"))
    columns = draw(select_lists(source.scope, min_size=2))
    first = f"w AS (SELECT {listed(columns)} FROM {source.sql} WHERE {draw(conditions(source.scope, 1))})"
    left, right = outputs(columns, "w1"), outputs(columns, "w2")
    if draw(st.booleans()):
        second = (
            f"v AS (SELECT {listed(outputs(columns, 'w'))} FROM w WHERE {draw(conditions(outputs(columns, 'w'), 1))})"
        )
        return (
            f"WITH {first}, {second} SELECT {listed(draw(select_lists([*left, *right])))} "
            f"FROM w AS w1 LEFT JOIN v AS w2 ON w1.c0 = w2.c0"
        )
    return (
        f"WITH {first} SELECT {listed(draw(select_lists([*left, *right])))} FROM w AS w1 JOIN w AS w2 ON w1.c0 = w2.c0"
    )


RECURSIONS = [
    # reachability, from all nodes or some
    "WITH RECURSIVE p(x, y) AS (SELECT a, b FROM e WHERE {c} UNION SELECT p.x, e.b FROM p JOIN e ON e.a = p.y)"
    " SELECT x, y FROM p WHERE {o}",
    "WITH RECURSIVE p(x, y) AS (SELECT a, b FROM e UNION SELECT p.x, e.b FROM e, p WHERE e.a = p.y AND {c})"
    " SELECT x, count(*) AS n, min(y) AS y FROM p GROUP BY x",
    # with the length of the path, which bounds it
    "WITH RECURSIVE p(x, y, n) AS (SELECT a, b, 1 FROM e UNION ALL SELECT p.x, e.b, p.n + 1 FROM p JOIN e ON e.a = p.y"
    " WHERE p.n < 3) SELECT x, y, n FROM p WHERE {o}",
    "WITH RECURSIVE p(x, n) AS (SELECT a, 0 FROM e WHERE {c} UNION SELECT e.b, p.n + 1 FROM p LEFT JOIN e ON e.a = p.x"
    " WHERE p.n < 4) SELECT DISTINCT x, n FROM p",
    # numbers without a table, and a recursive query around a join
    "WITH RECURSIVE p(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM p WHERE x < 5)"
    " SELECT x, a FROM p LEFT JOIN e ON b = x",
    # two recursions, one over the other
    "WITH RECURSIVE p(x, y) AS (SELECT a, b FROM e UNION SELECT p.x, e.b FROM p JOIN e ON e.a = p.y),"
    " q(y) AS (SELECT y FROM p WHERE {o} UNION SELECT p.y FROM q JOIN p ON p.x = q.y) SELECT y FROM q",
    # a recursive term with a condition on a table that it does not join
    "WITH RECURSIVE p(x) AS (SELECT a FROM e WHERE {c} UNION SELECT e.b FROM p JOIN e ON e.a = p.x"
    " WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = e.b)) SELECT x FROM p",
]  # fmt: skip


@st.composite
def recursive_queries(draw: st.DrawFn) -> str:
    """Generate WITH RECURSIVE over the edges of a graph."""
    shape = draw(st.sampled_from(RECURSIONS))
    edges = [Column("e.a", "int"), Column("e.b", "int")]
    scope = [Column("x" if "{o}" in shape and " q(y)" not in shape else "y", "int")]
    return shape.format(c=draw(conditions(edges, 1)), o=draw(conditions(scope, 1)))
