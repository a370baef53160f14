"""Random queries of select, filter and join."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.sql.generated.expressions import conditions, listed, select_lists
from tests.sql.generated.sources import Source, items, joins, joins_by_name


@st.composite
def selections(draw: st.DrawFn) -> str:
    """Generate SELECT … FROM one source WHERE …"""
    return draw(selected(draw(items("j0"))))


@st.composite
def join_queries(draw: st.DrawFn) -> str:
    """Generate a join of two or three sources."""
    return draw(selected(draw(joins())))


@st.composite
def natural_joins(draw: st.DrawFn) -> str:
    """Generate a NATURAL join or one with USING, sometimes with all its columns."""
    natural = draw(st.booleans())
    source = draw(joins_by_name(natural=natural))
    if natural and draw(st.booleans()):  # with USING of some columns, two of a view would have one name
        return f"SELECT * FROM {source.sql}"
    return draw(selected(source))


@st.composite
def selected(draw: st.DrawFn, source: Source) -> str:
    """Generate a select list and a condition."""
    distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
    where = f" WHERE {draw(conditions(source.scope))}" if draw(st.booleans()) else ""
    return f"SELECT {distinct}{listed(draw(select_lists(source.scope)))} FROM {source.sql}{where}"
