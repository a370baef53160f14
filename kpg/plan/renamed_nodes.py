"""Look through selections that only rename, reorder or drop columns, and through indexes inside loops.

view = renamed(node)
node.rows  ==  view.node.rows, with column `name` of the node in column `view.columns[name]`
"""

from __future__ import annotations

from typing import NamedTuple

from kpg.columns.expression import ColumnReference, Expression, Named, Written
from kpg.plan import nodes


class RenamedNode(NamedTuple):
    """A node, and its column for each column of the node that renames it."""

    node: nodes.PlanNode
    columns: dict[str, str]

    def after(self, columns: dict[str, str]) -> RenamedNode:
        """Return the same node, for the columns of a further renaming."""
        return RenamedNode(self.node, {name: self.columns[of] for name, of in columns.items()})

    @property
    def is_unchanged(self) -> bool:
        """Whether all columns have their own names, and none is missing."""
        names = self.node.schema.names
        return set(self.columns) == set(names) and all(name == of for name, of in self.columns.items())


def renamed(node: nodes.PlanNode) -> RenamedNode:
    """Return the node that a node renames; itself if it renames none."""
    columns = {name: name for name in node.schema.names}
    while True:
        if isinstance(node, nodes.ArrangeNode) and node.loops:
            node = node.input
        elif isinstance(node, nodes.SelectNode):
            names = column_names(node)
            if names is None:
                return RenamedNode(node, columns)
            columns, node = {name: names[of] for name, of in columns.items()}, node.input
        else:
            return RenamedNode(node, columns)


def column_names(node: nodes.SelectNode) -> dict[str, str] | None:
    """Return the input column of each column of a selection; None if it computes values."""
    names: dict[str, str] = {}
    for name, expression in zip(node.schema.names, node.expressions, strict=True):
        expression = unnamed(expression)
        if not isinstance(expression, ColumnReference):
            return None
        names[name] = expression.name
    return names


def unnamed(expression: Expression) -> Expression:
    """Return an expression without a name and without its origin."""
    while isinstance(expression, (Named, Written)):
        expression = expression.expression
    return expression
