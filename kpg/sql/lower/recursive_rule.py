"""The recursive term of a query as one linear rule, which a single operator maintains instead of a loop.

    WITH RECURSIVE r (a, b) AS (SELECT src, dst FROM e UNION SELECT r.a, e.dst FROM r JOIN e ON r.b = e.src) …
    r(a, d)  <-  r(a, b), e(b, d)

`rule_of` reads a term that joins the recursion with other relations by equal columns and selects columns of them. All
others remain loops: `rule_of` then returns the reason, for EXPLAIN. The operator reads its relations completely. A
recursion that starts elsewhere and follows few rows of a large table is therefore a loop, which looks up rows in shared
arrangements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kpg.seminaive.recursion_rules import RecursionAtom, RecursionRule, RuleSystem, rule
from kpg.seminaive.rule_paths import can_maintain
from kpg.sql.lower.engine_types import engine_type
from kpg.sql.relational.relations import (
    BoundJoin,
    BoundRecursion,
    BoundRelation,
    Definition,
    Filter,
    Project,
    Scan,
    VariableScan,
)
from kpg.sql.relational.scalars import Cast, Column, ColumnValue, Scalar, ScalarCall, conjuncts
from kpg.sql.rewrites.relation_traversal import nodes_of

if TYPE_CHECKING:
    from kpg.api.contracts import Database
    from kpg.sql.lower.row_estimates import RowEstimates

MAX_FOLLOWED_ROWS: Final = 100_000  # to read more, for a recursion that starts elsewhere, costs more than lookups
SEVERAL_CLOCKS: Final = "there are several clocks"  # reasons that concern any operator, and not the shape of a rule
FOLLOWS_FEW: Final = "it may follow few of"


class NoRule(Exception):
    """The reason why a recursive term is not a rule of the operator."""


@dataclass(frozen=True, slots=True)
class ReadRelation:
    """A relation that the rule reads: the columns that matter, and those of them that must not be null."""

    relation: BoundRelation
    columns: tuple[Column, ...]
    joined: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class LinearRule:
    """A recursion as one rule: relation 0 is the recursion, then come those that it reads."""

    reads: tuple[ReadRelation, ...]
    rule: RecursionRule

    def system(self, name: str, columns: int, max_rounds: int) -> RuleSystem:
        """Return the rule as a system for the operator."""
        arities = (columns, *(len(read.columns) for read in self.reads))
        return RuleSystem(name, arities, 1, (self.rule,), max_rounds, insert_only=False)


def rule_of(db: Database, node: BoundRecursion, estimates: RowEstimates) -> LinearRule | str:
    """Return the rule of a recursion, or why it has none."""
    try:
        return _rule_of(db, node, estimates)
    except NoRule as reason:
        return str(reason)


def _rule_of(db: Database, node: BoundRecursion, estimates: RowEstimates) -> LinearRule:
    if db.config.coordinates != 1:
        raise NoRule(SEVERAL_CLOCKS)
    if len(node.definitions) != 1 or node.definitions[0].kind != "union":
        raise NoRule("it is not a single relation by UNION")
    if node.limit is not None:
        raise NoRule("it has a limit of rounds")
    (entry,) = node.definitions
    _check_columns(entry.variable.columns, entry.variable.name)
    shape = RuleShape(entry)
    shape.add(entry.step)
    linear = shape.linear_rule()
    _check_sizes(entry, linear, estimates)
    assert can_maintain(linear.system(entry.variable.name, len(entry.variable.columns), 1))
    return linear


def _check_columns(columns: tuple[Column, ...], name: str) -> None:
    if not columns:
        raise NoRule(f"{name} has no columns")
    wide = next((column for column in columns if engine_type(column.type).lanes > 1), None)
    if wide is not None:
        raise NoRule(f"{name} has a column of type {wide.type}")


def _check_sizes(entry: Definition, linear: LinearRule, estimates: RowEstimates) -> None:
    """Refuse a rule that follows rows of large tables, and does not start with these."""
    assert entry.base is not None
    read = _tables(read.relation for read in linear.reads)
    if read & _tables([entry.base]):
        return
    rows = sum(estimates.facts.of(table).rows for table in read)
    if rows > MAX_FOLLOWED_ROWS:
        raise NoRule(f"{FOLLOWS_FEW} {rows:,} rows")


def _tables(relations: Iterable[BoundRelation]) -> set[str]:
    return {part.source for relation in relations for part in nodes_of(relation) if isinstance(part, Scan)}


@dataclass(slots=True)
class RuleShape:
    """Collects the joins and columns of a recursive term."""

    entry: Definition
    own: VariableScan | None = None
    reads: list[BoundRelation] = field(default_factory=list)
    values: dict[Column, Column] = field(default_factory=dict)  # of projections: what a column is equal to
    equal: dict[Column, Column] = field(default_factory=dict)  # by conditions: a forest of columns

    def add(self, relation: BoundRelation) -> None:
        """Add a part of the term."""
        scans = [part for part in nodes_of(relation) if isinstance(part, VariableScan)]
        if any(scan.variable is not self.entry.variable for scan in scans):
            raise NoRule("it reads another recursion")
        match relation:
            case VariableScan():
                self.own = relation
            case _ if not scans:
                self.reads.append(relation)
            case Project():
                self.add(relation.input)
                for column, value in zip(relation.columns, relation.values, strict=True):
                    if (source := _plain_column(value)) is not column:
                        self.values[column] = source
            case Filter():
                self.add(relation.input)
                self.equate(relation.condition)
            case BoundJoin(kind="inner", dependent=False):
                self.add(relation.left)
                self.add(relation.right)
                self.equate(relation.condition)
            case _:
                raise NoRule(f"its recursive term has more than inner joins ({type(relation).__name__})")

    def equate(self, condition: Scalar) -> None:
        """Note the equal columns of a condition."""
        for term in conjuncts(condition):
            if not isinstance(term, ScalarCall) or term.function.name != "=":
                raise NoRule("its recursive term compares by more than equality")
            left, right = map(_plain_column, term.arguments)
            if engine_type(left.type) != engine_type(right.type):
                raise NoRule(f"it compares {left.type} with {right.type}")
            self.equal[self.root(left)] = self.root(right)

    def root(self, column: Column) -> Column:
        """Return the column that stands for all columns equal to one."""
        while column in self.values or self.equal.get(column, column) is not column:
            column = self.values[column] if column in self.values else self.equal[column]
        return column

    def linear_rule(self) -> LinearRule:
        """Return the rule; a variable of it is a class of equal columns."""
        if self.own is None:
            raise NoRule("its recursive term does not read it")
        sources = [self.own.columns, *(relation.columns for relation in self.reads)]
        head = [self.root(column) for column in self.entry.step.columns]
        uses: dict[Column, int] = {}
        for column in [*head, *(self.root(column) for columns in sources for column in columns)]:
            uses[column] = uses.get(column, 0) + 1
        names = {column: f"v{number}" for number, column in enumerate(uses)}
        reads = tuple(self.read(relation, uses, head) for relation in self.reads)
        joined = {self.root(column) for read in reads for column in read.joined}
        if any(
            uses[self.root(c)] - head.count(self.root(c)) > 1 and self.root(c) not in joined for c in self.own.columns
        ):
            raise NoRule("it compares columns of its own rows")  # null would equal null
        atoms = [RecursionAtom(0, tuple(names[self.root(column)] for column in self.own.columns))]
        for number, read in enumerate(reads, 1):
            atoms.append(RecursionAtom(number, tuple(names[self.root(column)] for column in read.columns)))
        return LinearRule(reads, rule(RecursionAtom(0, tuple(names[column] for column in head)), tuple(atoms)))

    def read(self, relation: BoundRelation, uses: dict[Column, int], head: list[Column]) -> ReadRelation:
        """Return a relation with the columns that the head or another relation mentions."""
        columns = tuple(column for column in relation.columns if uses[self.root(column)] > 1)
        _check_columns(columns, "a relation that it joins")
        joined = tuple(c for c in columns if uses[self.root(c)] - head.count(self.root(c)) > 1)
        return ReadRelation(relation, columns, joined)


def _plain_column(scalar: Scalar) -> Column:
    """Return the column that a scalar is; a cast that keeps the lane, as integer to bigint does, is left out."""
    while isinstance(scalar, Cast) and engine_type(scalar.type) == engine_type(scalar.argument.type):
        scalar = scalar.argument
    if not isinstance(scalar, ColumnValue):
        raise NoRule("its recursive term computes values")
    return scalar.column
