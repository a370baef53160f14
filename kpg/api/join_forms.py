"""The forms of a join: inner, left, right, full, semi, anti and cross, each with an optional condition on the pairs.

    matched(L, R)  =  the pairs of L and R with equal keys for which the condition is true
    semi(L, R)     =  the rows of L with a pair in matched(L, R)
    anti(L, R)     =  L − semi(L, R)
    left(L, R)     =  matched(L, R) + anti(L, R) with null in the columns of R
    right, full    =  the same for the rows of R, and for those of both

All forms are plans of joins, presence and sums, so they read existing indexes of L and R by the key, and a change costs
what its pairs cost. Without a condition, a row of L has a match if the key occurs in R: the present keys of R are kept.
With a condition, the *witnesses* are kept: the distinct values, in matched pairs, of the key and of the columns of L
that the condition reads. A pair on which the condition fails is an error, because its keys are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from kpg.columns.bind import bind_condition
from kpg.columns.expression import ColumnReference, Expression, Literal, columns_in
from kpg.columns.schema import Schema, Type
from kpg.errors import BadPlan
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.collection import Collection

FORMS: Final = ("inner", "left", "right", "full", "semi", "anti", "cross")
LEFT_ROWS_KEPT: Final = ("left", "full")
RIGHT_ROWS_KEPT: Final = ("right", "full")
HAS_NULL_LIKE_VALUE: Final = ("int64", "uint64")  # types without null with a value that is encoded as null is
ANY_PAIR: Final = " pair"  # the column of a witness without columns

Pairs: TypeAlias = tuple[tuple[str, str], ...]
Columns: TypeAlias = tuple[tuple[int, str], ...]  # the side of each, and its name there


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """Two collections, the pairs of key columns, and the condition on pairs, which names the joined columns."""

    left: Collection
    right: Collection
    on: Pairs
    suffix: str
    nulls_equal: bool
    where: Expression | None

    # The joined columns: all of the left, then those of the right that are not a key of the same name.

    def columns(self) -> Columns:
        """Return the side of each joined column, and its name on that side."""
        shared = self.shared_keys()
        right = [(1, name) for name in self.right.node.schema.names if name not in shared]
        return (*[(0, name) for name in self.left.node.schema.names], *right)

    def names(self) -> tuple[str, ...]:
        """Return the names of the joined columns."""
        return self._names_of(self.columns())

    def _names_of(self, columns: Columns) -> tuple[str, ...]:
        names = list(self.left.node.schema.names)
        for side, name in columns:
            if side:
                names.append(name + self.suffix if name in names else name)
        return tuple(names)

    def shared_keys(self) -> set[str]:
        """Return the keys that have one name on both sides and therefore appear once."""
        return {left for left, right in self.on if left == right}

    def schema(self, how: str = "inner") -> Schema:
        """Return the joined columns with their types; those of a side that may be missing are nullable."""
        return self._schema_of(self.columns(), how)

    def _schema_of(self, columns: Columns, how: str) -> Schema:
        return Schema(self._names_of(columns), tuple([self._type(side, name, how) for side, name in columns]))

    def _type(self, side: int, name: str, how: str) -> Type:
        own = (self.right if side else self.left).node.schema.type_of(name)
        if not side and how in RIGHT_ROWS_KEPT and name in self.shared_keys():
            other = self.right.schema.type_of(name)
            widest = replace(own, precision=max(own.precision, other.precision))
            return widest.optional(own.nullable or other.nullable)
        return own.optional(own.nullable or how in (LEFT_ROWS_KEPT if side else RIGHT_ROWS_KEPT))

    # Pairs

    def matched(self) -> Collection:
        """Return the pairs with equal keys for which the condition is true."""
        left, right = self._comparable()
        loops, columns = left.node.loops | right.node.loops, self.columns()
        schema = self._schema_of(columns, "inner")
        pairs = left._make(nodes.JoinNode(schema, loops, left.node, right.node, self.on, columns))
        return pairs if self.where is None else pairs.filter(self.where)

    def _comparable(self) -> tuple[Collection, Collection]:
        """Return both sides without the rows whose null key must not meet an equal one."""
        sides = [self.left, self.right]
        for key in self.on:
            types = [side.node.schema.type_of(name) for side, name in zip(sides, key, strict=True)]
            side = self._side_without_nulls(types)
            if side is not None:
                sides[side] = sides[side].filter(~ColumnReference(key[side]).is_null())
        return sides[0], sides[1]

    def _side_without_nulls(self, types: list[Type]) -> int | None:
        """Return the side whose rows with null in a key column are left out; None if there is no need to."""
        if types[0].nullable and types[1].nullable:
            if self.nulls_equal:
                return None
            return 0 if _reads_index(self.right.node) and not _reads_index(self.left.node) else 1
        if types[0].nullable == types[1].nullable or types[0].kind not in HAS_NULL_LIKE_VALUE:
            return None
        return 0 if types[0].nullable else 1

    # Rows with a match

    def with_match(self, matched: Collection | None = None) -> Collection:
        """Return the left rows with a match, with their own counts; `matched` has the pairs, if they are needed too."""
        left, right = self._comparable()
        if self.where is None:
            return _keep_rows(left, present_keys(right, tuple(name for _, name in self.on)), self.on)
        read = columns_in(self.where)
        key = [name for name, _ in self.on]
        witness = [*key, *(name for name in self.left.schema.names if name in read and name not in key)]
        pairs = matched or self.matched()
        if not witness:
            return _keep_rows(self.left, pairs.select(**{ANY_PAIR: Literal(True)}).distinct(), ())
        return _keep_rows(self.left, pairs.select(*witness).distinct(), tuple((name, name) for name in witness))

    def swapped_with_match(self, matched: Collection) -> Collection:
        """Return the right rows with a match, with their own counts."""
        left, right = self._comparable()
        if self.where is None:
            keys = present_keys(left, tuple(name for name, _ in self.on))
            return _keep_rows(right, keys, tuple((b, a) for a, b in self.on))
        joined = self._right_names()
        read = columns_in(self.where)
        key = [name for _, name in self.on]
        witness = [*key, *(name for name in self.right.schema.names if joined[name] in read and name not in key)]
        if not witness:
            return _keep_rows(self.right, matched.select(**{ANY_PAIR: Literal(True)}).distinct(), ())
        present = matched.select(**{name: ColumnReference(joined[name]) for name in witness}).distinct()
        return _keep_rows(self.right, present, tuple((name, name) for name in witness))

    def _right_names(self) -> dict[str, str]:
        """Return the joined name of each right column."""
        names = {name: joined for (side, name), joined in zip(self.columns(), self.names(), strict=True) if side}
        return names | {name: name for name in self.shared_keys()}

    # Rows without a match

    def outer(self, how: str) -> Collection:
        """Return the pairs, and the rows of one or both sides without a match, with null in the other columns."""
        schema, matched = self.schema(how), self.matched()
        parts = [widened(matched, schema)]
        if how in LEFT_ROWS_KEPT:
            alone = self.left.subtract(self.with_match(matched))
            parts.append(widened(alone, schema, {name: name for name in self.left.schema.names}))
        if how in RIGHT_ROWS_KEPT:
            alone = self.right.subtract(self.swapped_with_match(matched))
            parts.append(widened(alone, schema, {joined: name for name, joined in self._right_names().items()}))
        inputs = tuple(part.node for part in parts)
        loops = frozenset[nodes.Loop]().union(*[node.loops for node in inputs])
        return self.left._make(nodes.ConcatNode(schema, loops, inputs))


def join_as(how: str, plan: JoinPlan) -> Collection:
    """Return one form of a join."""
    if how not in FORMS:
        raise BadPlan(f"no join is called {how!r}", hint=f"The forms are {', '.join(FORMS)}.")
    if how == "cross" and plan.on:
        raise BadPlan("a cross join has no key", hint='Leave out `on`, or choose how="inner".')
    if plan.where is not None:
        bind_condition(plan.where, plan.schema(), plan.left.db.symbols)
    match how:
        case "inner" | "cross":
            return plan.matched()
        case "semi":
            return plan.with_match()
        case "anti":
            return plan.left.subtract(plan.with_match())
    return plan.outer(how)


def present_keys(rows: Collection, keys: tuple[str, ...]) -> Collection:
    """Return the values of some columns that occur, each once."""
    if is_unique(rows.node, keys):
        return rows.select(*keys)
    if not keys:
        return rows.select(**{ANY_PAIR: Literal(True)}).distinct()
    spec = nodes.ReductionSpec("presence")
    return rows._make(nodes.ReduceNode(rows.schema.select(keys), rows.node.loops, rows.node, keys, spec))


def is_unique(node: nodes.PlanNode, keys: tuple[str, ...]) -> bool:
    """Return whether at most one row, with the count 1, has each value of some columns."""
    while isinstance(node, (nodes.FilterNode, nodes.SelectNode)):
        if isinstance(node, nodes.SelectNode):
            read = dict(zip(node.schema.names, node.expressions, strict=True))
            keys = tuple(name for key in keys if (name := name_of_column(read[key])) is not None)
        node = node.input
    if not isinstance(node, nodes.ReduceNode) or not keys or not set(node.keys) <= set(keys):
        return False
    return node.reduction.kind in ("presence", "count", "sums") or (
        node.reduction.kind == "first" and node.reduction.limit == 1
    )


def name_of_column(expression: Expression) -> str | None:
    """Return the column that an expression is the unchanged value of, or None."""
    return expression.name if isinstance(expression, ColumnReference) else None


def _keep_rows(rows: Collection, present: Collection, on: Pairs) -> Collection:
    """Return the rows whose key is among the present ones, which are distinct."""
    columns = tuple((0, name) for name in rows.schema.names)
    loops = rows.node.loops | present.node.loops
    return rows._make(nodes.JoinNode(rows.schema, loops, rows.node, present.node, on, columns))


def widened(rows: Collection, schema: Schema, sources: dict[str, str] | None = None) -> Collection:
    """Return rows with the columns of a schema. `sources` has the column of each; the others are null."""
    if sources is None:
        sources = {name: name for name in schema.names}
    expressions: list[Expression] = []
    for name, type_ in zip(schema.names, schema.types, strict=True):
        if name not in sources:
            expressions.append(Literal(None).cast(type_))
        else:
            column = ColumnReference(sources[name])
            unchanged = rows.schema.type_of(sources[name]) == type_
            expressions.append(column if unchanged else column.cast(type_))
    return rows._make(nodes.SelectNode(schema, rows.node.loops, rows.node, tuple(expressions)))


def _reads_index(node: nodes.PlanNode) -> bool:
    return isinstance(node, (nodes.RelationNode, nodes.InstalledNode, nodes.ArrangeNode))
