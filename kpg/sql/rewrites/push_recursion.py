"""Push dependence into a recursion: its variables get a column for each outer value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kpg.sql.relational.relations import BoundRecursion, BoundRelation, RecursiveVariable
from kpg.sql.relational.scalars import Column, Scalar
from kpg.sql.rewrites.node_builders import copy_of, project, value_of
from kpg.sql.rewrites.relation_traversal import free_columns
from kpg.sql.rewrites.unnested_relation import UnnestedRelation

if TYPE_CHECKING:
    from kpg.sql.rewrites.push_dependence import DependencePusher


def push_recursion(pusher: DependencePusher, node: BoundRecursion) -> UnnestedRelation:
    """Return a recursion that does not refer to outer columns."""
    outer = [value_of(column) for column in sorted(free_columns(node) & pusher.outer, key=lambda column: column.name)]
    for entry in node.definitions:
        old = entry.variable
        columns = (*old.columns, *(copy_of(value.column) for value in outer))
        variable = RecursiveVariable(old.name, columns)
        positions: dict[Scalar, int] = {key: len(old.columns) + number for number, key in enumerate(outer)}
        pusher.variables[old] = (variable, positions)
    definitions = tuple(
        replace(
            entry,
            variable=pusher.variables[entry.variable][0],
            base=None if entry.base is None else _rows(pusher, entry.base, outer),
            step=_rows(pusher, entry.step, outer),
        )
        for entry in node.definitions
    )
    body = pusher.complete(pusher.push(node.body))
    recursion = replace(node, columns=body.relation.columns, definitions=definitions, body=body.relation)
    return UnnestedRelation(recursion, body.bound)


def _rows(pusher: DependencePusher, part: BoundRelation, outer: Sequence[Scalar]) -> BoundRelation:
    """Return the rows of a definition, with the outer values as their last columns."""
    unnested = pusher.with_bound(pusher.complete(pusher.push(part)), outer)
    values: dict[Column, Scalar] = {copy_of(column): value_of(column) for column in part.columns}
    values |= {Column("outer", key.type): value_of(unnested.bound[key]) for key in outer}
    return project(unnested.relation, values)
