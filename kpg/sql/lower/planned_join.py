"""A join of two lowered relations: its pairs, and the rows of each side with and without a pair.

    pairs                    the rows of both sides with equal keys, on which the rest of the condition is true
    rows_with_pair(side)     the rows of one side that are in some pair, with their own counts
    rows_without_pair(side)  all rows of the side − rows_with_pair(side)

Without a rest of the condition, a row is in a pair if its key occurs on the other side: the present keys are kept. If
the key identifies a row of the other side, its rows are the present keys. With a rest, the *witnesses* are kept: the
distinct values, in pairs, of the columns of the row that the condition reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from kpg.api.collection import Collection
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.sql.lower.join_sides import JoinSide, sides_of, without_null_keys
from kpg.sql.lower.lower_rows import condition_of
from kpg.sql.lower.lowered_relation import LoweredRelation, unique_names
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.relations import BoundRelation
from kpg.sql.relational.scalars import Column, ColumnValue, Scalar
from kpg.sql.rewrites.join_conditions import KeyPair, columns_of


@dataclass(frozen=True)
class PlannedJoin:
    """Two lowered relations, their pairs of equal keys, and the rest of the condition.

    `relations` has the bound relations of both sides, if it is known what identifies their rows.
    """

    lowering: RelationLowering
    left: LoweredRelation
    right: LoweredRelation
    keys: tuple[KeyPair, ...]
    rest: tuple[Scalar, ...]
    relations: tuple[BoundRelation, BoundRelation] | None = None

    @cached_property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        """Both sides with key columns of equal types."""
        return sides_of(self.lowering, self.left, self.right, self.keys)

    @cached_property
    def pairs(self) -> LoweredRelation:
        """The pairs of rows on which the condition is true."""
        return self.pairs_with(None)

    def pairs_with(self, wanted: Iterable[Column] | None) -> LoweredRelation:
        """Return the pairs of rows on which the condition is true, with all columns or those that are wanted."""
        read = frozenset[Column]().union(*map(columns_of, self.rest))
        pairs = joined(*without_null_keys(self.sides, self.keys), None if wanted is None else read.union(wanted))
        if not self.rest:
            return pairs
        return pairs.with_rows(pairs.rows.filter(condition_of(self.lowering, self.rest, pairs)))

    def rows_with_pair(self, side: int) -> LoweredRelation:
        """Return the rows of one side that are in some pair, with their own counts."""
        own = self.sides[side].relation
        if self.rest:
            return own.with_rows(self._rows_with_witness(side))
        other = without_null_keys(self.sides, self.keys, only=1 - side)[1 - side]
        on = tuple(zip(self.sides[side].keys, other.keys, strict=True))
        if self.is_identified(1 - side):
            return own.with_rows(rows_in(own.rows, other.relation.rows, on))
        return own.with_rows(own.rows.join(other.relation.rows, on=dict(on) or (), how="semi"))

    def is_identified(self, side: int) -> bool:
        """Return whether the keys identify a row of one side."""
        values = [pair.left if side == 0 else pair.right for pair in self.keys]
        if self.relations is None or not all(isinstance(value, ColumnValue) for value in values):
            return False
        columns = [value.column for value in values if isinstance(value, ColumnValue)]
        return self.lowering.facts.dependence.is_key(columns, self.relations[side])

    def rows_without_pair(self, side: int) -> LoweredRelation:
        """Return the rows of one side that are in no pair."""
        own = self.sides[side].relation
        return own.with_rows(own.rows.subtract(self.rows_with_pair(side).rows))

    def _rows_with_witness(self, side: int) -> Collection:
        own = self.sides[side].relation
        columns = self.columns_read(side)
        witnesses = self.pairs.keep(columns)
        on = {own.names[column]: witnesses.names[column] for column in columns}
        return own.rows.join(witnesses.rows.distinct(), on=on or (), how="semi")

    def columns_read(self, side: int) -> list[Column]:
        """Return the columns of one side that the condition reads."""
        own = self.left if side == 0 else self.right
        scalars = [pair.left if side == 0 else pair.right for pair in self.keys]
        read = frozenset[Column]().union(*[columns_of(scalar) for scalar in (*scalars, *self.rest)])
        return [column for column in own.names if column in read]


def rows_in(rows: Collection, present: Collection, on: tuple[tuple[str, str], ...]) -> Collection:
    """Return the rows whose key is among those of present rows, which it identifies."""
    columns = tuple((0, name) for name in rows.schema.names)
    loops = rows.node.loops | present.node.loops
    return Collection(rows.db, nodes.JoinNode(rows.schema, loops, rows.node, present.node, on, columns))


def joined(left: JoinSide, right: JoinSide, wanted: frozenset[Column] | None = None) -> LoweredRelation:
    """Return the pairs of rows with equal keys, with the columns of both sides, or those of them that are wanted.

    A key is there once: the columns of both sides that are equal in every pair have one name.
    """
    sides = (left.relation, right.relation)
    same = _equal_keys(left, right)
    origin: dict[Column, tuple[int, str]] = {
        column: same.get((number, name), (number, name))
        for number, side in enumerate(sides)
        for column, name in side.names.items()
        if wanted is None or column in wanted
    }
    first = {place: column for column, place in reversed(origin.items())}
    own = unique_names(first[place] for place in dict.fromkeys(origin.values()))
    columns = tuple(dict.fromkeys(origin.values())) or ((0, sides[0].rows.schema.names[0]),)
    types = tuple(sides[number].rows.schema.type_of(name) for number, name in columns)
    schema = Schema(tuple(own.values()) or (sides[0].rows.schema.names[0],), types)
    on = tuple(zip(left.keys, right.keys, strict=True))
    one, other = (side.rows.node for side in sides)
    node = nodes.JoinNode(schema, one.loops | other.loops, one, other, on, columns)
    names = {column: own[first[place]] for column, place in origin.items()}
    return LoweredRelation(Collection(sides[0].rows.db, node), names)


def _equal_keys(left: JoinSide, right: JoinSide) -> dict[tuple[int, str], tuple[int, str]]:
    """Return for each key of a side the key that stands for both: one whose type has no null, if there is one."""
    same: dict[tuple[int, str], tuple[int, str]] = {}
    for position, (a, b) in enumerate(zip(left.keys, right.keys, strict=True)):
        chosen = (1, b) if left.key_type(position).nullable and not right.key_type(position).nullable else (0, a)
        same[0, a] = same[1, b] = chosen
    return same
