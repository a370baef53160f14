"""Leave out the columns that no node reads, down to the scans, so that arrangements hold only what a query needs.

All columns of Distinct and of TopRows matter: they decide which rows are equal, and the order of ties.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRecursion,
    BoundRelation,
    Distinct,
    Filter,
    Project,
    Query,
    Scan,
    SetOperation,
    TopRows,
    Values,
    inputs,
)
from kpg.sql.relational.scalars import AggregateCall, Column, Scalar
from kpg.sql.rewrites.join_conditions import columns_of
from kpg.sql.rewrites.node_builders import join, keep, one_row
from kpg.sql.rewrites.relation_traversal import scalars_of, with_inputs


def prune_columns(query: Query) -> Query:
    """Return a query whose nodes have only the columns that are read."""
    pruner = ColumnPruner(columns_read(query.relation))
    return replace(query, relation=keep(pruner.pruned(query.relation), query.relation.columns))


def columns_read(root: BoundRelation) -> dict[BoundRelation, set[Column]]:
    """Return the columns of each node that some other node, or the caller, reads."""
    pruner = ColumnPruner()
    pruner.need(root, root.columns)
    for node in parents_first(root):
        pruner.need_inputs(node)
    return pruner.needed


def parents_first(root: BoundRelation) -> list[BoundRelation]:
    """Return all nodes, each after all nodes that read it."""
    order: list[BoundRelation] = []
    seen: set[BoundRelation] = set()

    def visit(node: BoundRelation) -> None:
        if node not in seen:
            seen.add(node)
            for inner in inputs(node):
                visit(inner)
            order.append(node)

    visit(root)
    return order[::-1]


def read_by(scalars: Iterable[Scalar]) -> set[Column]:
    """Return the columns that some scalars read."""
    return {column for scalar in scalars for column in columns_of(scalar)}


@dataclass
class ColumnPruner:
    """Collects the columns that are read of each node, then rebuilds the nodes with these."""

    needed: dict[BoundRelation, set[Column]] = field(default_factory=dict)
    done: dict[BoundRelation, BoundRelation] = field(default_factory=dict)

    def need(self, node: BoundRelation, columns: Iterable[Column]) -> None:
        """Record that columns of a node are read."""
        self.needed.setdefault(node, set()).update(column for column in columns if column in node.columns)

    def need_inputs(self, node: BoundRelation) -> None:
        """Record the columns that a node reads of its inputs, given those that are read of itself."""
        own = self.needed[node]
        match node:
            case Project():
                pairs = zip(node.columns, node.values, strict=True)
                self.need(node.input, read_by(value for column, value in pairs if column in own))
            case Filter():
                self.need(node.input, own | columns_of(node.condition))
            case BoundJoin():
                read = own | read_by((node.condition, *self._lateral(node)))
                self.need(node.left, read)
                self.need(node.right, read)
            case Aggregate():
                kept = self._kept_calls(node)
                calls = replace(node, aggregates=tuple(call for _, call in kept))
                self.need(node.input, {*node.keys, *read_by(scalars_of(calls))})
            case SetOperation(kind="union", all=True):
                for side in (node.left, node.right):
                    pairs_of_side = zip(node.columns, side.columns, strict=True)
                    self.need(side, [theirs for ours, theirs in pairs_of_side if ours in own])
            case _:
                for inner in inputs(node):
                    self.need(inner, inner.columns)

    def _lateral(self, node: BoundJoin) -> list[Scalar]:
        return list(scalars_of(node.right)) if node.dependent else []

    def _kept_calls(self, node: Aggregate) -> list[tuple[Column, AggregateCall]]:
        own = node.columns[len(node.keys) :]
        pairs = zip(own, node.aggregates, strict=True)
        return [(column, call) for column, call in pairs if column in self.needed[node]]

    def pruned(self, node: BoundRelation) -> BoundRelation:
        """Return a node with the columns that are read, and perhaps more."""
        if node not in self.done:
            self.done[node] = self._pruned(node)
        return self.done[node]

    def _kept(self, node: BoundRelation) -> BoundRelation:
        """Return a node with exactly the columns that are read."""
        pruned = self.pruned(node)
        return keep(pruned, (column for column in node.columns if column in self.needed[node]))

    def _pruned(self, node: BoundRelation) -> BoundRelation:
        own = self.needed[node]
        columns = tuple(column for column in node.columns if column in own)
        match node:
            case Scan():
                chosen = [name for column, name in zip(node.columns, node.fields, strict=True) if column in own]
                return replace(node, columns=columns, fields=tuple(chosen))
            case Values():
                at = [position for position, column in enumerate(node.columns) if column in own]
                rows = tuple(tuple(row[position] for position in at) for row in node.rows)
                return replace(node, columns=columns, rows=rows)
            case Project():
                pairs = zip(node.columns, node.values, strict=True)
                values = tuple(value for column, value in pairs if column in own)
                return replace(node, columns=columns, input=self.pruned(node.input), values=values)
            case BoundJoin(dependent=False):
                left, right = self._kept(node.left), self._kept(node.right)
                return join(node.kind, left, right, (node.condition,), mark=node.mark)
            case Aggregate():
                return self._aggregate(node)
            case SetOperation(kind="union", all=True):
                sides = [self._chosen(node, side) for side in (node.left, node.right)]
                return replace(node, columns=columns, left=sides[0], right=sides[1])
            case Distinct() | TopRows() | SetOperation() | BoundRecursion():
                return with_inputs(node, tuple(keep(self.pruned(part), part.columns) for part in inputs(node)))
        return with_inputs(node, tuple(self.pruned(part) for part in inputs(node)))

    def _chosen(self, node: SetOperation, side: BoundRelation) -> BoundRelation:
        """Return one side of a union, with the columns of the positions that are read."""
        pairs = zip(node.columns, side.columns, strict=True)
        return keep(self.pruned(side), [theirs for ours, theirs in pairs if ours in self.needed[node]])

    def _aggregate(self, node: Aggregate) -> BoundRelation:
        kept = self._kept_calls(node)
        if not kept and not node.keys:
            return one_row()
        columns = (*node.keys, *(column for column, _ in kept))
        calls = tuple(call for _, call in kept)
        return replace(node, columns=columns, input=self.pruned(node.input), aggregates=calls)
