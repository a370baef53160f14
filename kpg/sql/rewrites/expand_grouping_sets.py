"""Replace grouping sets by the union of one group for each set.

    GROUP BY ROLLUP (a, b)   =   GROUP BY a, b   ∪   GROUP BY a, with b null   ∪   one group, with a and b null

Afterwards the keys of a group are columns of its input, under the same names. GROUPING(a, b) is a constant of each
set: one bit for each key, 1 if the key is not in the set.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.sql.relational.relations import Aggregate, BoundRelation, Query, SetOperation
from kpg.sql.relational.scalars import Column, Constant, Scalar
from kpg.sql.rewrites.node_builders import copy_of, project, value_of
from kpg.sql.rewrites.relation_traversal import map_relations


def expand_grouping_sets(query: Query) -> Query:
    """Return a query without grouping sets."""
    return replace(query, relation=map_relations(query.relation, _expanded))


def _expanded(node: BoundRelation) -> BoundRelation:
    if not isinstance(node, Aggregate):
        return node
    if node.sets is None and not node.grouping and node.columns[: len(node.keys)] == node.keys:
        return node
    sets = node.sets if node.sets is not None else (tuple(range(len(node.keys))),)
    groups = [_groups(node, chosen) for chosen in sets]
    if len(groups) == 1:
        return project(groups[0], dict(zip(node.columns, map(value_of, groups[0].columns), strict=True)))
    combined = groups[0]
    for number, group in enumerate(groups[1:], 2):
        columns = node.columns if number == len(groups) else tuple(map(copy_of, node.columns))
        combined = SetOperation(columns, "union", True, combined, group)
    return combined


def _groups(node: Aggregate, chosen: tuple[int, ...]) -> BoundRelation:
    """Return the groups of one set, with columns of their own in the order of the node's."""
    kept = tuple(dict.fromkeys(node.keys[index] for index in chosen))
    count = len(node.keys)
    results = tuple(copy_of(column) for column in node.columns[count : count + len(node.aggregates)])
    groups = Aggregate((*kept, *results), node.input, kept, node.aggregates)
    values: dict[Column, Scalar] = {}
    for index, column in enumerate(node.columns[:count]):
        key = node.keys[index]
        values[copy_of(column)] = value_of(key) if index in chosen else Constant(None, type=column.type)
    for column in results:
        values[copy_of(column)] = value_of(column)
    for column, indices in zip(node.columns[count + len(results) :], node.grouping, strict=True):
        bits = sum((index not in chosen) << at for at, index in enumerate(reversed(indices)))
        values[copy_of(column)] = Constant(bits, type=column.type)
    return project(groups, values)
