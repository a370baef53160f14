"""Columns of a result in PostgreSQL's text format: arrays of UTF-8 bytes, null for null.

Arrow writes the types that it writes as PostgreSQL does. Values of other types are written by kpg/sql/functions
text_output.py, each distinct one once where Arrow can tell which are distinct.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.schema import Type
from kpg.sql.functions.text_output import output_of
from kpg.sql.session.copy_output import is_written_by_arrow
from kpg.sql.sql_types import SqlType

MOMENTS: Final = frozenset({"timestamp without time zone", "timestamp with time zone", "time without time zone"})


def text_field(column: Any, kind: Type, type_: SqlType) -> Any:
    """Return a column as text."""
    array = single_array(column)
    if type_.name == "boolean":
        return pc.if_else(array, b"t", b"f").cast(pa.binary())
    if type_.name in MOMENTS:
        return moments(array, type_)
    if pa.types.is_string(array.type) and not (type_.name == "character" and type_.length is not None):
        return array.cast(pa.binary())
    if is_written_by_arrow(array.type):
        return array.cast(pa.string()).cast(pa.binary())
    return written(array, kind, str(type_))


def single_array(column: Any) -> Any:
    """Return a column as one array."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array


def moments(array: Any, type_: SqlType) -> Any:
    """Return timestamps or times, without zeros at the end of the fraction."""
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us"))
    text: Any = pc.replace_substring_regex(array.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
    text = pc.replace_substring_regex(text, r"\.$", "")
    if type_.name == "timestamp with time zone":
        text = pc.binary_join_element_wise(text, "+00", "")
    return text.cast(pa.binary())


def written(array: Any, kind: Type, type_name: str) -> Any:
    """Return values that SQL writes one by one; each distinct one once, if Arrow can tell."""
    if has_distinct(array.type):
        encoded = array.dictionary_encode()
        return written_values(encoded.dictionary, kind, type_name).take(encoded.indices)
    return written_values(array, kind, type_name)


def written_values(array: Any, kind: Type, type_name: str) -> Any:
    """Return each value as text."""
    values = kind.definition.arrow_to_list(kind, pa.chunked_array([array]))
    return pa.array([None if value is None else output_of(type_name, value).encode() for value in values], pa.binary())


def has_distinct(type_: Any) -> bool:
    """Return whether Arrow finds the distinct values of a type."""
    return bool(pa.types.is_floating(type_) or pa.types.is_decimal(type_) or pa.types.is_string(type_))
