"""Facts about the tables of a query that rewrites and plans may rely on, and what follows for relations.

not_null     the columns that never hold null          rows     the number of rows now, as an estimate
key          columns that identify a row: SQL's PRIMARY KEY, or the key of a stream, which is a promise
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRecursion,
    BoundRelation,
    Distinct,
    Filter,
    Project,
    RecursiveVariable,
    Scan,
    SetOperation,
    TopRows,
    Values,
    VariableScan,
)
from kpg.sql.relational.scalars import (
    And,
    Case,
    Cast,
    Coalesce,
    Column,
    ColumnValue,
    Constant,
    IsNull,
    Not,
    Or,
    SameValue,
    Scalar,
    ScalarCall,
    conjuncts,
)
from kpg.sql.rewrites.functional_dependence import FunctionalDependence
from kpg.sql.rewrites.join_conditions import columns_of
from kpg.sql.rewrites.relation_traversal import map_relations
from kpg.sql.rewrites.scalar_properties import STRICT_OPERATORS, rejects_null


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Facts about one table or installed view."""

    not_null: frozenset[str] = frozenset()
    key: tuple[str, ...] = ()  # columns that identify a row; empty if none do
    rows: int = 0
    kept: bool = True  # False: a stream, which has no rows when a query is installed
    likely_key: tuple[str, ...] = ()  # what is likely to be the key of a table without one, for estimates only


NO_FACTS: Final = SourceFacts()


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """Facts about the sources of a query."""

    sources: Mapping[str, SourceFacts] = field(default_factory=dict)
    found: dict[str, SourceFacts] = field(default_factory=dict)  # what was asked for, by the names of sources
    variables: dict[RecursiveVariable, frozenset[int]] = field(default_factory=dict)  # positions that are never null
    _not_null: dict[BoundRelation, frozenset[Column]] = field(default_factory=dict)  # a shared relation is read once
    dependence: FunctionalDependence = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dependence", FunctionalDependence(lambda source: self.of(source).key))

    def of(self, source: str) -> SourceFacts:
        """Return the facts about a source."""
        facts = self.found.get(source)
        if facts is None:
            facts = self.found[source] = self.sources.get(source, NO_FACTS)
        return facts

    def not_null(self, relation: BoundRelation) -> frozenset[Column]:
        """Return the columns of a relation that never hold null."""
        known = self._not_null.get(relation)
        if known is None:
            known = self._not_null[relation] = self._find_not_null(relation)
        return known

    def _find_not_null(self, relation: BoundRelation) -> frozenset[Column]:
        match relation:
            case Scan():
                known = self.of(relation.source).not_null
                pairs = zip(relation.columns, relation.fields, strict=True)
                return frozenset(column for column, name in pairs if name in known)
            case Values():
                columns = enumerate(relation.columns)
                return frozenset(
                    c for at, c in columns if all(_never_null(row[at], frozenset()) for row in relation.rows)
                )
            case Filter():
                terms = conjuncts(relation.condition)
                tested = {c for term in terms for c in columns_of(term) if rejects_null(term, frozenset({c}))}
                return self.not_null(relation.input) | tested
            case Distinct() | TopRows():
                return self.not_null(relation.input)
            case Project():
                inner = self.not_null(relation.input)
                values = zip(relation.columns, relation.values, strict=True)
                return frozenset(column for column, value in values if _never_null(value, inner))
            case Aggregate(sets=None):
                inner = self.not_null(relation.input)
                own = relation.columns[len(relation.keys) :]
                calls = zip(own, relation.aggregates, strict=False)
                counts = {column for column, call in calls if call.function.lowering == "count"}
                return frozenset(key for key in relation.keys if key in inner) | counts
            case BoundJoin(kind="inner"):
                return self.not_null(relation.left) | self.not_null(relation.right)
            case BoundJoin(kind="left" | "single" | "semi" | "anti" | "mark"):
                return self.not_null(relation.left)
            case SetOperation(kind="union"):
                both = self._positions(relation.left) & self._positions(relation.right)
                return frozenset(relation.columns[at] for at in both)
            case VariableScan():
                return frozenset(relation.columns[at] for at in self.variables.get(relation.variable, ()))
            case BoundRecursion():
                return self.not_null(relation.body)
        return frozenset()

    def learn_recursions(self, root: BoundRelation) -> None:
        """Find the columns of recursive variables below a relation that are never null.

        `not_null` of relations that read the variables knows them from here on. A recursion inside another one comes
        first, and assumes nothing about the variables of the other.
        """

        def learn(relation: BoundRelation) -> BoundRelation:
            if isinstance(relation, BoundRecursion):
                self._learn(relation)
            return relation

        map_relations(root, learn)

    def _learn(self, recursion: BoundRecursion) -> None:
        """Assume that columns which are never null in the base never are; drop those that a step may make null."""
        assumed = {entry.variable: self._positions(entry.base) for entry in recursion.definitions}
        while assumed != {variable: self.variables.get(variable) for variable in assumed}:
            self.variables.update(assumed)
            self._not_null.clear()
            assumed = {
                entry.variable: assumed[entry.variable] & self._positions(entry.step) for entry in recursion.definitions
            }

    def _positions(self, relation: BoundRelation | None) -> frozenset[int]:
        """Return the positions of the columns that are never null; none without a relation."""
        if relation is None:
            return frozenset()
        known = self.not_null(relation)
        return frozenset(at for at, column in enumerate(relation.columns) if column in known)


def _never_null(scalar: Scalar, not_null: frozenset[Column]) -> bool:
    match scalar:
        case ColumnValue():
            return scalar.column in not_null
        case Constant():
            return scalar.value is not None
        case IsNull() | SameValue():
            return True
        case Cast():
            return _never_null(scalar.argument, not_null)
        case Coalesce():
            return any(_never_null(argument, not_null) for argument in scalar.arguments)
        case Case():
            results = [*(value for _, value in scalar.branches), scalar.otherwise]
            return all(_never_null(value, not_null) for value in results)
    return False


def never_null(scalar: Scalar, not_null: frozenset[Column]) -> bool:
    """Return whether a scalar is never null: a comparison of values that are never null, or such a value."""
    match scalar:
        case ScalarCall() if scalar.function.name in STRICT_OPERATORS:
            return all(never_null(argument, not_null) for argument in scalar.arguments)
        case And() | Or():
            return all(never_null(term, not_null) for term in scalar.terms)
        case Not():
            return never_null(scalar.term, not_null)
    return _never_null(scalar, not_null)
