"""Compute only the groups that a join asks for: rows of other groups are left out before they are summed.

    d ⋈(d.x = k) groups of r by k   =   d ⋈(d.x = k) groups of (r ⋉(k = d.x) d) by k

A correlated aggregate becomes such a join when it is unnested. If d is a small part of its table, most groups are never
asked for. The semi join leaves the other groups whole, so the meaning is the same under every change. It reads an
arrangement of r by k. So it is added only where r is joined anyway, or the join itself reads the same table by k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from kpg.sql.lower.join_graph import JoinGraph, graph_of, without_renaming
from kpg.sql.lower.row_estimates import RowEstimates, estimates_of, source_of
from kpg.sql.relational.relations import Aggregate, BoundJoin, BoundRelation, Filter, Project, Query, inputs
from kpg.sql.relational.scalars import Column, ColumnValue
from kpg.sql.rewrites.join_conditions import equation
from kpg.sql.rewrites.node_builders import copy_of, join, project, value_of
from kpg.sql.rewrites.push_filters import parents_of
from kpg.sql.rewrites.relation_traversal import nodes_of, with_inputs
from kpg.sql.rewrites.source_facts import QueryFacts

MAX_SHARE: Final = 0.3  # of its table: the rows of the relation that asks for groups


@dataclass(frozen=True, slots=True)
class Restriction:
    """The relation that asks for groups, and the pairs of a key of the groups and a column that it is equal to."""

    asking: BoundRelation
    pairs: tuple[tuple[Column, Column], ...]


def restrict_groups(query: Query, facts: QueryFacts) -> Query:
    """Return a query whose joined groups are made of the rows that the joins ask for."""
    estimates = estimates_of(nodes_of(query.relation), facts)
    parents = parents_of(query.relation)
    restrictions: dict[BoundRelation, Restriction] = {}
    for top in top_joins(query.relation):
        graph = graph_of(top, lambda node: parents[node] > 1)
        estimates.guess_tables(graph.relations, graph.classes)
        restrictions |= GroupSearch(graph, estimates, parents).restrictions()
    return replace(query, relation=Rebuild(restrictions).rebuilt(query.relation)) if restrictions else query


def top_joins(root: BoundRelation) -> Iterator[BoundJoin]:
    """Yield the inner joins that are not part of another tree of inner joins."""
    below: set[BoundRelation] = set()
    for node in nodes_of(root):
        if isinstance(node, BoundJoin) and node.kind == "inner" and not node.dependent:
            below.update(without_renaming(side) for side in (node.left, node.right))
    for node in nodes_of(root):
        if isinstance(node, BoundJoin) and node.kind == "inner" and not node.dependent and node not in below:
            yield node


@dataclass(frozen=True, slots=True)
class GroupSearch:
    """Finds groups in the graph of a join that another relation of the graph restricts."""

    graph: JoinGraph
    estimates: RowEstimates
    parents: Mapping[BoundRelation, int]

    def restrictions(self) -> dict[BoundRelation, Restriction]:
        """Return the groups that can be restricted, and by what."""
        found: dict[BoundRelation, Restriction] = {}
        for number in range(len(self.graph.relations)):
            groups, keys = self._groups(number)
            if groups is None:
                continue
            choices = [r for other in range(len(self.graph.relations)) if (r := self._restriction(other, keys))]
            choices = [choice for choice in choices if self._pays(groups, number, choice)]
            if choices:
                found[groups] = min(choices, key=self._share)
        return found

    def _groups(self, number: int) -> tuple[Aggregate | None, dict[Column, Column]]:
        """Return the groups that a relation shows, and the key of the groups that each of its columns is."""
        node = self.graph.relations[number]
        names = {column: column for column in node.columns}
        while isinstance(node, (Filter, Project)) and self.parents[node] == 1:
            if isinstance(node, Project):
                values = dict(zip(node.columns, node.values, strict=True))
                read = {column: values[inner] for column, inner in names.items()}
                names = {column: value.column for column, value in read.items() if isinstance(value, ColumnValue)}
            node = node.input
        if not isinstance(node, Aggregate) or self.parents[node] > 1 or not node.keys:
            return None, {}
        keys = dict(zip(node.columns, node.keys, strict=False))
        return node, {column: keys[inner] for column, inner in names.items() if inner in keys}

    def _restriction(self, asking: int, keys: Mapping[Column, Column]) -> Restriction | None:
        """Return the pairs of keys and columns of a relation that the join equates."""
        pairs = [
            (keys[column], others[0])
            for group, others in zip(self.graph.classes, self.graph.members(1 << asking), strict=True)
            for column in group
            if column in keys and others and self.graph.owner(column) != asking
        ]
        return Restriction(self.graph.relations[asking], tuple(pairs)) if pairs else None

    def _share(self, choice: Restriction) -> float:
        """Return the share of its table that the asking relation has."""
        table = max(self.estimates.base_rows(column, choice.asking) for _, column in choice.pairs)
        return self.estimates.rows(choice.asking) / table

    def _pays(self, groups: Aggregate, number: int, choice: Restriction) -> bool:
        if self._share(choice) > MAX_SHARE:
            return False
        inner = groups.input
        while isinstance(inner, (Filter, Project)):
            inner = inner.input
        if isinstance(inner, BoundJoin):
            return True
        grouped = [source_of(key, groups.input) for key, _ in choice.pairs]
        fields = {(source[0].source, source[1]) for source in grouped if source is not None}
        return any(self._reads(other, fields) for other in range(len(self.graph.relations)) if other != number)

    def _reads(self, relation: int, fields: set[tuple[str, str]]) -> bool:
        """Return whether a relation of the graph is joined by one of some fields of tables."""
        columns = [column for members in self.graph.members(1 << relation) for column in members]
        sources = [source_of(column, self.graph.relations[relation]) for column in columns]
        return any(source is not None and (source[0].source, source[1]) in fields for source in sources)


@dataclass
class Rebuild:
    """Rebuilds a relation with restricted groups; a shared node is rebuilt once."""

    restrictions: Mapping[BoundRelation, Restriction]
    done: dict[BoundRelation, BoundRelation] = field(default_factory=dict)

    def rebuilt(self, node: BoundRelation) -> BoundRelation:
        """Return a node with restricted groups below it."""
        if node not in self.done:
            new = with_inputs(node, tuple(map(self.rebuilt, inputs(node))))
            if node in self.restrictions and isinstance(new, Aggregate):
                new = replace(new, input=self._restricted(new.input, self.restrictions[node]))
            self.done[node] = new
        return self.done[node]

    def _restricted(self, rows: BoundRelation, by: Restriction) -> BoundRelation:
        copies = {copy_of(column): column for _, column in by.pairs}
        asking = project(self.rebuilt(by.asking), {copy: value_of(column) for copy, column in copies.items()})
        terms = [equation(key, copy) for (key, _), copy in zip(by.pairs, copies, strict=True)]
        return join("semi", rows, asking, terms)
