"""Group rows before they are joined with tables that only describe the groups.

    groups of (a ⋈(a.x = b.k) b) by g   =   (groups of a by a.x and the columns of g in a) ⋈(x = b.k) b

This holds if no aggregate reads b, at most one row of b matches each row of a, and g decides a.x. Then a group has one
row of b, or is not there at all. `b` may be a join of several tables. Fewer rows are joined, the columns of b are not
carried through the groups, and text is not compared. Only whole tables are joined later: a filtered one would leave out
rows, so it is best joined first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from kpg.sql.lower.join_graph import JoinGraph, graph_of, without_renaming
from kpg.sql.relational.relations import Aggregate, BoundJoin, BoundRelation, Query, Scan
from kpg.sql.relational.scalars import Column, Scalar
from kpg.sql.rewrites.functional_dependence import FunctionalDependence
from kpg.sql.rewrites.join_conditions import columns_of, equation
from kpg.sql.rewrites.node_builders import join, keep, where
from kpg.sql.rewrites.push_filters import parents_of
from kpg.sql.rewrites.relation_traversal import map_relations, scalars_of
from kpg.sql.rewrites.scalar_properties import can_fail
from kpg.sql.rewrites.source_facts import QueryFacts

MAX_TABLES: Final = 5  # that may describe groups; all subsets of them are tried, the largest first


def group_early(query: Query, facts: QueryFacts) -> Query:
    """Return a query whose groups are made before they are described."""
    parents = parents_of(query.relation)

    def grouped(node: BoundRelation) -> BoundRelation:
        if not isinstance(node, Aggregate) or not node.keys or node.sets is not None or not node.aggregates:
            return node
        top = without_renaming(node.input)
        if not isinstance(top, BoundJoin) or top.kind != "inner" or top.dependent or parents.get(top, 1) > 1:
            return node
        graph = graph_of(top, lambda inner: parents.get(inner, 1) > 1)
        return EarlyGroups(node, graph, facts.dependence).rewritten()

    return replace(query, relation=map_relations(query.relation, grouped))


@dataclass(frozen=True)
class EarlyGroups:
    """Groups of the rows of a join, and the graph of the join."""

    node: Aggregate
    graph: JoinGraph
    dependence: FunctionalDependence

    def rewritten(self) -> BoundRelation:
        """Return the same groups, with some tables joined later, or the groups themselves."""
        tables = self._describing()[:MAX_TABLES]
        for size in range(len(tables), 0, -1):
            for later in combinations(tables, size):
                if (found := self._joined_later(list(later))) is not None:
                    return found
        return self.node

    def _describing(self) -> list[int]:
        """Return the relations that may be joined after the groups: whole tables that no aggregate or term reads."""
        scalars = (*scalars_of(self.node), *self.graph.terms)
        twice = any(len(members) > 1 for n in self._numbers() for members in self.graph.members(1 << n))
        if twice or any(map(can_fail, scalars)):  # a row that is left out later must not fail
            return []
        read = {column for scalar in scalars for column in columns_of(scalar)}
        tables = [n for n in self._numbers() if isinstance(self.graph.relations[n], Scan)]
        return [number for number in tables if read.isdisjoint(self.graph.relations[number].columns)]

    def _numbers(self) -> range:
        return range(len(self.graph.relations))

    def _joined_later(self, later: list[int]) -> BoundRelation | None:
        """Return the groups joined with some relations, None if that is not the same."""
        bits = sum(1 << number for number in later)
        shared = [
            (first[0], second[0])
            for first, second in zip(self.graph.members(~bits), self.graph.members(bits), strict=True)
            if first and second
        ]
        earlier = [number for number in self._numbers() if number not in later]
        described, rows = self._tree(later), self._tree(earlier) if earlier else None
        if described is None or rows is None or not self.dependence.is_key([b for _, b in shared], described):
            return None
        if not {a for a, _ in shared} <= self.dependence.of(self.node.input).closure(self.node.keys):
            return None
        return self._groups(where(rows, self.graph.terms), described, shared)

    def _tree(self, chosen: list[int]) -> BoundRelation | None:
        """Return the join of some relations of the graph by their equal columns; None if they are not connected."""
        waiting = list(chosen)
        tree, reached = self.graph.relations[waiting[0]], 1 << waiting.pop(0)
        while waiting:
            number = next((n for n in waiting if self._equations(reached, n)), None)
            if number is None:
                return None
            waiting.remove(number)
            tree = join("inner", tree, self.graph.relations[number], self._equations(reached, number))
            reached |= 1 << number
        return tree

    def _equations(self, reached: int, number: int) -> list[Scalar]:
        """Return the equations between relations and a further one."""
        pairs = zip(self.graph.members(reached), self.graph.members(1 << number), strict=True)
        return [equation(mine[0], others[0]) for mine, others in pairs if mine and others]

    def _groups(
        self, rows: BoundRelation, described: BoundRelation, shared: list[tuple[Column, Column]]
    ) -> BoundRelation:
        """Return the groups of rows, joined with what describes them."""
        keys = dict.fromkeys([*(key for key in self.node.keys if key in rows.columns), *(a for a, _ in shared)])
        results = self.node.columns[len(self.node.keys) :]
        groups = Aggregate((*keys, *results), rows, tuple(keys), self.node.aggregates)
        return keep(join("inner", groups, described, [equation(a, b) for a, b in shared]), self.node.columns)
