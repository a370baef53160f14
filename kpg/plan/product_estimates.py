"""Estimate the rows of a plan, to refuse products of large collections before they are computed.

    estimate_products(root)      the products of a plan, with the estimated rows of both sides

A product is a join without a common column. Estimates are rough: a join by a key has as many rows as its larger side, a
constant selects one row of EQUAL_SHARE, other conditions and reductions keep all rows, and a recursion has the rows
that it starts from. A plan without products has nothing to refuse. Cost: linear in the nodes of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kpg.columns.expression import ColumnReference, FunctionCall, Literal
from kpg.plan import nodes
from kpg.plan.node_traversal import dependencies_first, inputs_of

EQUAL_SHARE: Final = 100  # a column equals a constant in one row of this many


@dataclass(frozen=True, slots=True)
class ProductEstimate:
    """The estimated rows of both sides of a product."""

    left: int
    right: int

    @property
    def rows(self) -> int:
        """The estimated rows of the product."""
        return self.left * self.right

    @property
    def smaller(self) -> int:
        """The estimated rows of the smaller side."""
        return min(self.left, self.right)


def estimate_products(root: nodes.PlanNode) -> list[ProductEstimate]:
    """Return the products of a plan. Sizes are asked for only if it has some: on workers, that takes messages."""
    rows: dict[nodes.PlanNode, int] = {}
    products: list[ProductEstimate] = []
    plan = dependencies_first([root])
    if all(product_of(node, {}) is None for node in plan):
        return []
    for node in plan:
        product = product_of(node, rows)
        rows[node] = rows_of_node(node, rows) if product is None else product.rows
        products += [product] if product is not None else []
    return products


def product_of(node: nodes.PlanNode, rows: dict[nodes.PlanNode, int]) -> ProductEstimate | None:
    """Return the product that a node computes, if it does."""
    if isinstance(node, nodes.JoinNode) and not node.on:
        return ProductEstimate(rows.get(node.left, 0), rows.get(node.right, 0))
    if isinstance(node, nodes.ExtendNode) and not any(extender.key for extender in node.extenders):
        smallest = min(rows.get(extender.node, 0) for extender in node.extenders)
        return ProductEstimate(rows.get(node.input, 0), smallest)
    return None


def rows_of_node(node: nodes.PlanNode, rows: dict[nodes.PlanNode, int]) -> int:
    """Return the estimated rows of a node that is no product; `rows` has those of the nodes it reads."""
    inner = [rows.get(read, 0) for read in inputs_of(node)]  # a variable of a loop may have none yet
    match node:
        case nodes.RelationNode() | nodes.InstalledNode():
            return rows_of_source(node)
        case nodes.ValuesNode():
            return len(node.rows)
        case nodes.FilterNode():
            return inner[0] // EQUAL_SHARE if is_equal_to_constant(node.condition) else inner[0]
        case nodes.JoinNode():
            return max(inner)
        case nodes.ExtendNode():
            return inner[0]
        case nodes.ReduceNode():
            return inner[0] if node.keys else 1
    return sum(inner)


def is_equal_to_constant(condition: Any) -> bool:
    """Return whether a condition compares a column with a constant for equality."""
    if not isinstance(condition, FunctionCall) or condition.op != "==":
        return False
    kinds = {type(argument) for argument in condition.arguments}
    return kinds == {ColumnReference, Literal}


def rows_of_source(node: nodes.RelationNode | nodes.InstalledNode) -> int:
    """Return the rows of a relation or an installed arrangement."""
    size = getattr(node.owner, "size", None)
    if size is not None:
        return int(size)
    return int(node.owner.base().handle.spine.estimated_rows)
