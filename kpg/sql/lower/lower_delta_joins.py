"""Lower a graph of inner joins to delta queries, which keep no intermediate results.

    rows  =  Σ over relations i  of  changes of relation i, extended by each relation j in turn: by rows at strictly
                                     earlier times where j > i, and at the same time as well where j < i

Each relation is looked up in an arrangement by the columns that connect it. An arrangement of its table that exists
serves as it is, and conditions on the relation filter the extended tuples. Otherwise the filtered rows, with the
columns that the query reads, are arranged for this query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from kpg.api.collection import Collection
from kpg.columns.expression import ColumnReference, Expression, with_columns
from kpg.columns.pause_points import pause
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.sql.lower.join_choice import KeptRows
from kpg.sql.lower.join_graph import JoinGraph
from kpg.sql.lower.lower_rows import condition_of
from kpg.sql.lower.lowered_relation import LoweredRelation, unique_names
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.lower.table_arrangements import is_indexed_by, serving_key, shared_index, table_key, unfiltered
from kpg.sql.relational.scalars import Column, Scalar
from kpg.sql.rewrites.join_conditions import columns_of, equation
from kpg.sql.rewrites.scalar_properties import can_fail

ColumnPairs: TypeAlias = tuple[tuple[Column, Column], ...]


@dataclass(frozen=True, slots=True)
class LookupStep:
    """One step of a pipeline: the relation that tuples are extended by, and the pairs of equal columns."""

    relation: int
    keys: ColumnPairs  # a column of the tuples, and one of the relation
    index: tuple[str, ...] = ()  # the key of the index that the step reads; it begins with the step's columns

    def names(self, lowered: list[LoweredRelation]) -> tuple[str, ...]:
        """Return the columns of the relation that are looked up."""
        return tuple(lowered[self.relation].names[own] for _, own in self.keys)

    def rank(self, lowered: list[LoweredRelation]) -> tuple[int, bool]:
        """Return a greater value for a lookup that is likely to find fewer rows."""
        key = table_key(lowered[self.relation])
        return len(self.keys), bool(key) and set(key) <= set(self.names(lowered))

    def reading(self, lowered: list[LoweredRelation], index: tuple[str, ...]) -> LookupStep:
        """Return the step with its pairs in the order of an index."""
        names = lowered[self.relation].names
        return replace(self, keys=tuple(sorted(self.keys, key=lambda pair: index.index(names[pair[1]]))), index=index)


def can_be_delta(lowering: RelationLowering, graph: JoinGraph, lowered: list[LoweredRelation]) -> bool:
    """Return whether a graph can be lowered to delta queries: three or more relations, connected by equal columns."""
    if len(graph.relations) < 3 or lowering.db.config.coordinates != 1:
        return False
    if any(relation.rows.node.loops for relation in lowered):
        return False
    return all(steps_of(graph, lowered, start) is not None for start in range(len(graph.relations)))


def kept_by_deltas(lowering: RelationLowering, graph: JoinGraph, lowered: list[LoweredRelation]) -> KeptRows:
    """Return what the pipelines keep: the rows of each relation for each index that does not exist yet."""
    kept = KeptRows()
    for relation, index in {
        (step.relation, step.index) for steps in pipelines_of(lowering, graph, lowered) for step in steps
    }:
        own = lowered[relation]
        if not is_indexed_by(own.rows.node, index, is_alone(lowering)):
            kept = kept.with_rows(lowering.estimates.rows(graph.relations[relation]), len(set(own.names.values())))
    return kept


def pipeline_texts(graph: JoinGraph, lowered: list[LoweredRelation], labels: Sequence[str]) -> tuple[str, ...]:
    """Return the order in which the changes of each relation are extended by the others."""
    return tuple(
        " → ".join([labels[start], *(labels[step.relation] for step in steps_of(graph, lowered, start) or ())])
        for start in range(len(graph.relations))
    )


def pipelines_of(
    lowering: RelationLowering, graph: JoinGraph, lowered: list[LoweredRelation]
) -> list[list[LookupStep]]:
    """Return the steps of the pipeline of each relation, with the index that each of them reads.

    The pairs of a step are in the order of its index. On one worker, a step reads an index whose key begins with its
    columns, if another step needs that one anyway.
    """
    plain = [steps_of(graph, lowered, start) or [] for start in range(len(graph.relations))]
    wanted: dict[int, set[frozenset[str]]] = {}
    for step in (step for steps in plain for step in steps):
        wanted.setdefault(step.relation, set()).add(frozenset(step.names(lowered)))
    indexes = {
        (relation, names): index
        for relation, sets in wanted.items()
        for names, index in indexes_of(lowered[relation], sets, is_alone(lowering)).items()
    }
    return [
        [step.reading(lowered, indexes[step.relation, frozenset(step.names(lowered))]) for step in steps]
        for steps in plain
    ]


def indexes_of(
    relation: LoweredRelation, wanted: set[frozenset[str]], alone: bool
) -> dict[frozenset[str], tuple[str, ...]]:
    """Return the key of the index that serves each of some sets of columns of a relation."""
    served = {names: serving_key(relation, set(names)) for names in wanted}
    missing = sorted((names for names in wanted if not served[names]), key=lambda names: (len(names), sorted(names)))
    for names in missing:
        inside = [
            other for other in missing if other < names and alone and served[other][: len(other)] == served[other]
        ]
        first = served[max(inside, key=len)] if inside else ()
        served[names] = (*first, *sorted(names - set(first)))
        if inside:
            served[max(inside, key=len)] = served[names]
    return served


def is_alone(lowering: RelationLowering) -> bool:
    """Return whether one worker has all rows, so that an arrangement also serves the first columns of its key."""
    return lowering.db.is_single_worker


def steps_of(graph: JoinGraph, lowered: list[LoweredRelation], start: int) -> list[LookupStep] | None:
    """Return the steps of the pipeline of one relation; None if it does not reach all relations.

    Lookups by most columns come first, among them those by the key of a table: they find at most one row.
    """
    reached, steps = 1 << start, list[LookupStep]()
    while reached != (1 << len(graph.relations)) - 1:
        pause()
        best: LookupStep | None = None
        for number in range(len(graph.relations)):
            if reached >> number & 1:
                continue
            pairs = zip(graph.members(reached), graph.members(1 << number), strict=True)
            keys = tuple((mine[0], theirs[0]) for mine, theirs in pairs if mine and theirs)
            step = LookupStep(number, keys)
            if keys and (best is None or step.rank(lowered) > best.rank(lowered)):
                best = step
        if best is None:
            return None
        steps.append(best)
        reached |= 1 << best.relation
    return steps


def lower_delta_join(lowering: RelationLowering, graph: JoinGraph, lowered: list[LoweredRelation]) -> LoweredRelation:
    """Return the rows of a graph of joins, as the sum of the pipelines of its relations."""
    columns = [column for relation in lowered for column in relation.names]
    names = unique_names(columns)
    pipelines = [
        DeltaPipelineBuilder(lowering, graph, lowered, names, start, steps).build()
        for start, steps in enumerate(pipelines_of(lowering, graph, lowered))
    ]
    rows = pipelines[0].concat(*pipelines[1:])
    total = LoweredRelation(rows, names)
    late = tuple(term for term in graph.terms if can_fail(term))
    return total.with_rows(rows.filter(condition_of(lowering, late, total))) if late else total


@dataclass
class DeltaPipelineBuilder:
    """Builds the pipeline of one relation."""

    lowering: RelationLowering
    graph: JoinGraph
    lowered: list[LoweredRelation]
    names: dict[Column, str]
    start: int
    steps: list[LookupStep]

    def build(self) -> Collection:
        """Return the rows that the changes of the relation add."""
        source = self.lowered[self.start]
        kept: dict[str, Expression] = {self.names[column]: source.reference(column) for column in source.names}
        rows = source.rows.select(**kept)
        rows = Collection(rows.db, nodes.DeltaSourceNode(rows.schema, frozenset(), rows.node))
        bound = LoweredRelation(rows, {column: self.names[column] for column in source.names})
        bound = self._filtered(bound, 0, 1 << self.start)
        reached = 1 << self.start
        for position, step in enumerate(self.steps):
            bound = self._extended(bound, step, self.steps[position + 1 :] if position == 0 else [])
            bound = self._filtered(bound, reached, reached | 1 << step.relation)
            reached |= 1 << step.relation
        return bound.rows.select(*self.names.values())

    def _filtered(self, rows: LoweredRelation, before: int, now: int) -> LoweredRelation:
        """Return the tuples on which the terms are true whose columns have just become known."""
        ready = [
            term
            for term in self.graph.terms
            if not can_fail(term)
            and not self.graph.owners(columns_of(term)) & ~now
            and (not before or self.graph.owners(columns_of(term)) & ~before)
        ]
        ready += self._inner_equations(before, now)
        return rows.with_rows(rows.rows.filter(condition_of(self.lowering, tuple(ready), rows))) if ready else rows

    def _inner_equations(self, before: int, now: int) -> list[Scalar]:
        """Return the equations between columns of one class within the relation that was just added."""
        added = now & ~before
        return [equation(members[0], other) for members in self.graph.members(added) for other in members[1:]]

    def _extended(self, tuples: LoweredRelation, step: LookupStep, later: list[LookupStep]) -> LoweredRelation:
        """Return the tuples extended by the rows of a relation with equal keys."""
        for mine, theirs in step.keys:
            nullable = tuples.rows.schema.type_of(tuples.names[mine]).nullable
            if nullable and self.lowered[step.relation].rows.schema.type_of(self._own_name(step, theirs)).nullable:
                tuples = tuples.with_rows(tuples.rows.filter(~tuples.reference(mine).is_null()))
        extender, conditions, own = self._extender(step, tuples)
        gates = tuple(self._extender(gate, tuples)[0] for gate in later)
        outputs: dict[str, tuple[int, str]] = {name: (0, name) for name in tuples.names.values()}
        types = {name: tuples.rows.schema.type_of(name) for name in outputs}
        extra = [name for name in own if name not in self._needed(step).values()]
        named = {self.names[column]: name for column, name in self._needed(step).items()}
        named |= {f" {step.relation} {name}": name for name in extra}
        keys = {name: mine for mine, name in extender.key}  # tuples hold the values of key columns already
        outputs |= {name: (0, keys[theirs]) if theirs in keys else (1, theirs) for name, theirs in named.items()}
        types |= {name: extender.node.schema.type_of(theirs) for name, theirs in named.items()}
        schema = Schema.of(types)
        node = nodes.ExtendNode(schema, frozenset(), tuples.rows.node, (extender,), gates, tuple(outputs.values()))
        rows = Collection(tuples.rows.db, node)
        for condition in conditions:
            back: dict[str, Expression] = {theirs: ColumnReference(name) for name, theirs in named.items()}
            rows = rows.filter(with_columns(condition, back))
        every = {**tuples.names, **{column: self.names[column] for column in self._needed(step)}}
        return LoweredRelation(rows, every)

    def _needed(self, step: LookupStep) -> dict[Column, str]:
        return dict(self.lowered[step.relation].names)

    def _own_name(self, step: LookupStep, column: Column) -> str:
        return self.lowered[step.relation].names[column]

    def _extender(
        self, step: LookupStep, tuples: LoweredRelation
    ) -> tuple[nodes.ExtenderSpec, list[Expression], list[str]]:
        """Return the collection that a step looks up, the conditions on its rows, and the columns that these read."""
        relation = self.lowered[step.relation]
        columns = step.names(self.lowered)
        base, conditions = unfiltered(relation.rows.node)
        strict = step.relation > self.start
        key = tuple((self.names[mine], name) for (mine, _), name in zip(step.keys, columns, strict=True))
        if is_indexed_by(base, columns, is_alone(self.lowering)):
            return nodes.ExtenderSpec(base, key, strict), conditions, list(base.schema.names) if conditions else []
        return nodes.ExtenderSpec(self._own_index(relation, step.index), key, strict), [], []

    def _own_index(self, relation: LoweredRelation, index: tuple[str, ...]) -> nodes.PlanNode:
        """Return a relation arranged by some columns: for all queries, or with the rows and columns of this one."""
        shared = shared_index(relation.rows, relation.names.values(), index)
        if shared is not None:
            return shared.node
        kept = dict.fromkeys(relation.names.values())
        rows = relation.rows.select(*kept) if len(kept) < len(relation.rows.schema) else relation.rows
        return nodes.ArrangeNode(rows.schema, frozenset(), rows.node, index)
