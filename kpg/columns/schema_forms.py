"""The forms in which a user may give the columns of a relation, and the schema that each of them means.

    Schema                                   itself
    {"src": int, "dst": int | None}          names and types
    a pyarrow.Schema                         its fields; a field that may be null becomes a column that may be null
    a DataFrame, a table, a dict of lists    the types of its columns; one with a null in it may be null

Data that shows the columns is not inserted: that is `insert`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kpg.columns.schema import Schema, Type, parse_arrow, parse_type
from kpg.columns.table_rows import is_pandas
from kpg.errors import KpgError, SchemaMismatch

EXAMPLE = 'db.input("edges", src=int, dst=int)'


def schema_of(given: Any, columns: Mapping[str, Any]) -> Schema:
    """Return the schema that a caller means: by one value of the forms above, or by `name=type` columns."""
    if given is None:
        return Schema.of(columns)
    if columns:
        raise SchemaMismatch(
            "columns were given twice", detail=f"Once as {type(given).__name__}, once as {', '.join(columns)}=."
        )
    if isinstance(given, Schema):
        return given
    if isinstance(given, pa.Schema):
        return Schema.from_arrow(given)
    if isinstance(given, pa.RecordBatchReader):
        return Schema.from_arrow(given.schema)
    if isinstance(given, Mapping) and not any(is_values(value) for value in given.values()):
        return Schema.of(given)
    return _schema_of_data(given)


def is_type(value: Any) -> bool:
    """Return whether a value can only mean the type of a column: a class, a union, an Arrow type; not a name."""
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return False
    try:
        parse_type(value)
    except KpgError:
        return False
    return True


def is_values(value: Any) -> bool:
    """Return whether a value is a column of values and not a type."""
    return not is_type(value) and not isinstance(value, str) and hasattr(value, "__len__")


def _schema_of_data(data: Any) -> Schema:
    try:
        table = _table(data)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise SchemaMismatch(
            f"{type(data).__name__} does not say which columns there are",
            detail=str(error)[:200],
            hint=f"Write {EXAMPLE}, or give a dict of types, a DataFrame or an Arrow schema.",
        ) from None
    pairs = zip(table.column_names, table.columns, strict=True)
    return Schema(tuple(table.column_names), tuple(_type_of_column(name, column) for name, column in pairs))


def _table(data: Any) -> pa.Table:
    """Return data as an Arrow table; raise TypeError if it has no columns with names."""
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, Mapping):
        return pa.table(dict(data))
    if is_pandas(data, "DataFrame"):
        return pa.Table.from_pandas(data, preserve_index=False)
    if isinstance(data, np.ndarray) and data.dtype.names is not None:
        return pa.table({name: data[name] for name in data.dtype.names})
    if hasattr(data, "__arrow_c_stream__"):  # polars, duckdb, ...
        return pa.RecordBatchReader.from_stream(data).read_all()
    raise TypeError(f"It is {repr(data)[:80]}.")


def _type_of_column(name: str, column: Any) -> Type:
    if pa.types.is_null(column.type):
        raise SchemaMismatch(f"column {name!r} has no values that show its type", hint=f"Name the types: {EXAMPLE}.")
    return parse_arrow(column.type).optional(column.null_count > 0)
