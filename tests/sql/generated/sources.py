"""Random FROM clauses: tables, derived tables and joins of all kinds, with the columns that they bring into scope."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.sql.generated.expressions import Scope, conditions, listed, outputs, select_lists
from tests.sql.generated.tables import TABLES, Column, Table

OUTER = ("LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@dataclass(frozen=True)
class Source:
    """A FROM item: its text and its columns."""

    sql: str
    scope: list[Column]


@st.composite
def tables(draw: st.DrawFn, alias: str) -> Source:
    """Generate a table with an alias."""
    table = TABLES[draw(st.sampled_from(["r", "s", "u"]))]
    return Source(f"{table.name} AS {alias}", table.scope(alias))


@st.composite
def derived_tables(draw: st.DrawFn, alias: str, outer: Scope = ()) -> Source:
    """Generate a subquery in FROM; a lateral one may use columns of `outer`."""
    inner = draw(tables(f"{alias}i"))
    columns = draw(select_lists([*inner.scope, *outer], min_size=2))
    distinct = draw(st.sampled_from(["", "DISTINCT "]))
    condition = draw(conditions([*inner.scope, *outer], depth=1))
    return Source(
        f"(SELECT {distinct}{listed(columns)} FROM {inner.sql} WHERE {condition}) AS {alias}", outputs(columns, alias)
    )


def items(alias: str) -> st.SearchStrategy[Source]:
    """Generate a table, or sometimes a subquery."""
    return st.one_of(tables(alias), tables(alias), derived_tables(alias))


@st.composite
def equalities(draw: st.DrawFn, left: Scope, right: Scope) -> str:
    """Generate an equality between columns of both sides."""
    pairs = [(a.sql, b.sql) for a in left for b in right if a.kind == b.kind]
    one, other = draw(st.sampled_from(pairs)) if pairs else ("1", "1")
    return f"{one} = {other}"


@st.composite
def join_conditions(draw: st.DrawFn, left: Scope, right: Scope, *, equality: bool = False) -> str:
    """Generate an ON condition: an equality, with or without a residual, an inequality, or any condition."""
    shapes = ["{equal}", "{equal}", "{equal} AND {residual}"]
    shapes += [] if equality else ["{less}", "{less} AND {residual}", "{residual}", "{equal} OR {residual}"]
    shape = draw(st.sampled_from(shapes))
    return shape.format(
        equal=draw(equalities(left, right)),
        residual=draw(conditions([*left, *right], depth=1)),
        less=draw(inequalities(left, right)),
    )


@st.composite
def inequalities(draw: st.DrawFn, left: Scope, right: Scope) -> str:
    """Generate an inequality between columns of both sides."""
    pairs = [(a.sql, b.sql) for a in left for b in right if a.kind == b.kind]
    one, other = draw(st.sampled_from(pairs)) if pairs else ("1", "2")
    return f"{one} {draw(st.sampled_from(['<', '<=', '>', '>=', '<>']))} {other}"


@st.composite
def joins(draw: st.DrawFn, prefix: str = "j", max_size: int = 3) -> Source:
    """Generate a tree of joins; `prefix` begins all aliases."""
    source = draw(items(f"{prefix}0"))
    for number in range(1, draw(st.integers(2, max_size))):
        source = draw(joined(source, draw(items(f"{prefix}{number}"))))
    return source


@st.composite
def joined(draw: st.DrawFn, left: Source, right: Source) -> Source:
    """Generate a join of two sources."""
    kind = draw(st.sampled_from(["JOIN", "JOIN", *OUTER, "CROSS JOIN", ","]))
    scope = [*left.scope, *right.scope]
    if kind == ",":
        return Source(f"{left.sql} CROSS JOIN {right.sql}", scope)
    if kind == "CROSS JOIN":
        return Source(f"{left.sql} {kind} {right.sql}", scope)
    # PostgreSQL has no full join without an equality.
    condition = draw(join_conditions(left.scope, right.scope, equality=kind == "FULL JOIN"))
    return Source(f"{left.sql} {kind} {right.sql} ON {condition}", scope)


@st.composite
def joins_by_name(draw: st.DrawFn, *, natural: bool) -> Source:
    """Generate a NATURAL join or one with USING of two tables; the merged columns have no qualifier."""
    left, right = draw(st.permutations(["r", "s", "u"]))[:2]
    kind = draw(st.sampled_from(["JOIN", *OUTER]))
    common = [name for name in TABLES[left].columns if name in TABLES[right].columns]
    using = common if natural else draw(st.lists(st.sampled_from(common), min_size=1, unique=True))
    clause = f"NATURAL {kind} {right}" if natural else f"{kind} {right} USING ({', '.join(using)})"
    merged = [Column(name, TABLES[left].kind(name)) for name in using]
    return Source(f"{left} {clause}", [*merged, *unmerged(TABLES[left], using), *unmerged(TABLES[right], using)])


def unmerged(table: Table, using: list[str]) -> list[Column]:
    """Return the columns of a side that keep their qualifier."""
    return [column for column in table.scope(table.name) if column.sql.partition(".")[2] not in using]
