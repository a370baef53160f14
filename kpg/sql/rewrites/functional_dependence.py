"""Functional dependence: which columns of a relation decide which others, and which of them identify a row.

    RowIdentity.identity         columns that no two rows agree in; None if rows may repeat; empty for at most one row
    RowIdentity.implications     pairs (a, b): rows that agree in the columns a agree in the columns b
    closure(columns)             all columns that some columns decide

Both follow from the keys of tables, from groups and DISTINCT, and from equations in conditions. They may mention
columns below the relation that it does not show: a projection that leaves out the key of a table but keeps a column
that is equal to it keeps a key. Null agrees with null, as in GROUP BY. Columns whose equal values may look different,
as '1 month' and '30 days', decide nothing by equations.

The keys of tables are a parameter: those that a rewrite may rely on, or those that are likely, for estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kpg.sql.relational.relations import (
    Aggregate,
    BoundJoin,
    BoundRelation,
    Distinct,
    Filter,
    Project,
    Scan,
    SetOperation,
    TopRows,
    Values,
)
from kpg.sql.relational.scalars import Column, ColumnValue, Constant, Scalar, conjuncts
from kpg.sql.rewrites.join_conditions import columns_of, equal_sides

Implication: TypeAlias = tuple[frozenset[Column], frozenset[Column]]
KeyOfTable: TypeAlias = Callable[[str], tuple[str, ...]]

EQUAL_BUT_DIFFERENT: Final = frozenset({"interval", "real", "double precision"})  # types with equal values that differ
NO_COLUMNS: Final[frozenset[Column]] = frozenset()


@dataclass(frozen=True, slots=True)
class RowIdentity:
    """What identifies a row of a relation, and what its columns imply."""

    identity: frozenset[Column] | None = None
    implications: tuple[Implication, ...] = ()

    def closure(self, columns: Iterable[Column]) -> frozenset[Column]:
        """Return all columns that some columns decide, themselves included."""
        known = set(columns)
        waiting = list(self.implications)
        while True:
            later = [(given, implied) for given, implied in waiting if not given <= known]
            if len(later) == len(waiting):
                return frozenset(known)
            for given, implied in waiting:
                if given <= known:
                    known |= implied
            waiting = later

    def is_key(self, columns: Iterable[Column]) -> bool:
        """Return whether no two rows agree in some columns."""
        return self.identity is not None and self.identity <= self.closure(columns)

    def and_implies(self, *more: Implication) -> RowIdentity:
        """Return the same rows, of which more is known."""
        return RowIdentity(self.identity, self.implications + more)


@dataclass(frozen=True, slots=True)
class FunctionalDependence:
    """Finds the identity of the rows of relations, each once."""

    key_of: KeyOfTable
    found: dict[BoundRelation, RowIdentity] = field(default_factory=dict)

    def of(self, relation: BoundRelation) -> RowIdentity:
        """Return what identifies the rows of a relation."""
        if relation not in self.found:
            self.found[relation] = self._of(relation)
        return self.found[relation]

    def is_key(self, columns: Iterable[Column], relation: BoundRelation) -> bool:
        """Return whether no two rows of a relation agree in some columns."""
        return self.of(relation).is_key(columns)

    def _of(self, relation: BoundRelation) -> RowIdentity:
        match relation:
            case Scan():
                return self._scan(relation)
            case Values():
                return RowIdentity(NO_COLUMNS if len(relation.rows) <= 1 else None)
            case Filter():
                return self.of(relation.input).and_implies(*equations(relation.condition))
            case Project():
                return self.of(relation.input).and_implies(*computed(relation))
            case Distinct():
                inner = self.of(relation.input)
                return inner if inner.is_key(relation.columns) else RowIdentity(_all(relation), inner.implications)
            case TopRows():
                return self._top_rows(relation)
            case Aggregate(sets=None):
                keys = frozenset(relation.columns[: len(relation.keys)])
                renamed = zip(relation.keys, relation.columns, strict=False)
                same = [pair for old, new in renamed if old is not new for pair in both_ways(old, new)]
                implied = self.of(relation.input).implications
                return RowIdentity(keys, (*implied, *same, (keys, _all(relation))))
            case SetOperation(all=False):
                return RowIdentity(_all(relation))
            case BoundJoin():
                return self._join(relation)
        return RowIdentity()

    def _scan(self, scan: Scan) -> RowIdentity:
        fields = dict(zip(scan.fields, scan.columns, strict=True))
        key = self.key_of(scan.source)
        if not key or not fields.keys() >= set(key):
            return RowIdentity()
        columns = frozenset(fields[name] for name in key)
        return RowIdentity(columns, ((columns, _all(scan)),))

    def _top_rows(self, relation: TopRows) -> RowIdentity:
        inner = self.of(relation.input)
        limit = relation.limit
        if relation.ties or not isinstance(limit, Constant) or limit.value is None or int(limit.value) > 1:
            return inner
        keys = frozenset(relation.keys)
        return RowIdentity(keys, (*inner.implications, (keys, _all(relation))))

    def _join(self, join: BoundJoin) -> RowIdentity:
        left, right = self.of(join.left), self.of(join.right)
        equal = tuple(equations(join.condition))
        match join.kind:
            case "semi" | "anti":
                return left
            case "mark":
                assert join.mark is not None
                return _deciding(left, frozenset({join.mark}))
            case "inner":
                both = None if left.identity is None or right.identity is None else left.identity | right.identity
                return RowIdentity(both, left.implications + right.implications + equal)
            case "left" | "single":
                return self._left(join, left, right, equal)
        return RowIdentity()

    def _left(
        self, join: BoundJoin, left: RowIdentity, right: RowIdentity, equal: tuple[Implication, ...]
    ) -> RowIdentity:
        """Return what identifies the rows of a left join: those of the left side, if each finds one right row at most.

        What the right side implies does not hold for the missing rows, whose columns are null.
        """
        paired = RowIdentity(right.identity, right.implications + equal)
        if join.kind == "single" or paired.is_key(join.left.columns):
            return _deciding(left, _all(join.right))
        if left.identity is None or right.identity is None:
            return RowIdentity(None, left.implications)
        return RowIdentity(left.identity | right.identity, left.implications)


def equations(condition: Scalar) -> Iterator[Implication]:
    """Yield what the equations of a condition imply: of two columns, and of a column with a constant."""
    for term in conjuncts(condition):
        sides = equal_sides(term)
        if sides is None or sides[0].type != sides[1].type or sides[0].type.name in EQUAL_BUT_DIFFERENT:
            continue
        first, second = sides
        if isinstance(first, ColumnValue) and isinstance(second, ColumnValue):
            yield from both_ways(first.column, second.column)
        elif isinstance(first, ColumnValue) and isinstance(second, Constant):
            yield NO_COLUMNS, frozenset({first.column})
        elif isinstance(first, Constant) and isinstance(second, ColumnValue):
            yield NO_COLUMNS, frozenset({second.column})


def computed(project: Project) -> Iterator[Implication]:
    """Yield what a projection implies: computed columns follow from those that they read."""
    for column, value in zip(project.columns, project.values, strict=True):
        if isinstance(value, ColumnValue):
            if value.column is not column:
                yield from both_ways(value.column, column)
        elif all(read.type.name not in EQUAL_BUT_DIFFERENT for read in columns_of(value)):
            yield columns_of(value), frozenset({column})


def both_ways(first: Column, second: Column) -> tuple[Implication, Implication]:
    """Return that each of two columns decides the other."""
    one, other = frozenset({first}), frozenset({second})
    return (one, other), (other, one)


def _deciding(rows: RowIdentity, columns: frozenset[Column]) -> RowIdentity:
    """Return rows with further columns, of which each row has one value."""
    return rows if rows.identity is None else rows.and_implies((rows.identity, columns))


def _all(relation: BoundRelation) -> frozenset[Column]:
    return frozenset(relation.columns)
