"""t[]: arrays of values of a type t, which may be null. The lane is the id of the array's text in the symbol table.

    equal lanes  ⇔  equal elements in the same order

The text is a JSON list with one spelling for each value of t, so that equal arrays have equal texts. The Python value
is a tuple; a column also accepts lists. Arrays have no order and no functions: they are results, such as those of
array_agg. Cost: Python code for each element, once for each array.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kpg.columns.arrow_arrays import validity
from kpg.columns.column_types.column_type import SymbolicType, null_mask, register
from kpg.columns.column_types.tagged_text import MESSAGE_FORMAT, TaggedText
from kpg.columns.unfit_values import UnfitValue, wrong_class
from kpg.columns.updates import Ints
from kpg.errors import TypeMismatch

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

AS_JSON: Final = ("int64", "uint64", "float64", "bool", "string", "record", "jsonb")  # JSON has their Python values


def _write_elements(values: Sequence[Any]) -> str:
    return json.dumps([_message_of(value) for value in values])


def _message_of(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [_message_of(element) for element in value]
    text = MESSAGE_FORMAT.of_value(value)
    if text is None:
        raise ValueError(f"a value of type {type(value).__name__} cannot be sent")
    return {text.tag: text.write(value)}


def _read_elements(text: str) -> tuple[Any, ...]:
    values = json.loads(text)
    if not isinstance(values, list):
        raise ValueError(text)
    return tuple(map(_value_of_message, values))


def _value_of_message(json_value: Any) -> Any:
    if isinstance(json_value, list):
        return tuple(map(_value_of_message, json_value))
    if not isinstance(json_value, dict):
        return json_value
    ((tag, text),) = json_value.items()
    reader = MESSAGE_FORMAT.of_tag(tag)
    if reader is None or not isinstance(text, str):
        raise ValueError(text)
    return reader.read(text)


class ArrayType(SymbolicType):
    """Arrays."""

    name = "array"
    has_element = True
    is_ordered = False
    large_arrow = pa.large_string()
    message_text = TaggedText("array", (tuple, list), _write_elements, _read_elements, 'Write {"array": "[1, null]"}.')

    def default_parameters(self) -> tuple[int, int]:
        raise TypeMismatch("an array needs the type of its elements", hint='Write it as in "int64[]".')

    def spelling(self, type_: Type) -> str:
        return f"{type_.element}[]"

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        if not isinstance(value, (list, tuple)):
            raise wrong_class(type_, value)
        return symbols.intern_one(json.dumps(_to_json(_element(type_), value, symbols), ensure_ascii=False))

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        return None

    def decode_list(self, type_: Type, lane: Ints, symbols: Symbols) -> list[Any]:
        element = _element(type_)
        return [None if text is None else tuple(_from_json(element, json.loads(text))) for text in symbols.values(lane)]

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.list_(_element(type_).to_arrow())

    def accepts_arrow(self, source: pa.DataType) -> bool:
        return bool(pa.types.is_list(source) or pa.types.is_large_list(source))

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        values = self.arrow_to_list(type_, array)
        try:
            return np.array([0 if v is None else self.encode_value(type_, v, symbols) for v in values], np.int64)
        except TypeError as error:
            raise ValueError(str(error)) from None

    def decode_arrow(self, type_: Type, lane: Ints, symbols: Symbols) -> Any:
        from kpg.columns.encode_column import encode_list  # which imports this package

        element = _element(type_).optional()
        arrays = [value or () for value in self.decode_list(type_, lane, symbols)]
        offsets = np.zeros(len(arrays) + 1, np.int32)
        np.cumsum([len(array) for array in arrays], out=offsets[1:])
        lanes = encode_list(element, [value for array in arrays for value in array], "", symbols)
        values = element.definition.decode_arrow(element, lanes, symbols)
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        buffers = [validity(null_mask(type_, lane)), pa.py_buffer(offsets)]  # type: ignore[arg-type]
        return pa.Array.from_buffers(self.to_arrow(type_), len(arrays), buffers, children=[values])

    def arrow_to_list(self, type_: Type, column: Any) -> list[Any]:
        element = _element(type_)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        values: list[Any] = []
        for chunk in chunks:
            for row in range(len(chunk)):
                cell = chunk[row]
                known = None if cell is None or not cell.is_valid else cell.values
                values.append(None if known is None else tuple(element.definition.arrow_to_list(element, known)))
        return values


def _element(type_: Type) -> Type:
    assert type_.element is not None
    return type_.element


def _to_json(element: Type, values: Sequence[Any], symbols: Symbols) -> list[Any]:
    """Return the elements as JSON values, each in its one spelling."""
    from kpg.columns.scalar_values import decode_value, encode_lanes  # which imports this package

    nullable, written = element.optional(), []
    for value in values:
        try:
            known = decode_value(nullable, encode_lanes(nullable, value, symbols), symbols)
        except (ValueError, TypeError) as error:
            raise UnfitValue(f"an element of {element}[] does not fit: {error}") from None
        written.append(_element_to_json(element, known, symbols))
    return written


def _element_to_json(element: Type, value: Any, symbols: Symbols) -> Any:
    if value is None or element.kind in AS_JSON:
        return value
    if element.element is not None:
        return _to_json(element.element, value, symbols)
    text = element.definition.message_text
    assert text is not None
    return text.write(value)


def _from_json(element: Type, values: list[Any]) -> list[Any]:
    if element.kind in AS_JSON:
        return values
    if element.element is not None:
        inner = element.element
        return [None if value is None else tuple(_from_json(inner, value)) for value in values]
    text = element.definition.message_text
    assert text is not None
    return [None if value is None else text.read(value) for value in values]


register(ArrayType())
