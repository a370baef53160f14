"""Convert arguments to a common type, without changing any value.

Different types do not mix, with three exceptions. In arithmetic, an int64 becomes a float64 or a decimal if the other
argument is one; decimals take the larger scale; a type without null becomes nullable if the other one is. A constant
takes the type of the column that it is combined with, if that type has the same value
(`kpg.columns.bound_nodes.adapt`). These rules concern pairs of types, so they are here and not in the files of the
types.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NoReturn

import numpy as np

from kpg.columns import floats
from kpg.columns.bound_nodes import (
    BindingScope,
    BoundNode,
    ConstantNode,
    PartialFunctionNode,
    TotalFunctionNode,
    any_nullable,
)
from kpg.columns.column_types.uint64_type import from_unsigned_lane
from kpg.columns.decimals import rescaled
from kpg.columns.expression import FunctionCall
from kpg.columns.lane_values import NULL
from kpg.columns.overflow import Checked
from kpg.columns.schema import FLOAT64, Type, decimal
from kpg.columns.updates import Ints
from kpg.columns.wide_integers import MAX_DIGITS, to_floats, widen
from kpg.errors import TypeMismatch

LEAST_VALUES: Final = {"int64": "-2**63", "uint64": "0"}  # encoded as null is, so a nullable column cannot hold them


def refuse(call: FunctionCall, arguments: Sequence[BoundNode], hint: str | None = None) -> NoReturn:
    """Raise TypeMismatch: a function is not defined for these types."""
    types = " and ".join("null" if isinstance(a, ConstantNode) and a.untyped else str(a.type) for a in arguments)
    raise TypeMismatch(f"{call.op!r} does not fit {types}", detail=f"In {call!r}.", hint=hint)


def int_to_float(lane: Ints) -> Ints:
    """Return the float64 lane of an int64 lane, each value rounded to the nearest float."""
    return floats.to_lane(lane.astype(np.float64))


def unsigned_to_float(lane: Ints) -> Ints:
    """Return the float64 lane of a uint64 lane, each value rounded to the nearest float."""
    return floats.to_lane(from_unsigned_lane(lane).astype(np.float64))


def decimal_to_float(scale: int, lane: Ints) -> Ints:
    """Return the float64 lane of decimals of one lane or of two."""
    return floats.to_lane(lane.astype(np.float64) / 10.0**scale if lane.ndim == 1 else to_floats(lane, scale))


def as_float(node: BoundNode) -> BoundNode:
    """Return a node of any numeric type as float64."""
    if node.type.kind == "int64":
        return TotalFunctionNode(FLOAT64.optional(node.type.nullable), [node], int_to_float)
    if node.type.kind == "uint64":
        return TotalFunctionNode(FLOAT64.optional(node.type.nullable), [node], unsigned_to_float)
    if node.type.kind == "decimal":
        return TotalFunctionNode(
            FLOAT64.optional(node.type.nullable), [node], partial(decimal_to_float, node.type.scale)
        )
    return node


def common_type(call: FunctionCall, arguments: Sequence[BoundNode]) -> Type:
    """Return the common type of arguments of one kind: nullable if one of them is, with the largest scale."""
    first = arguments[0].type
    if isinstance(arguments[0], ConstantNode) and arguments[0].untyped:
        refuse(call, arguments, 'Give null a type: lit(None).cast("int64").')
    for argument in arguments:
        if argument.type.kind != first.kind:
            refuse(call, arguments, "The types must be equal: cast one of them.")
    nullable = any_nullable(arguments)
    if first.kind != "decimal":
        return first.optional(nullable)
    scale = max(a.type.scale for a in arguments)
    whole = max(a.type.precision - a.type.scale for a in arguments)
    return decimal(min(MAX_DIGITS, whole + scale), scale).optional(nullable)


def coerce(node: BoundNode, type_: Type, scope: BindingScope) -> BoundNode:
    """Return a node as a type of the same kind with a larger scale, or with null."""
    if node.type.kind == "decimal" and (not node.type.same(type_) or node.type.precision > type_.precision):
        if node.type.scale == type_.scale and node.type.precision <= type_.precision:
            return TotalFunctionNode(type_.optional(node.type.nullable), [node], widen)
        return rescaled(node, type_.optional(node.type.nullable), scope.code(f"{type_} overflow"))
    if type_.kind in LEAST_VALUES and type_.nullable and not node.type.nullable:
        if isinstance(node, ConstantNode) and node.lane_value != NULL:
            return node
        reason = f"a nullable {type_.kind} column cannot hold {LEAST_VALUES[type_.kind]}"
        return PartialFunctionNode(type_, [node], refuse_lowest, scope.code(reason))
    return node


def refuse_lowest(lane: Ints) -> Checked:
    """Return the lane; the number that stands for null fails."""
    return lane, lane == NULL
