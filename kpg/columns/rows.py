"""An Arrow table as rows of Python values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kpg.columns.schema import INTERVAL, Schema


def rows_of(table: pa.Table, schema: Schema | None = None) -> list[tuple[Any, ...]]:
    """Return the rows of a table, in order; of a table without columns, as many empty tuples.

    Values are those of the column types of `schema`, or Arrow's own if no schema is given. Intervals are always
    `Interval`s, and lists tuples.
    """
    if not table.num_columns:
        return [()] * table.num_rows
    if schema is None:
        return list(zip(*map(_values_of, table.columns), strict=True))
    pairs = zip(schema.types, table.columns, strict=True)
    return list(zip(*[type_.definition.arrow_to_list(type_, column) for type_, column in pairs], strict=True))


def _values_of(column: Any) -> list[Any]:
    if column.type == INTERVAL.to_arrow():
        return INTERVAL.definition.arrow_to_list(INTERVAL, column)
    if pa.types.is_list(column.type):
        return [tuple(_values_of(cell.values)) if cell.is_valid else None for cell in column]
    return column.to_pylist()  # type: ignore[no-any-return]
