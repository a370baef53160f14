"""Bound expressions: a tree of nodes that compute lanes.

    node.run(data) -> (values, codes)     values int64[n or 1]; codes int64[n or 1] or None
                                          values int64[k, n or 1] if the type of the node has k lanes, k > 1

A code other than 0 marks a row on which the expression failed. It is an index into the failures of the `BindingScope`,
and the value of such a row has no meaning. A lane of length 1 stands for n equal values, so constants cost nothing.
Null follows SQL: a function of null is null and never fails, unless the function documents otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kpg.columns.expression_origin import ExpressionOrigin, Failure
from kpg.columns.lane_values import NULL, is_null
from kpg.columns.scalar_values import decode_value, encode_lanes
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch

Bools: TypeAlias = npt.NDArray[np.bool_]
NodeResult: TypeAlias = tuple[Ints, Ints | None]

MAX_MESSAGES = 1000  # distinct failure messages kept; bounds memory, because a user function may raise one per row
_MORE_MESSAGES = f"failed; kpg keeps the first {MAX_MESSAGES:,} different messages only"
_NO_LANES = np.empty((0, 1), np.int64)


class BindingScope:
    """The schema and symbols that an expression is bound to, and its failures by their codes.

    `origin` is the source text of the expression being bound, if a query language compiled it. `nodes` has the nodes of
    functions that are costly to evaluate, so that equal parts of an expression share one, and `computed` their results
    for the batch that is being evaluated.
    """

    __slots__ = ("_codes", "computed", "failures", "nodes", "origin", "schema", "symbols")

    def __init__(self, schema: Schema, symbols: Symbols) -> None:
        self.schema = schema
        self.symbols = symbols
        self.failures = [Failure("no failure")]
        self.origin: ExpressionOrigin | None = None
        self.nodes: dict[Hashable, BoundNode] = {}
        self.computed: dict[BoundNode, tuple[Ints, NodeResult]] = {}  # with the data that it was computed from
        self._codes: dict[Failure, int] = {}

    def code(self, reason: str, call: object | None = None) -> int:
        """Return the failure code of a reason; the message names the source text of `call` too."""
        if self.origin is not None:
            return self.code_of(Failure(f"{reason} in {self.origin.text}", self.origin))
        return self.code_of(Failure(reason if call is None else f"{reason} in {call!r}"))

    def code_of(self, failure: Failure) -> int:
        """Return the code of a failure."""
        code = self._codes.get(failure)
        if code is None:
            if len(self.failures) > MAX_MESSAGES:
                return MAX_MESSAGES
            code = self._codes[failure] = len(self.failures)
            self.failures.append(failure if code < MAX_MESSAGES else Failure(_MORE_MESSAGES))
        return code


class BoundNode(ABC):
    """Computes the lanes of one value from the lanes of a batch."""

    __slots__ = ("columns", "fallible", "sliceable", "type")

    type: Type
    columns: frozenset[int]  # the positions of the columns that it reads
    fallible: bool
    sliceable: bool  # whether slices of a batch cost no more than the whole; then lanes of `data` need not be adjacent

    def __init__(self, type_: Type, arguments: Sequence[BoundNode], fallible: bool) -> None:
        self.type = type_
        self.columns = frozenset().union(*(argument.columns for argument in arguments))
        self.fallible = fallible or any(argument.fallible for argument in arguments)
        self.sliceable = all(argument.sliceable for argument in arguments)

    @abstractmethod
    def run(self, data: Ints) -> NodeResult:
        """Return the value of each row, and a failure code for each row or None."""

    def required_constants(self) -> dict[int, tuple[int, ...]]:
        """Return columns, by position, that have these lane values wherever this condition is true.

        Where such a column has another value that is not null, the condition is false and does not fail.
        """
        return {}


class ColumnNode(BoundNode):
    """The value of a column."""

    __slots__ = ("_slot", "position")

    def __init__(self, schema: Schema, position: int) -> None:
        super().__init__(schema.types[position], (), False)
        self.position = position
        self.columns = frozenset({position})
        self._slot = schema.slots[position]

    def run(self, data: Ints) -> NodeResult:
        return data[self._slot], None


class ConstantNode(BoundNode):
    """One value for all rows; `value` is the Python value, kept so that it can be encoded as another type."""

    __slots__ = ("_held", "_lane", "untyped", "value")

    def __init__(self, type_: Type, value: Any, lanes: Sequence[int], symbols: Symbols, untyped: bool = False) -> None:
        super().__init__(type_, (), False)
        assert len(lanes) == type_.lanes
        self.value = value
        self.untyped = untyped
        self._lane = np.array(lanes, np.int64) if len(lanes) == 1 else np.array(lanes, np.int64).reshape(-1, 1)
        self._held = symbols.hold(self._lane) if type_.is_symbolic else None

    def run(self, data: Ints) -> NodeResult:
        return self._lane, None

    @property
    def lane_value(self) -> int:
        """The lane value of a constant of one lane."""
        assert self._lane.ndim == 1
        return int(self._lane[0])

    @property
    def lane_values(self) -> tuple[int, ...]:
        """The lane values of the constant."""
        return tuple(self._lane.ravel().tolist())


def null_node(type_: Type, scope: BindingScope, untyped: bool = False) -> ConstantNode:
    """Return null as a value of a type."""
    return ConstantNode(type_.optional(), None, (NULL,) * type_.lanes, scope.symbols, untyped)


class TotalFunctionNode(BoundNode):
    """A function that succeeds for all arguments that are not null."""

    __slots__ = ("_nullable", "arguments", "compute")

    def __init__(
        self, type_: Type, arguments: Sequence[BoundNode], compute: Callable[..., Ints], sliceable: bool = True
    ) -> None:
        super().__init__(type_, arguments, False)
        self.sliceable &= sliceable
        self.arguments = tuple(arguments)
        self.compute = compute
        self._nullable = tuple(position for position, argument in enumerate(arguments) if argument.type.nullable)

    def run(self, data: Ints) -> NodeResult:
        values, codes = run_all(self.arguments, data)
        computed = self.compute(*values)
        if self._nullable:
            computed = np.where(null_rows(values, self._nullable), NULL, computed)
        return computed, codes


class PartialFunctionNode(BoundNode):
    """A function that fails for some arguments: `compute` also returns the failed rows, or None."""

    __slots__ = ("_code", "_nullable", "arguments", "compute")

    def __init__(
        self, type_: Type, arguments: Sequence[BoundNode], compute: Callable[..., tuple[Ints, Bools | None]], code: int
    ) -> None:
        super().__init__(type_, arguments, True)
        self.arguments = tuple(arguments)
        self.compute = compute
        self._code = code
        self._nullable = tuple(position for position, argument in enumerate(arguments) if argument.type.nullable)

    def run(self, data: Ints) -> NodeResult:
        values, codes = run_all(self.arguments, data)
        computed, failed = self.compute(*values)
        if self._nullable:
            null = null_rows(values, self._nullable)
            collides = is_null(computed)  # a result of -2**63 would read as null
            failed = (collides if failed is None else failed | collides) > null
            if np.count_nonzero(null):
                computed = np.where(null, NULL, computed)
        if failed is not None and np.count_nonzero(failed):
            codes = first_code(codes, np.where(failed, self._code, 0))
        return computed, codes


def run_all(nodes: Sequence[BoundNode], data: Ints) -> tuple[list[Ints], Ints | None]:
    """Return the values of several nodes, and for each row the first failure code among them."""
    values, codes = [], None
    for node in nodes:
        value, code = node.run(data)
        values.append(value)
        if code is not None:
            codes = first_code(codes, code)
    return values, codes


def first_code(codes: Ints | None, others: Ints | None) -> Ints | None:
    """Return for each row the first code that is not 0."""
    if codes is None or others is None:
        return codes if others is None else others
    return np.where(codes != 0, codes, others)


def null_rows(values: Sequence[Ints], positions: Sequence[int]) -> Bools:
    """Return the rows in which some of the values at `positions` is null."""
    null: Bools = is_null(values[positions[0]])
    for position in positions[1:]:
        null = null | is_null(values[position])
    return null


def as_bool(values: Bools) -> Ints:
    """Return conditions as a lane."""
    return values.astype(np.int64)


def any_nullable(nodes: Sequence[BoundNode]) -> bool:
    """Return whether some node may be null."""
    return any(node.type.nullable for node in nodes)


def spread_lane(values: Ints, n: int) -> Ints:
    """Return a value for each of n rows; a constant is repeated."""
    if values.shape[-1] == n:
        return values
    return np.ascontiguousarray(np.broadcast_to(values, (*values.shape[:-1], n)))


def adapt(node: BoundNode, type_: Type, scope: BindingScope) -> BoundNode:
    """Return a constant as another type if it has the same value in it; return any other node unchanged."""
    if not isinstance(node, ConstantNode) or (node.type.same(type_) and not node.untyped):
        return node
    if node.untyped:
        return null_node(type_, scope)
    try:
        required = type_.optional(False)
        return ConstantNode(required, node.value, encode_lanes(required, node.value, scope.symbols), scope.symbols)
    except (ValueError, TypeError, SchemaMismatch):
        return node


def adapt_all(nodes: Sequence[BoundNode], scope: BindingScope) -> list[BoundNode]:
    """Return constants as the type of the other nodes, where that is possible."""
    anchor = min(nodes, key=_flexibility)
    if isinstance(anchor, ConstantNode) and anchor.untyped:
        return list(nodes)
    return [adapt(node, anchor.type, scope) for node in nodes]


def _flexibility(node: BoundNode) -> int:
    """Return how easily a node takes another type: a column not at all, an untyped null most easily."""
    if not isinstance(node, ConstantNode):
        return 0
    return 4 if node.untyped else {"float64": 1, "decimal": 2}.get(node.type.kind, 3)


def fold(node: BoundNode, scope: BindingScope) -> BoundNode:
    """Return the constant value of a node that reads no column, or the node itself."""
    if node.columns or isinstance(node, ConstantNode):
        return node
    values, codes = node.run(_NO_LANES)
    if codes is not None and codes[0]:
        return node
    lanes = values[..., 0].reshape(-1).tolist()
    return ConstantNode(node.type, decode_value(node.type, lanes, scope.symbols), lanes, scope.symbols)
