"""Copies of relations with columns of their own, for rewrites that need a relation twice in one join."""

from __future__ import annotations

from dataclasses import replace

from kpg.sql.relational.relations import BoundRecursion, BoundRelation, RecursiveVariable, VariableScan, inputs
from kpg.sql.relational.scalars import SUBQUERIES, Column, Scalar, map_parts
from kpg.sql.rewrites.node_builders import copy_of, value_of
from kpg.sql.rewrites.relation_traversal import has_subquery, map_scalars, nodes_of, substitute


def copied(root: BoundRelation) -> tuple[BoundRelation, dict[Column, Column]]:
    """Return a copy of a relation, and the new column for each of the columns that it defines."""
    columns = {column: copy_of(column) for node in nodes_of(root) for column in all_columns(node)}
    copier = RelationCopier(columns)
    return copier.relation(root), columns


def all_columns(node: BoundRelation) -> tuple[Column, ...]:
    """Return the columns of a node and of the variables that it defines."""
    if isinstance(node, BoundRecursion):
        return node.columns + tuple(column for entry in node.definitions for column in entry.variable.columns)
    return node.columns


class RelationCopier:
    """Copies nodes, each once."""

    def __init__(self, columns: dict[Column, Column]) -> None:
        self.columns = columns
        self.values = {old: value_of(new) for old, new in columns.items()}
        self.done: dict[BoundRelation, BoundRelation] = {}
        self.variables: dict[RecursiveVariable, RecursiveVariable] = {}

    def relation(self, node: BoundRelation) -> BoundRelation:
        """Return the copy of a node."""
        if node not in self.done:
            self.done[node] = self._copy(node)
        return self.done[node]

    def scalar(self, scalar: Scalar) -> Scalar:
        """Return a scalar over the new columns."""
        if isinstance(scalar, SUBQUERIES):
            mapped = map_parts(scalar, self.scalar)
            changes: dict[str, object] = {"query": self.relation(scalar.query)}
            if hasattr(scalar, "column"):
                changes["column"] = self.columns[scalar.column]
            return replace(mapped, **changes)  # type: ignore[arg-type]
        renamed = substitute(scalar, self.values) if not hasattr(scalar, "query") else scalar
        return renamed if not has_subquery(scalar) else map_parts(scalar, self.scalar)

    def _copy(self, node: BoundRelation) -> BoundRelation:
        if isinstance(node, BoundRecursion):
            for entry in node.definitions:
                variable = entry.variable
                self.variables[variable] = RecursiveVariable(variable.name, self._columns(variable.columns))
        new = tuple(map(self.relation, inputs(node)))
        changes: dict[str, object] = {"columns": self._columns(node.columns)}
        for name in ("keys",):
            if hasattr(node, name):
                changes[name] = self._columns(getattr(node, name))
        for name in ("mark", "ordinality"):
            if getattr(node, name, None) is not None:
                changes[name] = self.columns[getattr(node, name)]
        if isinstance(node, VariableScan):
            changes["variable"] = self.variables.get(node.variable, node.variable)
        mapped = map_scalars(node, self.scalar)
        if isinstance(node, BoundRecursion):
            return self._recursion(node, new)
        fields = ("left", "right") if hasattr(node, "left") else ("input",)
        changes |= dict(zip(fields, new, strict=False))
        return replace(mapped, **changes)  # type: ignore[arg-type]

    def _recursion(self, node: BoundRecursion, new: tuple[BoundRelation, ...]) -> BoundRelation:
        parts = iter(new)
        definitions = []
        for entry in node.definitions:
            base = None if entry.base is None else next(parts)
            definitions.append(replace(entry, variable=self.variables[entry.variable], base=base, step=next(parts)))
        body = next(parts)
        return replace(node, columns=body.columns, definitions=tuple(definitions), body=body)

    def _columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return tuple(self.columns.get(column, column) for column in columns)
