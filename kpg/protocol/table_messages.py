"""Conversion between Arrow tables and the columns and rows of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from kpg.columns.decode_column import decode_arrow
from kpg.columns.encode_column import encode_list
from kpg.columns.schema import Schema, Type, parse_type
from kpg.columns.symbols import Symbols
from kpg.protocol.parts import ColumnSpec


def columns_of(schema: pa.Schema) -> tuple[ColumnSpec, ...]:
    """Return the columns of an answer. In answers of the engine, a timestamp without a zone is a timestamp_ntz."""
    types = [
        parse_type("timestamp_ntz").optional(type_.nullable) if is_naive_timestamp(field.type) else type_
        for field, type_ in zip(schema, Schema.from_arrow(schema).types, strict=True)
    ]
    return tuple(ColumnSpec(name, str(type_)) for name, type_ in zip(schema.names, types, strict=True))


def is_naive_timestamp(type_: pa.DataType) -> bool:
    """Return whether a type of Arrow is that of dates with a time, without a zone."""
    return bool(pa.types.is_timestamp(type_) and type_.tz is None)


def schema_from(columns: Sequence[ColumnSpec]) -> Schema:
    """Return the schema of columns."""
    return Schema.of([(column.name, column.type) for column in columns])


def slices(table: pa.Table, rows: int) -> Iterator[tuple[pa.Table, bool]]:
    """Split a table into pieces of at most `rows` rows, each with whether more follow; an empty table is one piece."""
    for start in range(0, max(table.num_rows, 1), rows):
        yield table.slice(start, rows), start + rows < table.num_rows


def table_of(schema: Schema, rows: Iterable[Sequence[Any]]) -> pa.Table:
    """Return rows as an Arrow table."""
    listed = list(rows)
    arrow = schema.to_arrow()
    columns = list(zip(*listed, strict=True)) if listed else [()] * len(schema)
    arrays = [_array_of(type_, column) for type_, column in zip(schema.types, columns, strict=True)]
    return pa.table(arrays, schema=arrow)


def _array_of(type_: Type, values: Sequence[Any]) -> Any:
    if type_.lanes == 1 and type_.element is None:
        return pa.array(values, type=type_.to_arrow())
    symbols = Symbols()  # Arrow does not take the Python values of every type
    return decode_arrow(type_, encode_list(type_, values, "", symbols), symbols)
