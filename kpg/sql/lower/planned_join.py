"""A join of two lowered relations: its pairs, and the rows of each side with and without a pair.

    pairs                    the rows of both sides with equal keys, on which the rest of the condition is true
    rows_with_pair(side)     the rows of one side that are in some pair, with their own counts
    rows_without_pair(side)  all rows of the side − rows_with_pair(side)

Without a rest of the condition, a row is in a pair if its key occurs on the other side: the present keys are kept. With
one, the *witnesses* are kept: the distinct values, in pairs, of the columns of the row that the condition reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kpg.api.collection import Collection
from kpg.columns.schema import Schema
from kpg.plan import nodes
from kpg.sql.lower.join_sides import JoinSide, sides_of, without_null_keys
from kpg.sql.lower.lower_rows import condition_of
from kpg.sql.lower.lowered_relation import LoweredRelation, unique_names
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.relational.scalars import Column, Scalar
from kpg.sql.rewrites.join_conditions import KeyPair, columns_of


@dataclass(frozen=True)
class PlannedJoin:
    """Two lowered relations, their pairs of equal keys, and the rest of the condition."""

    lowering: RelationLowering
    left: LoweredRelation
    right: LoweredRelation
    keys: tuple[KeyPair, ...]
    rest: tuple[Scalar, ...]

    @cached_property
    def sides(self) -> tuple[JoinSide, JoinSide]:
        """Both sides with key columns of equal types."""
        return sides_of(self.lowering, self.left, self.right, self.keys)

    @cached_property
    def pairs(self) -> LoweredRelation:
        """The pairs of rows on which the condition is true."""
        pairs = joined(*without_null_keys(self.sides, self.keys))
        if not self.rest:
            return pairs
        return pairs.with_rows(pairs.rows.filter(condition_of(self.lowering, self.rest, pairs)))

    def rows_with_pair(self, side: int) -> LoweredRelation:
        """Return the rows of one side that are in some pair, with their own counts."""
        own = self.sides[side].relation
        if self.rest:
            return own.with_rows(self._rows_with_witness(side))
        other = without_null_keys(self.sides, self.keys, only=1 - side)[1 - side]
        on = dict(zip(self.sides[side].keys, other.keys, strict=True))
        return own.with_rows(own.rows.join(other.relation.rows, on=on or (), how="semi"))

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


def joined(left: JoinSide, right: JoinSide) -> LoweredRelation:
    """Return the pairs of rows with equal keys, with the columns of both sides."""
    sides = (left.relation, right.relation)
    origin: dict[Column, tuple[int, str]] = {
        column: (number, name) for number, side in enumerate(sides) for column, name in side.names.items()
    }
    names = unique_names(origin)
    columns = tuple(origin.values()) or ((0, sides[0].rows.schema.names[0]),)
    types = tuple(sides[number].rows.schema.type_of(name) for number, name in columns)
    schema = Schema(tuple(names.values()) or (sides[0].rows.schema.names[0],), types)
    on = tuple(zip(left.keys, right.keys, strict=True))
    first, second = (side.rows.node for side in sides)
    node = nodes.JoinNode(schema, first.loops | second.loops, first, second, on, columns)
    return LoweredRelation(Collection(sides[0].rows.db, node), names)
