"""The two sides of a join, ready for the engine: key columns of equal types, and no more columns than are read.

A side that is arranged by the key already, perhaps below a filter, is left as it is: the join reads that arrangement.
Any other side is arranged for this join, so it is reduced to the columns that the query reads. Null never equals null
in SQL, but does in the engine: rows with null in a key that may be null on both sides are left out of one side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kpg.columns.expression import ColumnReference, Expression, Literal
from kpg.columns.schema import Type
from kpg.query.lower.unit_input import UNIT
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.relation_lowering import RelationLowering
from kpg.sql.lower.table_arrangements import is_indexed_by, shared_index
from kpg.sql.rewrites.join_conditions import KeyPair


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of a join and the names of its key columns."""

    relation: LoweredRelation
    keys: tuple[str, ...]

    @property
    def is_indexed(self) -> bool:
        """Whether an arrangement by the keys exists, perhaps of more rows or by more columns."""
        alone = self.relation.rows.db.is_single_worker
        return bool(self.keys) and is_indexed_by(self.relation.rows.node, self.keys, alone)

    def key_type(self, position: int) -> Type:
        """Return the type of a key."""
        return self.relation.rows.schema.type_of(self.keys[position])

    def without_null(self, position: int) -> JoinSide:
        """Return the rows whose key is not null."""
        condition = ~ColumnReference(self.keys[position]).is_null()
        return replace(self, relation=self.relation.with_rows(self.relation.rows.filter(condition)))


def sides_of(
    lowering: RelationLowering, left: LoweredRelation, right: LoweredRelation, pairs: Sequence[KeyPair]
) -> tuple[JoinSide, JoinSide]:
    """Return both sides with key columns of equal types."""
    expressions = [
        [lowering.expression(pair.left, left) for pair in pairs],
        [lowering.expression(pair.right, right) for pair in pairs],
    ]
    for position, (a, b) in enumerate(zip(*expressions, strict=True)):
        types = lowering.type_of(a, left.rows), lowering.type_of(b, right.rows)
        if not types[0].same(types[1]):
            common = comparable_type(*types)
            expressions[0][position] = a.cast(common.optional(types[0].nullable))
            expressions[1][position] = b.cast(common.optional(types[1].nullable))
    return _side(left, expressions[0]), _side(right, expressions[1])


def comparable_type(first: Type, second: Type) -> Type:
    """Return a type that holds the values of both types, so that equal values have equal lanes."""
    if first.kind == second.kind == "decimal":
        scale = max(first.scale, second.scale)
        whole = max(first.precision - first.scale, second.precision - second.scale)
        return replace(first, precision=whole + scale, scale=scale, nullable=False)
    order = ("date", "timestamp", "int64", "decimal", "float64")
    return max(first, second, key=lambda type_: order.index(type_.kind)).optional(False)


def _side(relation: LoweredRelation, keys: Sequence[Expression]) -> JoinSide:
    """Return one side; keys that are no columns become columns."""
    names = [key.name if isinstance(key, ColumnReference) else f" key {at}" for at, key in enumerate(keys)]
    side = JoinSide(relation, tuple(names))
    is_plain = all(isinstance(key, ColumnReference) for key in keys) and len(set(names)) == len(names)
    if is_plain and side.is_indexed:
        return side
    shared = shared_index(relation.rows, relation.names.values(), side.keys) if is_plain else None
    if shared is not None:
        return JoinSide(relation.with_rows(shared), side.keys)
    if is_plain and len(relation.rows.schema) == len(set(relation.names.values())):
        return side
    kept = {name: ColumnReference(name) for name in dict.fromkeys(relation.names.values())}
    computed: dict[str, Expression] = {}
    own: list[str] = []
    for at, key in enumerate(keys):
        name = key.name if isinstance(key, ColumnReference) and key.name not in own else f" key {at}"
        own.append(name)
        computed[name] = key
    rows = relation.rows.select(**({**kept, **computed} or {UNIT: Literal(0)}))
    return JoinSide(relation.with_rows(rows), tuple(own))


def without_null_keys(
    sides: tuple[JoinSide, JoinSide], pairs: Sequence[KeyPair], only: int | None = None
) -> tuple[JoinSide, JoinSide]:
    """Return the sides such that null keys meet no null keys, by leaving out rows of one side: of `only` if given."""
    result = list(sides)
    for position, pair in enumerate(pairs):
        if pair.null_safe or not all(side.key_type(position).nullable for side in result):
            continue
        chosen = only if only is not None else (0 if result[1].is_indexed and not result[0].is_indexed else 1)
        result[chosen] = result[chosen].without_null(position)
    return result[0], result[1]
