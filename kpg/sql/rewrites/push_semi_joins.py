"""Move semi joins below inner joins, to the relation that they filter, if few rows can match.

    (a ⋈ b) ⋉ c  =  (a ⋉ c) ⋈ b       if the condition reads only columns of a and c

A semi join by a small relation is a filter: the earlier it is applied, the fewer rows are joined and kept. A semi join
by a large relation stays where it is, since it would have to read all rows of the relation that it is moved to. So does
an anti join: it keeps most rows, so it is best applied to the rows that the joins leave.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kpg.sql.lower.row_estimates import estimates_of
from kpg.sql.relational.relations import BoundJoin, BoundRelation, Filter, Query
from kpg.sql.relational.scalars import Column
from kpg.sql.rewrites.join_conditions import columns_of
from kpg.sql.rewrites.node_builders import join, where
from kpg.sql.rewrites.push_filters import parents_of
from kpg.sql.rewrites.relation_traversal import map_relations, nodes_of
from kpg.sql.rewrites.source_facts import QueryFacts

MAX_SHARE: Final = 0.3  # of the rows of the filtered relation: the estimated rows of the other side


def push_semi_joins(query: Query, facts: QueryFacts) -> Query:
    """Return a query whose selective semi joins filter early."""
    estimates = estimates_of(nodes_of(query.relation), facts)
    parents = parents_of(query.relation)

    def pushed(node: BoundRelation) -> BoundRelation:
        if not isinstance(node, BoundJoin) or node.kind != "semi" or node.dependent:
            return node
        read = columns_of(node.condition) - frozenset(node.right.columns)
        moved = below(node, node.left, read)
        return node if moved is None else moved

    def below(semi: BoundJoin, target: BoundRelation, read: frozenset[Column]) -> BoundRelation | None:
        """Return the target with the semi join applied inside; None if it is best applied to the target itself."""
        if parents.get(target, 1) > 1 or not read:
            return None
        if isinstance(target, Filter):
            inner = below(semi, target.input, read)
            return None if inner is None else where(inner, (target.condition,))
        if not isinstance(target, BoundJoin) or target.kind != "inner" or target.dependent:
            return None
        for side in (target.left, target.right):
            if read <= frozenset(side.columns) and estimates.rows(semi.right) <= MAX_SHARE * estimates.rows(side):
                filtered = below(semi, side, read) or join(semi.kind, side, semi.right, (semi.condition,))
                sides = (filtered, target.right) if side is target.left else (target.left, filtered)
                return replace(target, left=sides[0], right=sides[1])
        return None

    return replace(query, relation=map_relations(query.relation, pushed))
