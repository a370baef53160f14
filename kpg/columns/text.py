"""Functions of strings, and conversions from and to strings.

They run as Python functions, once for each distinct value (or combination of values) of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kpg.columns.bound_nodes import (
    BindingScope,
    BoundNode,
    NodeResult,
    adapt,
    any_nullable,
    first_code,
    null_rows,
    run_all,
    spread_lane,
)
from kpg.columns.coercion import refuse
from kpg.columns.decode_column import decode_list
from kpg.columns.encode_column import empty_lane, encode_list
from kpg.columns.expression import FunctionCall
from kpg.columns.lane_values import NULL
from kpg.columns.pause_points import CALLS_PER_PAUSE, pause
from kpg.columns.scalar_values import encode_lanes
from kpg.columns.schema import BINARY, BOOL, INT64, STRING, Type, slots_of
from kpg.columns.updates import Ints

MAX_TEXT_LENGTH = 1 << 24  # characters or bytes of one computed text: a recursion must not exhaust memory


class PerValueNode(BoundNode):
    """A Python function of values that are not null, called once for each distinct combination in a batch.

    If `code` is not 0, the function may raise ValueError, and the row then fails with that code.
    """

    __slots__ = ("_arguments", "_code", "_function", "_nullable", "_scope")

    def __init__(
        self,
        type_: Type,
        arguments: Sequence[BoundNode],
        function: Callable[..., Any],
        scope: BindingScope,
        code: int = 0,
    ) -> None:
        super().__init__(type_, arguments, code != 0)
        self.sliceable = False
        self._arguments = tuple(arguments)
        self._function = function
        self._scope = scope
        self._code = code
        self._nullable = tuple(position for position, argument in enumerate(arguments) if argument.type.nullable)

    def run(self, data: Ints) -> NodeResult:
        n = data.shape[1]
        if n == 0:
            return empty_lane(self.type, 0), None
        values, codes = run_all(self._arguments, data)
        skip = codes != 0 if codes is not None else None  # values of failed rows have no meaning
        if self._nullable:
            null = null_rows(values, self._nullable)
            skip = null if skip is None else null | skip
        if skip is None or not np.count_nonzero(skip):
            computed, failed = self._apply(values)
            return computed, first_code(codes, failed)
        take = ~spread_lane(skip, n)
        computed, row_codes = empty_lane(self.type, n), np.zeros(n, np.int64)
        computed[:] = NULL
        if np.count_nonzero(take):
            computed[..., take], failed = self._apply([spread_lane(value, n)[..., take] for value in values])
            row_codes[take] = 0 if failed is None else failed
        return computed, first_code(codes, row_codes)

    def _apply(self, values: list[Ints]) -> NodeResult:
        distinct, inverse = self._distinct(values)
        parts = [self._compute([lane[..., :CALLS_PER_PAUSE] for lane in distinct])]
        for start in range(CALLS_PER_PAUSE, distinct[0].shape[-1], CALLS_PER_PAUSE):
            pause()
            parts.append(self._compute([lane[..., start : start + CALLS_PER_PAUSE] for lane in distinct]))
        computed, codes = parts[0]
        if len(parts) > 1:
            computed = np.concatenate([lane for lane, _ in parts], axis=-1)
            codes = np.concatenate([np.zeros(lane.shape[-1], np.int64) if c is None else c for lane, c in parts])
        return computed[..., inverse], None if codes is None or not np.count_nonzero(codes) else codes[inverse]

    def _compute(self, distinct: list[Ints]) -> NodeResult:
        """Return the results for some combinations of values, and the codes of those that fail, if some may fail."""
        pairs = zip(self._arguments, distinct, strict=True)
        columns = [decode_list(argument.type, lane, self._scope.symbols) for argument, lane in pairs]
        if not self._code or self._cannot_fail(columns):
            return self._encode(self._results(columns)), None
        computed, codes = empty_lane(self.type, len(columns[0])), np.zeros(len(columns[0]), np.int64)
        computed[:] = 0
        for row, inputs in enumerate(zip(*columns, strict=True)):
            try:
                lanes = encode_lanes(self.type, self._function(*inputs), self._scope.symbols)
                computed[..., row] = lanes if len(lanes) > 1 else lanes[0]
            except ValueError:
                codes[row] = self._code
        return computed, codes

    def _results(self, columns: list[list[Any]]) -> list[Any]:
        """Return the function's results, which cannot fail."""
        return list(map(self._function, *columns))

    def _encode(self, results: list[Any]) -> Ints:
        """Return the lane of the function's results."""
        return encode_list(self.type, results, "", self._scope.symbols)

    def _cannot_fail(self, columns: Sequence[Sequence[Any]]) -> bool:
        """Return whether the function certainly succeeds for these values, though not for all."""
        return False

    def _distinct(self, values: list[Ints]) -> tuple[list[Ints], Ints]:
        """Return the distinct combinations of values, and for each row the index of its combination."""
        varying = [position for position, value in enumerate(values) if value.shape[-1] != 1]
        if not varying:
            return values, np.zeros(1, np.int64)
        if len(varying) == 1 and values[varying[0]].ndim == 1:
            (position,) = varying
            symbolic = self._arguments[position].type.is_symbolic
            distinct, inverse = (
                self._scope.symbols.distinct(values[position])
                if symbolic
                else np.unique(values[position], return_inverse=True)
            )
            return [
                distinct if i == position else spread_lane(value, len(distinct)) for i, value in enumerate(values)
            ], inverse
        n = max(value.shape[-1] for value in values)
        lanes = [lane for value in values for lane in spread_lane(value, n).reshape(-1, n).tolist()]
        rows = list(zip(*lanes, strict=True))
        indices = {row: index for index, row in enumerate(dict.fromkeys(rows))}
        block = np.array(list(indices), np.int64).T
        slots, _ = slots_of([argument.type for argument in self._arguments])
        return [block[slot] for slot in slots], np.array([indices[row] for row in rows], np.int64)


