"""All rewrites of a bound query, in order, verified after each.

rewrite_query(query)  ==  the same rows, without subqueries in scalars, dependent joins or grouping sets
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kpg.sql.relational.relations import Query
from kpg.sql.relational.verify_relations import verify_query
from kpg.sql.rewrites.expand_grouping_sets import expand_grouping_sets
from kpg.sql.rewrites.subqueries_to_joins import subqueries_to_joins
from kpg.sql.rewrites.unnest_dependent_joins import unnest_dependent_joins

REWRITES: Final[tuple[Callable[[Query], Query], ...]] = (
    subqueries_to_joins,
    expand_grouping_sets,
    unnest_dependent_joins,
)


def rewrite_query(query: Query) -> Query:
    """Apply all rewrites."""
    for rewrite in REWRITES:
        query = rewrite(query)
        try:
            verify_query(query)
        except AssertionError as error:
            raise AssertionError(f"after {rewrite.__name__}: {error}") from error
    return query
