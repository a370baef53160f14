"""What an expression becomes once its types are known: a tree of nodes that compute lanes.

    node.run(data) -> (values, codes)     values int64[n or 1]; codes int64[n or 1] or None

A code other than 0 marks a row on which the expression failed; it is a look-up into the messages of its `BindingScope`, and
the value beside it means nothing. One column stands for n equal ones, so constants cost nothing. Null follows SQL: a
function of a null is null, unless it says otherwise, and never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kpg.columns.lane_values import NULL
from kpg.columns.scalar_values import decode_value, encode_value
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch

Bools: TypeAlias = npt.NDArray[np.bool_]
NodeResult: TypeAlias = tuple[Ints, Ints | None]

MAX_MESSAGES = 1000  # a user's function may say something else for every row
_NO_LANES = np.empty((0, 1), np.int64)


class BindingScope:
    """What binding needs to know, and the messages of what can go wrong."""

    __slots__ = ("_codes", "messages", "schema", "symbols")

    def __init__(self, schema: Schema, symbols: Symbols) -> None:
        self.schema = schema
        self.symbols = symbols
        self.messages = ["no failure"]
        self._codes: dict[str, int] = {}

    def code(self, message: str) -> int:
        """The number of a message."""
        code = self._codes.get(message)
        if code is None:
            if len(self.messages) > MAX_MESSAGES:
                return MAX_MESSAGES
            code = self._codes[message] = len(self.messages)
            self.messages.append(message if code < MAX_MESSAGES else "failed, with too many different messages to keep")
        return code


class BoundNode:
    """Computes one lane from the lanes of a batch."""

    __slots__ = ("fallible", "lanes", "type")

    type: Type
    lanes: frozenset[int]
    fallible: bool

    def __init__(self, type_: Type, arguments: Sequence[BoundNode], fallible: bool) -> None:
        self.type = type_
        self.lanes = frozenset().union(*(argument.lanes for argument in arguments))
        self.fallible = fallible or any(argument.fallible for argument in arguments)

    def run(self, data: Ints) -> NodeResult:
        """The value of each row, and a code for each that failed."""
        raise NotImplementedError


class ColumnNode(BoundNode):
    """A column as it is."""

    __slots__ = ("lane",)

    def __init__(self, type_: Type, lane: int) -> None:
        super().__init__(type_, (), False)
        self.lane = lane
        self.lanes = frozenset({lane})

    def run(self, data: Ints) -> NodeResult:
        return data[self.lane], None


class ConstantNode(BoundNode):
    """One value for all rows; `value` is the Python value, from which it may be encoded again as another type."""

    __slots__ = ("_held", "_lane", "untyped", "value")

    def __init__(self, type_: Type, value: Any, lane: int, symbols: Symbols, untyped: bool = False) -> None:
        super().__init__(type_, (), False)
        self.value = value
        self.untyped = untyped
        self._lane = np.array([lane], np.int64)
        self._held = symbols.hold(self._lane) if type_.is_symbolic else None

    def run(self, data: Ints) -> NodeResult:
        return self._lane, None

    @property
    def lane_value(self) -> int:
        """The constant as a lane holds it."""
        return int(self._lane[0])


class TotalFunctionNode(BoundNode):
    """A function that has a value for all values that are not null."""

    __slots__ = ("_arguments", "_compute", "_nullable")

    def __init__(self, type_: Type, arguments: Sequence[BoundNode], compute: Callable[..., Ints]) -> None:
        super().__init__(type_, arguments, False)
        self._arguments = tuple(arguments)
        self._compute = compute
        self._nullable = tuple(place for place, argument in enumerate(arguments) if argument.type.nullable)

    def run(self, data: Ints) -> NodeResult:
        values, codes = run_all(self._arguments, data)
        computed = self._compute(*values)
        if self._nullable:
            computed = np.where(null_rows(values, self._nullable), NULL, computed)
        return computed, codes


class PartialFunctionNode(BoundNode):
    """A function that fails for some values: `compute` also tells which (or None)."""

    __slots__ = ("_arguments", "_code", "_compute", "_nullable")

    def __init__(
        self, type_: Type, arguments: Sequence[BoundNode], compute: Callable[..., tuple[Ints, Bools | None]], code: int
    ) -> None:
        super().__init__(type_, arguments, True)
        self._arguments = tuple(arguments)
        self._compute = compute
        self._code = code
        self._nullable = tuple(place for place, argument in enumerate(arguments) if argument.type.nullable)

    def run(self, data: Ints) -> NodeResult:
        values, codes = run_all(self._arguments, data)
        computed, failed = self._compute(*values)
        if self._nullable:
            null = null_rows(values, self._nullable)
            collides = computed == NULL  # where not null, -2**63 would read as null
            failed = (collides if failed is None else failed | collides) > null
            if np.count_nonzero(null):
                computed = np.where(null, NULL, computed)
        if failed is not None and np.count_nonzero(failed):
            codes = first_code(codes, np.where(failed, self._code, 0))
        return computed, codes


def run_all(nodes: Sequence[BoundNode], data: Ints) -> tuple[list[Ints], Ints | None]:
    """The values of some nodes, and for each row the first code among them."""
    values, codes = [], None
    for node in nodes:
        value, code = node.run(data)
        values.append(value)
        if code is not None:
            codes = first_code(codes, code)
    return values, codes


def first_code(codes: Ints | None, others: Ints | None) -> Ints | None:
    """Row by row the first code that is not 0."""
    if codes is None or others is None:
        return codes if others is None else others
    return np.where(codes != 0, codes, others)


def null_rows(values: Sequence[Ints], places: Sequence[int]) -> Bools:
    """Whether any of the values at some places is null."""
    null: Bools = values[places[0]] == NULL
    for place in places[1:]:
        null = null | (values[place] == NULL)
    return null


def as_bool(values: Bools) -> Ints:
    """The lane of conditions."""
    return values.astype(np.int64)


def any_nullable(nodes: Sequence[BoundNode]) -> bool:
    """Whether some node may give null."""
    return any(node.type.nullable for node in nodes)


def spread_lane(values: Ints, n: int) -> Ints:
    """One value for each of n rows, constant or not."""
    return values if values.shape[0] == n else np.ascontiguousarray(np.broadcast_to(values, n))


def adapt(node: BoundNode, type_: Type, scope: BindingScope) -> BoundNode:
    """A constant as another type, where it has the same value there; any other node as it is."""
    if not isinstance(node, ConstantNode) or (node.type.same(type_) and not node.untyped):
        return node
    if node.untyped:
        return ConstantNode(type_.optional(), None, NULL, scope.symbols)
    try:
        required = type_.optional(False)
        return ConstantNode(required, node.value, encode_value(required, node.value, scope.symbols), scope.symbols)
    except (ValueError, TypeError, SchemaMismatch):
        return node


def adapt_all(nodes: Sequence[BoundNode], scope: BindingScope) -> list[BoundNode]:
    """Constants as the type of the other nodes, where that is possible."""
    anchor = min(nodes, key=_flexibility)
    if isinstance(anchor, ConstantNode) and anchor.untyped:
        return list(nodes)
    return [adapt(node, anchor.type, scope) for node in nodes]


def _flexibility(node: BoundNode) -> int:
    """How easily a node takes another type: a column not at all, null most."""
    if not isinstance(node, ConstantNode):
        return 0
    return 4 if node.untyped else {"float64": 1, "decimal": 2}.get(node.type.kind, 3)


def fold(node: BoundNode, scope: BindingScope) -> BoundNode:
    """The node itself, or the constant it always gives."""
    if node.lanes or isinstance(node, ConstantNode):
        return node
    values, codes = node.run(_NO_LANES)
    if codes is not None and codes[0]:
        return node
    lane = int(values[0])
    return ConstantNode(node.type, decode_value(node.type, lane, scope.symbols), lane, scope.symbols)
