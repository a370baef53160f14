"""Lower a tree of inner joins, in the order that keeps and produces the fewest rows.

A term of the conditions is applied as soon as its columns are joined. Terms that can fail wait for the last join and
are evaluated together there: a failure counts only where all other terms are true.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kpg.sql.lower.join_choice import DELTA_ADVANTAGE, JoinChoice, columns_kept, kept_by_tree, labels_of, tree_text
from kpg.sql.lower.join_graph import JoinGraph, graph_of
from kpg.sql.lower.join_order import IsArranged, JoinOrder, JoinTree
from kpg.sql.lower.lower_delta_joins import can_be_delta, kept_by_deltas, lower_delta_join, pipeline_texts
from kpg.sql.lower.lower_rows import condition_of
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.planned_join import PlannedJoin
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.lower.table_arrangements import is_arranged_by, serving_key
from kpg.sql.relational.relations import BoundJoin
from kpg.sql.relational.scalars import Column, Scalar
from kpg.sql.rewrites.join_conditions import KeyPair, columns_of, equation, split_condition
from kpg.sql.rewrites.node_builders import value_of
from kpg.sql.rewrites.scalar_properties import can_fail


def lower_inner_join(lowering: RelationLowering, join: BoundJoin) -> LoweredRelation:
    """Return the rows of a tree of inner joins, with the columns that the query reads."""
    graph = graph_of(join, lowering.is_shared)
    lowering.estimates.guess_tables(graph.relations, graph.classes)
    lowered = [lowering.lower(relation) for relation in graph.relations]
    read = frozenset(lowering.read[join])

    def is_arranged(relation: int, columns: frozenset[Column]) -> bool:
        return is_arranged_by(lowered[relation], columns)

    tree = JoinOrder(graph, lowering.estimates, is_arranged).tree()
    choice = choose(lowering, graph, lowered, tree, is_arranged, read)
    lowering.joins.append(choice)
    if choice.kind == "delta":
        return lower_delta_join(lowering, graph, lowered)
    builder = JoinBuilder(lowering, graph, lowered, read, list(graph.terms))
    return builder.finished(builder.build(tree))


def choose(
    lowering: RelationLowering,
    graph: JoinGraph,
    lowered: list[LoweredRelation],
    tree: JoinTree,
    is_arranged: IsArranged,
    read: frozenset[Column],
) -> JoinChoice:
    """Return the kind of plan that the settings ask for, or that keeps less."""
    labels = labels_of(graph.relations)
    later = read.union(*map(columns_of, graph.terms))
    binary = kept_by_tree(graph, tree, is_arranged, lambda relations: len(columns_kept(graph, relations, later)))
    orders = (tree_text(tree, labels),)
    wanted = lowering.settings.join_plans
    if len(lowered) < 3 or wanted == "binary" or not can_be_delta(lowering, graph, lowered):
        return JoinChoice("binary", orders, binary)
    delta = kept_by_deltas(lowering, graph, lowered)
    is_known = all(map(lowering.estimates.is_known, graph.relations))
    if wanted == "delta" or delta.rows == 0 or (is_known and delta.nbytes * DELTA_ADVANTAGE < binary.nbytes):
        return JoinChoice("delta", pipeline_texts(graph, lowered, labels), delta, binary)
    return JoinChoice("binary", orders, binary, delta)


@dataclass
class JoinBuilder:
    """Builds the joins of a tree; `waiting` are the terms that are not applied yet.

    A join passes on the columns that the query reads above it (`needed`), that waiting terms read, and that are keys of
    later joins.
    """

    lowering: RelationLowering
    graph: JoinGraph
    lowered: list[LoweredRelation]
    read: frozenset[Column]
    waiting: list[Scalar] = field(default_factory=list)

    def build(self, tree: JoinTree) -> LoweredRelation:
        """Return the rows of a tree."""
        if tree.left is None or tree.right is None:
            return self._filtered(tree, self.lowered[tree.relations.bit_length() - 1])
        left, right = self.build(tree.left), self.build(tree.right)
        keys = self._keys(tree.left, tree.right, left, right)
        ready = self._ready(tree)
        more, rest = split_condition(ready, tuple(left.names), tuple(right.names))
        later = self.read.union(*map(columns_of, self.waiting))
        planned = PlannedJoin(self.lowering, left, right, (*keys, *more), rest)
        return planned.pairs_with(columns_kept(self.graph, tree.relations, later))

    def finished(self, rows: LoweredRelation) -> LoweredRelation:
        """Return the rows on which the remaining terms are true."""
        if not self.waiting:
            return rows
        return rows.with_rows(rows.rows.filter(condition_of(self.lowering, tuple(self.waiting), rows)))

    def _filtered(self, tree: JoinTree, rows: LoweredRelation) -> LoweredRelation:
        """Return a relation in which columns of one class are equal, and terms about it alone are true."""
        condition: list[Scalar] = list(self._ready(tree))
        for members in self.graph.members(tree.relations):
            condition += [equation(members[0], other) for other in members[1:]]
        if not condition:
            return rows
        return rows.with_rows(rows.rows.filter(condition_of(self.lowering, tuple(condition), rows)))

    def _ready(self, tree: JoinTree) -> tuple[Scalar, ...]:
        """Return the waiting terms that can be applied to a tree."""
        ready = [
            term
            for term in self.waiting
            if not self.graph.owners(columns_of(term)) & ~tree.relations and not can_fail(term)
        ]
        self.waiting = [term for term in self.waiting if term not in ready]
        return tuple(ready)

    def _keys(
        self, first: JoinTree, second: JoinTree, left: LoweredRelation, right: LoweredRelation
    ) -> tuple[KeyPair, ...]:
        """Return a pair of equal columns for each class with members on both sides, in the order of an arrangement."""
        pairs = zip(self.graph.members(first.relations), self.graph.members(second.relations), strict=True)
        chosen = [(mine[0], theirs[0]) for mine, theirs in pairs if mine and theirs]
        for side, rows in enumerate((left, right)):
            key = serving_key(rows, {rows.names[pair[side]] for pair in chosen})
            if key:
                position = {column: key.index(rows.names[column]) for column in (pair[side] for pair in chosen)}
                chosen = sorted(chosen, key=lambda pair: position.get(pair[0], position.get(pair[1], 0)))
        return tuple(KeyPair(value_of(mine), value_of(theirs)) for mine, theirs in chosen)
