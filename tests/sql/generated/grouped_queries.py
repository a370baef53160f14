"""Random queries with GROUP BY, grouping sets, HAVING, FILTER and all aggregates.

Aggregates whose answer depends on the order of rows get an order by all that they read.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tests.sql.generated.expressions import HOLE, Scope, conditions, listed, scalars
from tests.sql.generated.sources import Source, items, joins
from tests.sql.generated.tables import Column

AGGREGATES: list[tuple[str, str]] = [
    ("count(*)", "int"),
    ("count({distinct}{int})", "int"),
    ("count({distinct}{text})", "int"),
    ("sum({distinct}{int})", "int"),
    ("sum({distinct}{numeric})", "numeric"),
    ("sum({float})", "float"),
    ("avg({distinct}{int})", "numeric"),
    ("avg({numeric})", "numeric"),
    ("avg({float})", "float"),
    ("min({int})", "int"),
    ("max({int})", "int"),
    ("min({text})", "text"),
    ("max({text})", "text"),
    ("min({numeric})", "numeric"),
    ("max({date})", "date"),
    ("min({timestamp})", "timestamp"),
    ("bool_and({bool})", "bool"),
    ("bool_or({bool})", "bool"),
    ("every({bool})", "bool"),
    ("string_agg({text}, ',' ORDER BY {same})", "text"),
    ("string_agg(DISTINCT {text}, ',')", "text"),
    ("string_agg({text}, {text} || '.' ORDER BY {same})", "text"),
    ("array_agg({int} ORDER BY {same})", "array"),
    ("max(ARRAY[{int}])", "array"),
    ("bit_and({int})", "int"),
    ("bit_or({distinct}{int})", "int"),
    ("bit_xor({distinct}{int})", "int"),
    ("variance({int})", "numeric"),
    ("var_pop({numeric})", "numeric"),
    ("stddev({int})", "numeric"),
    ("stddev_samp({float})", "float"),
    ("percentile_cont(0.5) WITHIN GROUP (ORDER BY {float})", "float"),
    ("percentile_disc(0.25) WITHIN GROUP (ORDER BY {int})", "int"),
]


@st.composite
def aggregates(draw: st.DrawFn, scope: Scope, kind: str | None = None) -> Column:
    """Generate an aggregate, of a kind if one is given."""
    shape, result = draw(st.sampled_from([one for one in AGGREGATES if kind in (None, one[1])]))
    kinds = set(HOLE.findall(shape)) - {"same", "distinct"}
    reads = {name: draw(scalars(scope, name, 1)) for name in kinds}
    text = shape.format(**reads, same=next(iter(reads.values()), ""), distinct=draw(st.sampled_from(["", "DISTINCT "])))
    if draw(st.integers(0, 3)) == 0:
        text += f" FILTER (WHERE {draw(conditions(scope, 1))})"
    return Column(text, result)


def sources() -> st.SearchStrategy[Source]:
    """Generate what is grouped: mostly one table, sometimes a join."""
    return st.one_of(items("j0"), items("j0"), joins(max_size=2))


@st.composite
def grouped_queries(draw: st.DrawFn) -> str:
    """Generate GROUP BY of columns or expressions, or one group of all rows."""
    source = draw(sources())
    kinds = draw(st.lists(st.sampled_from(["int", "text", "bool", "numeric", "date"]), max_size=2))
    keys = [Column(draw(scalars(source.scope, kind, 1)), kind) for kind in kinds]
    # A literal would be the number of a column.
    keys = [key for key in keys if any(column.sql in key.sql for column in source.scope)]
    measures = [draw(aggregates(source.scope)) for _ in range(draw(st.integers(1, 3)))]
    group = f" GROUP BY {', '.join(key.sql for key in keys)}" if keys else ""
    having = ""
    if draw(st.booleans()):
        having = f" HAVING {draw(conditions([draw(aggregates(source.scope, 'int')), *keys], 1))}"
    where = f" WHERE {draw(conditions(source.scope, 1))}" if draw(st.booleans()) else ""
    return f"SELECT {listed([*keys, *measures])} FROM {source.sql}{where}{group}{having}"


@st.composite
def grouping_sets(draw: st.DrawFn) -> str:
    """Generate ROLLUP and GROUPING SETS over columns."""
    source = draw(items("j0"))
    keys = draw(st.lists(st.sampled_from([column.sql for column in source.scope]), min_size=1, max_size=3, unique=True))
    measures = [draw(aggregates(source.scope)) for _ in range(draw(st.integers(1, 2)))]
    if draw(st.booleans()):
        sets = f"ROLLUP ({', '.join(keys)})"
    else:
        chosen = [draw(st.lists(st.sampled_from(keys), unique=True)) for _ in range(draw(st.integers(1, 3)))]
        chosen.append(keys)  # each column of the select list is in some set
        sets = "GROUPING SETS (" + ", ".join(f"({', '.join(one)})" for one in chosen) + ")"
    marks = [Column(f"grouping({key})", "int") for key in keys[:1]]
    columns = [*(Column(key, "any") for key in keys), *marks, *measures]
    return f"SELECT {listed(columns)} FROM {source.sql} GROUP BY {sets}"
