"""jsonb: JSON values in canonical form. The lane is the id of the text in the symbol table.

    equal lanes  ⇔  equal JSON values: keys in any order, of repeated keys the last, numbers by their value

The form is the one that PostgreSQL prints: keys by length and then by bytes, a blank behind commas and colons, numbers
without exponent. Trailing zeros behind the point are removed, because 1.0 equals 1. The Python value is this text; a
column also accepts dicts, lists, numbers, bools and other JSON text. The null of JSON is a value, `"null"`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kpg.columns.column_types.column_type import SymbolicType, register
from kpg.columns.column_types.string_type import is_arrow_text
from kpg.columns.unfit_values import UnfitValue
from kpg.columns.updates import Ints

if TYPE_CHECKING:
    from kpg.columns.schema import Type
    from kpg.columns.symbols import Symbols

MAX_EXPONENT: Final = 1000  # of a number, which is written without exponent


def parse_json(text: str) -> Any:
    """Return the Python value of JSON text, with Decimals for all numbers; raise ValueError if it is not JSON."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse_constant)


def canonical_json(value: Any) -> str:
    """Return a JSON value in canonical form; raise ValueError if it is not a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return _number(Decimal(str(value)) if isinstance(value, float) else Decimal(value))
        case str():
            if "\0" in value:
                raise ValueError("JSON text cannot hold the character 0")
            return json.dumps(value, ensure_ascii=False)
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise ValueError("the keys of JSON objects are strings")
            keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
            return "{" + ", ".join(f"{canonical_json(key)}: {canonical_json(value[key])}" for key in keys) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(canonical_json, value)) + "]"
    raise ValueError(f"JSON has no {type(value).__name__}")


def _number(value: Decimal) -> str:
    if not value.is_finite() or abs(value.adjusted()) > MAX_EXPONENT:
        raise ValueError(f"JSON cannot hold the number {value}")
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"JSON has no {text}")


class JsonbType(SymbolicType):
    """JSON values."""

    name = "jsonb"
    is_ordered = False
    large_arrow = pa.large_string()

    def encode_value(self, type_: Type, value: Any, symbols: Symbols) -> int:
        return symbols.intern_one(self._canonical(type_, value))

    def _canonical(self, type_: Type, value: Any) -> str:
        try:
            return canonical_json(parse_json(value) if isinstance(value, str) else value)
        except (ValueError, RecursionError) as error:
            raise UnfitValue(f"it is not {type_}: {error}", "A string is read as JSON text.") from None

    def encode_plain(self, type_: Type, values: Sequence[Any], has_null: bool, symbols: Symbols) -> Ints | None:
        return None

    def to_arrow(self, type_: Type) -> pa.DataType:
        return pa.string()

    def accepts_arrow(self, source: pa.DataType) -> bool:
        return is_arrow_text(source)

    def encode_arrow(self, type_: Type, array: Any, symbols: Symbols) -> Ints:
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        texts = [None if text is None else self._canonical(type_, text) for text in encoded.dictionary.to_pylist()]
        indices = encoded.indices.cast(pa.int64())
        ids: Ints = symbols.intern([*texts, None])
        mapped: Ints = ids[indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)]
        return mapped


register(JsonbType())
