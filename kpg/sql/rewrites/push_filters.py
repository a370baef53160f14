"""Move conditions to the rows that they concern: below joins, groups, projections and set operations.

A condition on one side of a join filters that side, one on both sides becomes part of the join's condition, one on the
keys of a group filters the rows of the group. An outer join whose missing rows a condition rejects becomes an inner
one. A condition that can fail is not moved to more rows than it was written for: it stays above, or in the condition
of an inner join, where a failure counts only if all other terms are true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRelation,
    Distinct,
    Filter,
    Project,
    Query,
    Scan,
    SetOperation,
    TopRows,
    inputs,
)
from kpg.sql.relational.scalars import TRUE, Column, ColumnValue, IsNull, Not, SameValue, Scalar, conjuncts
from kpg.sql.rewrites.join_conditions import columns_of, equation, is_column_pair
from kpg.sql.rewrites.node_builders import extend, flattened, join, keep, value_of, where
from kpg.sql.rewrites.relation_traversal import substitute, with_inputs
from kpg.sql.rewrites.scalar_properties import can_fail, ignores_null, rejects_null
from kpg.sql.rewrites.source_facts import QueryFacts, never_null
from kpg.sql.rewrites.split_disjunctions import implied_terms
from kpg.sql.rewrites.truth_terms import FALSE, asserted, is_asserted

Terms = Sequence[Scalar]


def push_filters(query: Query, facts: QueryFacts) -> Query:
    """Return a query whose conditions are where they filter the fewest rows."""
    facts.learn_recursions(query.relation)
    pusher = FilterPusher(facts, parents_of(query.relation))
    return replace(query, relation=pusher.push(query.relation, ()))


def parents_of(root: BoundRelation) -> dict[BoundRelation, int]:
    """Return the number of nodes that read each node."""
    counts: dict[BoundRelation, int] = {root: 1}
    stack = [root]
    while stack:
        for inner in inputs(stack.pop()):
            if inner not in counts:
                counts[inner] = 0
                stack.append(inner)
            counts[inner] += 1
    return counts


@dataclass
class FilterPusher:
    """Pushes terms down. A node that several nodes read is not filtered for one of them."""

    facts: QueryFacts
    parents: dict[BoundRelation, int]
    done: dict[BoundRelation, BoundRelation] = field(default_factory=dict)

    def push(self, node: BoundRelation, terms: Iterable[Scalar]) -> BoundRelation:
        """Return the rows of a node on which some terms are true; its columns are the same."""
        terms = flattened(terms)
        if self.parents.get(node, 1) > 1:
            if node not in self.done:
                self.done[node] = self._push(node, ())
            return where(self.done[node], terms)
        return self._push(node, terms)

    def _push(self, node: BoundRelation, terms: Terms) -> BoundRelation:
        match node:
            case Filter():
                every = flattened((*terms, node.condition))
                every = flattened((*every, *(more for term in every for more in implied_terms(term))))
                kept = [term for term in every if can_fail(term)]
                moved = [term for term in every if not can_fail(term)]
                return where(self.push(self._without_missing(node.input, kept), moved), kept)
            case Project():
                return self._project(node, terms)
            case Distinct():
                inner = self.push(node.input, terms)
                return Distinct(inner.columns, inner)
            case Aggregate() | TopRows():
                return self._grouped(node, terms)
            case SetOperation():
                return self._set_operation(node, terms)
            case BoundJoin():
                return self._join(node, terms)
        known = self.facts.not_null(node) if isinstance(node, Scan) else frozenset[Column]()
        terms = [term for term in terms if not is_never_null_test(term, known)]
        return where(with_inputs(node, tuple(self.push(inner, ()) for inner in inputs(node))), terms)

    def _project(self, node: Project, terms: Terms) -> BoundRelation:
        values = dict(zip(node.columns, node.values, strict=True))
        below = {term: substitute(term, values) for term in terms}
        moved = [inner for inner in below.values() if not can_fail(inner)]
        kept = {term: inner for term, inner in below.items() if can_fail(inner)}
        rows = self._without_missing(node.input, kept.values())
        return where(replace(node, input=self.push(rows, moved)), kept)

    def _without_missing(self, node: BoundRelation, above: Iterable[Scalar]) -> BoundRelation:
        """Return a left join as an inner one, if a term that stays above it ignores rows without a match."""
        if not isinstance(node, BoundJoin) or node.kind != "left" or node.dependent or self.parents.get(node, 1) > 1:
            return node
        missing = frozenset(node.right.columns)
        return replace(node, kind="inner") if any(ignores_null(term, missing) for term in above) else node

    def _grouped(self, node: Aggregate | TopRows, terms: Terms) -> BoundRelation:
        keys = frozenset(node.keys)
        moved = [term for term in terms if columns_of(term) and columns_of(term) <= keys]
        kept = [term for term in terms if term not in moved]
        return where(with_inputs(node, (self.push(node.input, moved),)), kept)

    def _set_operation(self, node: SetOperation, terms: Terms) -> BoundRelation:
        sides: list[BoundRelation] = []
        for side in (node.left, node.right):
            values = dict(zip(node.columns, map(value_of, side.columns), strict=True))
            sides.append(self.push(side, [substitute(term, values) for term in terms]))
        return replace(node, left=sides[0], right=sides[1])

    # Joins

    def _join(self, node: BoundJoin, terms: Terms) -> BoundRelation:
        left, right = frozenset(node.left.columns), frozenset(node.right.columns)
        if node.kind == "inner" and not node.dependent:
            return self._inner(node, terms)
        if node.kind == "left" and any(rejects_null(term, right) for term in terms):
            return self._inner(replace(node, kind="inner"), terms)
        if node.kind == "full":
            return self._full(node, terms)
        if node.kind == "mark":
            decided = self._decided_mark(node, terms)
            if decided is not None:
                return decided
        moved = [term for term in terms if columns_of(term) <= left]
        kept = [term for term in terms if not columns_of(term) <= left]
        own = flattened((node.condition,))
        if node.kind == "semi":
            moved += [term for term in own if columns_of(term) and columns_of(term) <= left and not can_fail(term)]
            own = tuple(term for term in own if term not in moved)
        below = [term for term in own if self._filters_right(node, term, right)]
        rest = [term for term in own if term not in below]
        sides = self.push(node.left, moved), self.push(node.right, map(_plain, below))
        return where(join(node.kind, *sides, rest, mark=node.mark, dependent=node.dependent), kept)

    def _filters_right(self, node: BoundJoin, term: Scalar, right: frozenset[Column]) -> bool:
        """Return whether a term can filter the right side, because rows on which it is not true have no match."""
        if not columns_of(term) or not columns_of(term) <= right or can_fail(term) or node.dependent:
            return False
        return node.kind != "mark" or is_asserted(term)

    def _inner(self, node: BoundJoin, terms: Terms) -> BoundRelation:
        every = flattened((*terms, node.condition))
        every = flattened((*every, *(more for term in every for more in implied_terms(term))))
        known = self.facts.not_null(node.left) | self.facts.not_null(node.right)
        every = tuple(plain_equation(term, known) for term in every)
        sides: list[BoundRelation] = []
        for side in (node.left, node.right):
            columns = frozenset(side.columns)
            own = [term for term in every if columns_of(term) <= columns and not can_fail(term)]
            sides.append(self.push(side, own))
            every = tuple(term for term in every if term not in own)
        return join("inner", sides[0], sides[1], every)

    def _full(self, node: BoundJoin, terms: Terms) -> BoundRelation:
        """Return a full join, without the missing rows that terms reject."""
        left, right = frozenset(node.left.columns), frozenset(node.right.columns)
        needs_left, needs_right = (any(rejects_null(term, side) for term in terms) for side in (left, right))
        if needs_left and needs_right:
            return self._inner(replace(node, kind="inner"), terms)
        if needs_left:
            return self._join(replace(node, kind="left"), terms)
        if needs_right:
            swapped = join("left", node.right, node.left, (node.condition,))
            return keep(self._join(swapped, terms), node.columns)
        return where(with_inputs(node, (self.push(node.left, ()), self.push(node.right, ()))), terms)

    def _decided_mark(self, node: BoundJoin, terms: Terms) -> BoundRelation | None:
        """Return a semi or anti join for a mark join of which only the rows with one mark are kept."""
        assert node.mark is not None
        mark = value_of(node.mark)
        negated = [term for term in terms if isinstance(term, Not) and term.term == mark]
        condition = [_plain(term) for term in conjuncts(node.condition)]
        if mark in terms:
            decided, value = join("semi", node.left, node.right, condition), TRUE
        elif negated and self._is_never_null(node):
            decided, value = join("anti", node.left, node.right, condition), FALSE
        else:
            return None
        rest = [term for term in terms if term != mark and term not in negated]
        moved = [term for term in rest if node.mark not in columns_of(term)]
        kept = [term for term in rest if node.mark in columns_of(term)]
        return where(extend(self._join(decided, moved), {node.mark: value}), kept)

    def _is_never_null(self, node: BoundJoin) -> bool:
        known = self.facts.not_null(node.left) | self.facts.not_null(node.right)
        return all(is_asserted(term) or never_null(term, known) for term in conjuncts(node.condition))


def plain_equation(term: Scalar, never_null_columns: frozenset[Column]) -> Scalar:
    """Return an equation in which null equals null as a plain one, if one of its columns is never null.

    The columns of plain equations are keys of any joins between their relations.
    """
    if isinstance(term, SameValue) and is_column_pair(term.left, term.right):
        if not columns_of(term).isdisjoint(never_null_columns):
            return equation(term.left.column, term.right.column)  # type: ignore[attr-defined]
    return term


def is_never_null_test(term: Scalar, never_null_columns: frozenset[Column]) -> bool:
    """Return whether a term asks that a column is not null that never is."""
    return (
        isinstance(term, Not)
        and isinstance(term.term, IsNull)
        and isinstance(term.term.argument, ColumnValue)
        and term.term.argument.column in never_null_columns
    )


def _plain(term: Scalar) -> Scalar:
    return asserted(term) if is_asserted(term) else term
