"""Functions of records: make one of fields, ask for its tag, and take a field out.

make_record("$Node", x, y)          a record of the fields, of a branch or with "" of none
record_has_tag(r, "$Node", 2)       whether a record is of that branch
record_field(r, "$Node", 0, 2, t)   a field as a value of type t; without meaning if the record is of another branch

They run as Python functions once for each distinct combination of values in a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from kpg.columns import record_text
from kpg.columns.bound_nodes import BindingScope, BoundNode, any_nullable
from kpg.columns.coercion import refuse
from kpg.columns.expression import Expression, FunctionCall
from kpg.columns.schema import BOOL, RECORD, Type
from kpg.columns.text import MAX_TEXT_LENGTH, PerValueNode
from kpg.columns.updates import Ints

_READ: Final[dict[str, Callable[[str], Any]]] = {
    "int64": int, "uint64": int, "float64": float, "string": record_text.unquote, "record": str,
    "bool": lambda text: text == "true",
}  # fmt: skip
_ABSENT: Final[dict[str, Any]] = {
    "int64": 0, "uint64": 0, "float64": 0.0, "string": "", "record": record_text.NIL, "bool": False,
}  # fmt: skip
_WRITERS: Final[dict[str, Callable[[list[Any]], Iterable[str]]]] = {
    "int64": partial(map, str), "uint64": partial(map, str), "record": iter,
    **{kind: partial(map, record_text.write_scalar) for kind in ("float64", "string", "bool")},
}  # fmt: skip


def make_record(tag: str, *fields: Expression) -> Expression:
    """Return the record of some fields; `tag` is a branch with its dollar sign, or empty."""
    return FunctionCall("record.make", fields, (tag,))


def record_has_tag(record: Expression, tag: str, arity: int) -> Expression:
    """Return whether a record is of a branch, or with an empty tag whether it is not nil."""
    return FunctionCall("record.has_tag", (record,), (tag, arity))


def record_field(record: Expression, tag: str, position: int, arity: int, type_: Type) -> Expression:
    """Return a field of a record as a value of its type; any value if the record has another tag."""
    return FunctionCall("record.field", (record,), (tag, position, arity, type_))


def make(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind record.make."""
    if any(argument.type.kind not in _READ for argument in arguments):
        refuse(call, arguments, f"The fields of records are {', '.join(_READ)}.")
    (tag,) = call.options
    nested = tuple(argument.type.kind == "record" for argument in arguments)
    type_ = RECORD.optional(any_nullable(arguments))
    code = scope.code(f"a record longer than {MAX_TEXT_LENGTH:,} characters", call)
    return MakeRecordNode(type_, arguments, partial(_make, tag, nested), scope, code, tag)


def _make(tag: str, nested: tuple[bool, ...], *fields: Any) -> str:
    write = record_text.write_scalar
    text = record_text.make(
        tag, [value if is_record else write(value) for value, is_record in zip(fields, nested, strict=True)]
    )
    if len(text) > MAX_TEXT_LENGTH:
        raise ValueError(text[:60])
    return text


class CanonicalRecordNode(PerValueNode):
    """A record whose function returns canonical text, which is interned without being read again."""

    __slots__ = ()

    def _encode(self, results: list[Any]) -> Ints:
        return self._scope.symbols.intern(results)


class MakeRecordNode(CanonicalRecordNode):
    """A record of some fields; a row fails if the text of its record is too long."""

    __slots__ = ("_template",)

    def __init__(
        self,
        type_: Type,
        arguments: Sequence[BoundNode],
        function: Callable[..., Any],
        scope: BindingScope,
        code: int,
        tag: str,
    ) -> None:
        super().__init__(type_, arguments, function, scope, code)
        self._template = record_text.make(tag, ["%s"] * len(arguments))

    def _results(self, columns: list[list[Any]]) -> list[Any]:
        """Return the records, written column by column."""
        texts = [list(_WRITERS[a.type.kind](column)) for a, column in zip(self._arguments, columns, strict=True)]
        return [self._template % row for row in zip(*texts, strict=True)]

    def _cannot_fail(self, columns: Sequence[Sequence[Any]]) -> bool:
        texts = [max(map(len, column), default=0) for column in columns if column and isinstance(column[0], str)]
        return 12 * sum(texts) + 40 * len(columns) + 1000 <= MAX_TEXT_LENGTH  # an escape takes at most 6 characters


def has_tag(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind record.has_tag."""
    record = _record(call, arguments)
    tag, arity = call.options
    type_ = BOOL.optional(record.type.nullable)
    return PerValueNode(type_, (record,), partial(_has_tag, tag, arity), scope)


def _has_tag(tag: str, arity: int, text: str) -> bool:
    return record_text.has_tag(text, tag, arity)


def field(call: FunctionCall, arguments: Sequence[BoundNode], scope: BindingScope) -> BoundNode:
    """Bind record.field."""
    record = _record(call, arguments)
    tag, position, arity, type_ = call.options
    function = partial(_field, tag, position, arity, _READ[type_.kind], _ABSENT[type_.kind])
    node = CanonicalRecordNode if type_.kind == "record" else PerValueNode
    return node(type_.optional(record.type.nullable), (record,), function, scope)


def _field(tag: str, position: int, arity: int, read: Callable[[str], Any], absent: Any, text: str) -> Any:
    part = record_text.field(text, tag, position, arity)
    return absent if part is None else read(part)


def _record(call: FunctionCall, arguments: Sequence[BoundNode]) -> BoundNode:
    (record,) = arguments
    if record.type.kind != "record":
        refuse(call, arguments, "Only records have tags and fields.")
    return record
