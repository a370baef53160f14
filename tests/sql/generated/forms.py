"""The query forms: the name of each, and its generator."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.sql.generated import combined_queries, grouped_queries, joined_queries, subqueries, value_queries

FORMS: dict[str, st.SearchStrategy[str]] = {
    "selections": joined_queries.selections(),
    "joins": joined_queries.join_queries(),
    "natural joins": joined_queries.natural_joins(),
    "grouping": grouped_queries.grouped_queries(),
    "grouping sets": grouped_queries.grouping_sets(),
    "subqueries in where": subqueries.filtered_by_subquery(),
    "subqueries in select": subqueries.selected_subqueries(),
    "subqueries of groups": subqueries.subqueries_of_groups(),
    "subqueries in joins": subqueries.joined_by_subquery(),
    "lateral joins": subqueries.lateral_joins(),
    "set operations": combined_queries.set_operations(),
    "limits": combined_queries.limited_queries(),
    "distinct on": combined_queries.distinct_on(),
    "common tables": combined_queries.common_tables(),
    "recursion": combined_queries.recursive_queries(),
    "values": value_queries.value_queries(),
}
