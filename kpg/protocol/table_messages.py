"""Conversion between Arrow tables and the columns and rows of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from kpg.columns.decode_column import decode_arrow
from kpg.columns.encode_column import encode_list
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.protocol.parts import ColumnSpec


def columns_of(schema: Schema | pa.Schema) -> tuple[ColumnSpec, ...]:
    """Return the columns of a schema."""
    columns = schema if isinstance(schema, Schema) else Schema.from_arrow(schema)
    return tuple(ColumnSpec(name, str(type_)) for name, type_ in zip(columns.names, columns.types, strict=True))


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
