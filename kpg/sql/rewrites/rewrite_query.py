"""All rewrites of a bound query, in order, verified after each.

rewrite_query(query, facts)  ==  the same rows, without subqueries in scalars, dependent joins, grouping sets or
                                 comparisons of intervals,
                                 with conditions where they filter the fewest rows and only the columns that are read
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kpg.sql.relational.relations import Query
from kpg.sql.relational.verify_relations import verify_query
from kpg.sql.rewrites.expand_grouping_sets import expand_grouping_sets
from kpg.sql.rewrites.fold_constants import fold_constants
from kpg.sql.rewrites.group_early import group_early
from kpg.sql.rewrites.interval_keys import interval_keys
from kpg.sql.rewrites.narrow_top_rows import narrow_top_rows
from kpg.sql.rewrites.prune_columns import prune_columns
from kpg.sql.rewrites.push_filters import push_filters
from kpg.sql.rewrites.push_semi_joins import push_semi_joins
from kpg.sql.rewrites.restrict_groups import restrict_groups
from kpg.sql.rewrites.source_facts import QueryFacts
from kpg.sql.rewrites.subqueries_to_joins import subqueries_to_joins
from kpg.sql.rewrites.unnest_dependent_joins import unnest_dependent_joins

Rewrite = Callable[[Query, QueryFacts], Query]


def without_facts(rewrite: Callable[[Query], Query]) -> Rewrite:
    """Return a rewrite that needs no facts about tables."""

    def rewritten(query: Query, facts: QueryFacts) -> Query:
        return rewrite(query)

    rewritten.__name__ = rewrite.__name__
    return rewritten


REWRITES: Final[tuple[Rewrite, ...]] = (
    without_facts(subqueries_to_joins),
    without_facts(interval_keys),
    without_facts(expand_grouping_sets),
    without_facts(unnest_dependent_joins),
    without_facts(fold_constants),
    push_filters,
    group_early,
    restrict_groups,
    push_semi_joins,
    narrow_top_rows,
    without_facts(prune_columns),
)


def rewrite_query(query: Query, facts: QueryFacts | None = None) -> Query:
    """Apply all rewrites."""
    known = facts or QueryFacts()
    for rewrite in REWRITES:
        before, query = query, rewrite(query, known)
        if query.relation is before.relation:
            continue
        try:
            verify_query(query)
        except AssertionError as error:
            raise AssertionError(f"after {rewrite.__name__}: {error}") from error
    return query
