"""Conversion between Arrow tables and the columns and rows of messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from kpg.columns.schema import Schema
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
    return pa.table(
        [pa.array(column, type=item.type) for column, item in zip(columns, arrow, strict=True)], schema=arrow
    )
