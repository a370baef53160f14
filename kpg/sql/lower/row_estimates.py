"""Estimates of the number of rows of relations, to order joins by. They are guesses: no statistics are kept.

A table counts its rows. A table without rows yet gets a guess that grows with each table whose key it refers to, so
that a fact table is taken to be larger than its dimensions. A stream that is joined with loaded tables is taken to be
small: it begins without rows, and the query should begin without work on the others. Conditions keep a fixed share of
the rows each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRelation,
    Distinct,
    Filter,
    FunctionScan,
    Project,
    Scan,
    SetOperation,
    TopRows,
    Values,
)
from kpg.sql.relational.scalars import Column, ColumnValue, Constant, IsNull, Not, Or, Scalar, ScalarCall, conjuncts
from kpg.sql.rewrites.functional_dependence import FunctionalDependence
from kpg.sql.rewrites.join_conditions import columns_of, equal_sides
from kpg.sql.rewrites.relation_traversal import nodes_of
from kpg.sql.rewrites.source_facts import QueryFacts
from kpg.sql.rewrites.split_disjunctions import disjuncts

UNKNOWN_ROWS: Final = 1000.0  # of a table that has no rows yet
EQUAL_SHARE: Final = 0.05  # of rows on which a column equals a constant
RANGE_SHARE: Final = 0.3  # of rows on which an inequality holds
OTHER_SHARE: Final = 0.2  # of rows on which another condition holds
REFERENCE_FACTOR: Final = 4.0  # by which a table is guessed to be larger than one that it refers to
GROUP_ROWS: Final = 4.0  # the rows of a group


@dataclass(frozen=True, slots=True)
class RowEstimates:
    """Estimates for the relations of one query."""

    facts: QueryFacts
    found: dict[BoundRelation, float] = field(default_factory=dict)
    guesses: dict[str, float] = field(default_factory=dict)  # of tables without rows, by name
    streams: set[str] = field(default_factory=set)  # that are joined with loaded tables
    guess_keys: bool = True  # whether a table without a key is likely to be identified by its first column
    keys: dict[tuple[BoundRelation, frozenset[Column]], bool] = field(default_factory=dict)
    dependence: FunctionalDependence = field(init=False)  # with likely keys

    def __post_init__(self) -> None:
        object.__setattr__(self, "dependence", FunctionalDependence(self._key_of))

    def table_rows(self, source: str) -> float:
        """Return the number of rows of a table, or a guess if it has none yet."""
        return float(self.facts.of(source).rows) or self.guesses.get(source, UNKNOWN_ROWS)

    def guess_tables(self, relations: Sequence[BoundRelation], classes: Iterable[tuple[Column, ...]]) -> None:
        """Guess the rows of tables that have none yet: more for each table whose key they refer to."""
        self._find_streams(relations)
        refers: dict[str, set[str]] = {}
        for group in classes:
            owned = [(relation, column) for column in group for relation in relations if column in relation.columns]
            tables = [(source_of(column, relation), relation, column) for relation, column in owned]
            keys = {s[0].source for s, relation, c in tables if s and self.is_key(frozenset({c}), relation)}
            for source, relation, column in tables:
                if source is not None and not self.is_key(frozenset({column}), relation):
                    refers.setdefault(source[0].source, set()).update(keys - {source[0].source})

        def depth(table: str, above: frozenset[str]) -> int:
            further = refers.get(table, set()) - above
            return max((1 + depth(other, above | {table}) for other in further), default=0)

        for table in refers.keys() - self.streams:
            self.guesses.setdefault(table, UNKNOWN_ROWS * REFERENCE_FACTOR ** depth(table, frozenset()))

    def _find_streams(self, relations: Iterable[BoundRelation]) -> None:
        sources = {node.source for relation in relations for node in nodes_of(relation) if isinstance(node, Scan)}
        facts = {source: self.facts.of(source) for source in sources}
        if any(fact.rows for fact in facts.values()):
            found = {source for source, fact in facts.items() if not fact.kept} - self.streams
            if found:  # their keys are not guessed any more
                self.streams.update(found)
                self.keys.clear()
                self.dependence.found.clear()

    def is_known(self, relation: BoundRelation) -> bool:
        """Return whether all tables that a relation reads have rows."""
        scans = [node for node in nodes_of(relation) if isinstance(node, Scan)]
        return all(self.facts.of(scan.source).rows for scan in scans)

    def rows(self, relation: BoundRelation) -> float:
        """Return the estimated number of rows of a relation, at least one."""
        if relation not in self.found:
            self.found[relation] = max(1.0, self._rows(relation))
        return self.found[relation]

    def base_rows(self, column: Column, relation: BoundRelation) -> float:
        """Return the number of rows of the table that a column comes from: a bound of its different values."""
        source = source_of(column, relation)
        if source is None:
            return self.rows(relation)
        scan, _ = source
        return max(1.0, self.table_rows(scan.source))

    def is_key(self, columns: frozenset[Column], relation: BoundRelation) -> bool:
        """Return whether no two rows of a relation are likely to have equal values in some columns."""
        if (relation, columns) not in self.keys:
            self.keys[relation, columns] = self.dependence.is_key(columns, relation)
        return self.keys[relation, columns]

    def _key_of(self, source: str) -> tuple[str, ...]:
        """Return the key of a table, or a guess. Of a stream beside loaded tables, which have keys, none is guessed."""
        facts = self.facts.of(source)
        return facts.key or (facts.likely_key if self.guess_keys and source not in self.streams else ())

    def _rows(self, relation: BoundRelation) -> float:
        match relation:
            case Scan():
                return self.table_rows(relation.source)
            case Values():
                return float(len(relation.rows))
            case FunctionScan():
                return 100.0
            case Filter():
                return self.rows(relation.input) * share_of(relation.condition)
            case Project():
                return self.rows(relation.input)
            case Distinct():
                return self.rows(relation.input) / 2
            case Aggregate():
                return self.rows(relation.input) / GROUP_ROWS if relation.keys else 1.0
            case TopRows():
                limit = relation.limit
                known = isinstance(limit, Constant) and limit.value is not None and not relation.keys
                return float(limit.value) if known and isinstance(limit, Constant) else self.rows(relation.input)
            case SetOperation():
                return self.rows(relation.left) + self.rows(relation.right)
            case BoundJoin():
                return self._join_rows(relation)
        return UNKNOWN_ROWS

    def _join_rows(self, join: BoundJoin) -> float:
        left, right = self.rows(join.left), self.rows(join.right)
        match join.kind:
            case "semi":
                return left * min(0.5, max(0.05, right / max(left, right)))
            case "anti":
                return left * 0.5
            case "inner":
                return max(left, right) if conjuncts(join.condition) else left * right
        return left


def estimates_of(nodes: Iterable[BoundRelation], facts: QueryFacts) -> RowEstimates:
    """Return estimates for the nodes of a query; if some of its tables have keys, no other keys are guessed."""
    return RowEstimates(facts, guess_keys=not any(facts.of(n.source).key for n in nodes if isinstance(n, Scan)))


def share_of(condition: Scalar) -> float:
    """Return the share of rows on which a condition is guessed to be true."""
    share = 1.0
    for term in conjuncts(condition):
        share *= share_of_term(term)
    return share


def share_of_term(term: Scalar) -> float:
    """Return the share of rows on which one term is guessed to be true."""
    match term:
        case Or():
            return min(1.0, sum(share_of(branch) for branch in disjuncts(term)))
        case Not(term=IsNull()):
            return 1.0
        case Not():
            return 1 - share_of_term(term.term)
        case ScalarCall() if term.function.name in ("<", "<=", ">", ">="):
            return RANGE_SHARE if len(columns_of(term)) < 2 else 0.5
        case ScalarCall() if term.function.name == "<>":
            return 0.9
    if equal_sides(term) is not None:
        return EQUAL_SHARE
    return OTHER_SHARE


def source_of(column: Column, relation: BoundRelation) -> tuple[Scan, str] | None:
    """Return the scan and the field that a column of a relation comes from, if it is a column of a table."""
    node = relation
    while True:
        match node:
            case Scan():
                return (node, node.fields[node.columns.index(column)]) if column in node.columns else None
            case Project() if column in node.columns:
                value = node.values[node.columns.index(column)]
                if not isinstance(value, ColumnValue):
                    return None
                column, node = value.column, node.input
            case Filter() | TopRows():
                node = node.input
            case BoundJoin(kind="semi" | "anti"):
                node = node.left
            case _:
                return None
