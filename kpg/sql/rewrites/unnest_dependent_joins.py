"""Remove the dependence of joins: no right side of a join refers to its left side any more.

The one exception is a function of rows that is called with values of the left side, which is an operator by itself.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.sql.relational.relations import BoundJoin, BoundRelation, FunctionScan, Query
from kpg.sql.relational.scalars import conjuncts
from kpg.sql.rewrites.attached_relations import attach
from kpg.sql.rewrites.node_builders import keep
from kpg.sql.rewrites.outer_domain import OuterDomain
from kpg.sql.rewrites.push_dependence import DependencePusher, may_fail
from kpg.sql.rewrites.relation_traversal import free_columns, map_relations


def unnest_dependent_joins(query: Query) -> Query:
    """Return a query whose joins are independent; inner ones first, so their rests are unnested with the outer ones."""
    return replace(query, relation=map_relations(query.relation, _unnested))


def _unnested(node: BoundRelation) -> BoundRelation:
    if not isinstance(node, BoundJoin) or not node.dependent:
        return node
    outer = free_columns(node.right) & set(node.left.columns)
    if not outer and not may_fail(node.right):
        return replace(node, dependent=False)
    if isinstance(node.right, FunctionScan) and node.kind == "inner":
        return node
    pusher = DependencePusher(outer, OuterDomain(node.left))
    right = pusher.push(node.right)
    terms = conjuncts(node.condition)
    attached = attach(node.kind, node.left, right, {}, terms, node.mark, pusher.settled)
    return keep(attached, node.columns)