class GrowingTextNode(PerValueNode):
    """Text computed from texts; a row fails if its text is longer than MAX_TEXT_LENGTH.

    In a recursion, text that is joined with itself doubles each round.
    """

    __slots__ = ()

    def _cannot_fail(self, columns: Sequence[Sequence[Any]]) -> bool:
        lengths = [max(map(len, column), default=0) for column in columns]
        return sum(lengths) + (lengths[0] + 1) * lengths[-1] <= MAX_TEXT_LENGTH


# --- binding ----------------------------------------------------------------------------------------------------------


def _texts(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> list[BoundNode]:
    """Return the arguments, all strings or all binary values."""
    kind = next((a.type for a in arguments if a.type.is_symbolic), STRING)
    texts = [adapt(a, kind, scope) for a in arguments]
    if len({a.type.kind for a in texts}) > 1 or not texts[0].type.is_symbolic:
        refuse(call, arguments, 'Only strings are text: .cast("string") the rest.')
    return texts


def _same_type(function: Callable[..., Any]) -> Callable[[FunctionCall, Sequence[BoundNode], BindingScope], BoundNode]:
    def rule(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
        texts = _texts(call, arguments, scope)
        type_ = STRING if texts[0].type.kind == "string" else BINARY
        return PerValueNode(type_.optional(any_nullable(texts)), texts, function, scope)

    return rule


def _condition(function: Callable[..., bool]) -> Callable[[FunctionCall, Sequence[BoundNode], BindingScope], BoundNode]:
    def rule(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
        texts = _texts(call, arguments, scope)
        return PerValueNode(BOOL.optional(any_nullable(texts)), texts, function, scope)

    return rule


def _growing(function: Callable[..., Any]) -> Callable[[FunctionCall, Sequence[BoundNode], BindingScope], BoundNode]:
    def rule(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
        texts = _texts(call, arguments, scope)
        type_ = STRING if texts[0].type.kind == "string" else BINARY
        code = scope.code(f"text longer than {MAX_TEXT_LENGTH:,}", call)
        return GrowingTextNode(type_.optional(any_nullable(texts)), texts, function, scope, code)

    return rule


def _concat(*parts: Any) -> Any:
    if sum(map(len, parts)) > MAX_TEXT_LENGTH:
        raise ValueError
    return parts[0][:0].join(parts)


def _replace(text: Any, old: Any, new: Any) -> Any:
    if len(text) + (len(new) - len(old)) * text.count(old) > MAX_TEXT_LENGTH:
        raise ValueError
    return text.replace(old, new)


def _substring(text: Any, start: int, length: int | None = None) -> Any:
    first = max(start + len(text), 0) if start < 0 else start
    return text[first:] if length is None else text[first : first + max(length, 0)]


lower = _same_type(lambda text: text.lower())
upper = _same_type(lambda text: text.upper())
strip = _same_type(lambda text: text.strip())
concat = _growing(_concat)
replace = _growing(_replace)
contains = _condition(lambda text, part: part in text)
starts_with = _condition(lambda text, part: text.startswith(part))
ends_with = _condition(lambda text, part: text.endswith(part))


def length(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind str.length."""
    (text,) = _texts(call, arguments, scope)
    return PerValueNode(INT64.optional(text.type.nullable), (text,), len, scope)


def substring(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind str.substring."""
    (text,) = _texts(call, arguments[:1], scope)
    numbers = [adapt(a, INT64, scope) for a in arguments[1:]]
    if any(number.type.kind != "int64" for number in numbers):
        refuse(call, arguments, "Positions and lengths are int64.")
    inputs = [text, *numbers]
    return PerValueNode(text.type.optional(any_nullable(inputs)), inputs, _substring, scope)
