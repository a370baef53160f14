"""Let joins share arrangements: joins that read some columns of the same rows by the same key read one arrangement.

    a(k, x) by k, and a(k, y) by k      become      a(k, x, y) by k, for both

A join passes on only the columns that it names, so a wider side changes nothing else. Rows are sorted and kept once
instead of twice. Only columns that are chosen without a computation count, and joins outside loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from kpg.columns.expression import ColumnReference
from kpg.plan import nodes
from kpg.plan.node_traversal import dependencies_first
from kpg.sql.lower.equal_plans import rebuilt

JoinKey: TypeAlias = tuple[str, ...]
Sides: TypeAlias = dict[tuple[nodes.PlanNode, JoinKey], nodes.PlanNode]  # what is arranged by a key instead of a node


def share_arrangements(root: nodes.PlanNode) -> nodes.PlanNode:
    """Return a plan with the same meaning whose joins arrange the same rows by the same key once."""
    order = dependencies_first([root])
    wide = wide_sides(node for node in order if isinstance(node, nodes.JoinNode) and not node.loops)
    if not wide:
        return root
    replaced: dict[nodes.PlanNode, nodes.PlanNode] = {}
    for node in order:
        if node.loops or isinstance(node, (nodes.LeaveNode, nodes.EnterNode, nodes.VariableNode)):
            replaced[node] = node
            continue
        new = rebuilt(node, replaced)
        if isinstance(node, nodes.JoinNode):
            sides = [wide.get(side, side[0]) for side in sides_of_join(node)]
            for side in sides:
                replaced.setdefault(side, rebuilt(side, replaced))
            new = replace(node, left=replaced[sides[0]], right=replaced[sides[1]])
        replaced[node] = new
    return replaced[root]


def wide_sides(joins: Iterable[nodes.JoinNode]) -> Sides:
    """Return the sides that others replace: one side has all columns of those of the same rows by the same key."""
    choices: dict[tuple[nodes.PlanNode, JoinKey], dict[nodes.PlanNode, None]] = {}
    for join in joins:
        for side, key in sides_of_join(join):
            rows = side.input if isinstance(side, nodes.SelectNode) and is_choice(side) else side
            choices.setdefault((rows, key), {})[side] = None
    wide: Sides = {}
    for (rows, key), sides in choices.items():
        if len(sides) > 1:
            names = {name for side in sides for name in side.schema.names}
            both = choice_of(rows, [name for name in rows.schema.names if name in names])
            wide |= {(side, key): rows if rows in sides else both for side in sides}
    return wide


def sides_of_join(join: nodes.JoinNode) -> Iterator[tuple[nodes.PlanNode, JoinKey]]:
    """Yield both sides of a join with their keys."""
    yield join.left, tuple(name for name, _ in join.on)
    yield join.right, tuple(name for _, name in join.on)


def is_choice(select: nodes.SelectNode) -> bool:
    """Return whether a node only chooses columns of its input."""
    pairs = zip(select.schema.names, select.expressions, strict=True)
    return all(isinstance(value, ColumnReference) and value.name == name for name, value in pairs)


def choice_of(rows: nodes.PlanNode, names: list[str]) -> nodes.SelectNode:
    """Return some columns of rows."""
    return nodes.SelectNode(rows.schema.select(names), rows.loops, rows, tuple(map(ColumnReference, names)))
