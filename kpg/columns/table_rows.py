"""Encode tables and rows of any kind as lanes, and decode lanes.

    encode(schema, rows, symbols)  returns int64[lanes, n], C-contiguous and in new memory
    decode(schema, encode(schema, rows, symbols), symbols) == rows        up to NaN and -0.0

Rows may be an Arrow table, batch or reader, a pandas or polars frame, NumPy arrays, a dict of columns, or plain tuples.
Sources with column names are matched by name, others by position. A column costs one copy and no Python code per row; a
tuple costs about a tenth of a microsecond per value. If one row does not fit the schema, `encode` raises an error.
A computation that may pause does so between parts of a large table; the decoded table then has several chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpg.columns.decode_column import decode_arrow, decode_list
from kpg.columns.encode_column import encode_arrow, encode_list, encode_numpy
from kpg.columns.pause_points import can_pause, pause
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints
from kpg.errors import SchemaMismatch

_ONLY_INT = {int}
ROWS_PER_PART = 1 << 12  # between two pauses: a millisecond of work or two, if they have texts


def encode(schema: Schema, rows: Any, symbols: Symbols) -> Ints:
    """Return the lanes of rows: int64[lanes, n]."""
    if type(rows) is list:
        return _encode_tuples(schema, rows, symbols)
    if isinstance(rows, (pa.Table, pa.RecordBatch)):
        return _encode_table(schema, rows, symbols)
    if isinstance(rows, pa.RecordBatchReader):
        return _encode_table(schema, rows.read_all(), symbols)
    if isinstance(rows, np.ndarray):
        return _encode_array(schema, rows, symbols)
    if isinstance(rows, Mapping):
        return _encode_columns(schema, rows, symbols)
    if is_pandas(rows, "DataFrame"):
        return _encode_pandas(schema, rows, symbols)
    if _is_series(rows):
        return _encode_named(schema, [(schema.names[0], rows)] if len(schema) == 1 else [], len(rows), symbols)
    if hasattr(rows, "__arrow_c_stream__"):  # polars, duckdb, ...
        return _encode_table(schema, pa.RecordBatchReader.from_stream(rows).read_all(), symbols)
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise SchemaMismatch(
            f"cannot read rows from {type(rows).__name__}",
            hint="Give a list of tuples, a dict of columns, or an Arrow, pandas or polars table.",
        )
    return _encode_tuples(schema, list(rows), symbols)


def decode(schema: Schema, data: Ints, symbols: Symbols) -> pa.Table:
    """Return the rows of lanes as an Arrow table."""
    if not len(schema):
        struct: Any = pa.array([{}] * data.shape[1], pa.struct([]))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(struct)])
    if not data.shape[1]:
        return empty_table(schema)
    if not can_pause():
        pause()
        return _decode(schema, data, symbols)
    parts = [_decode(schema, data[:, part], symbols) for part in parts_with_pauses(data.shape[1])]
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts)


def _decode(schema: Schema, data: Ints, symbols: Symbols) -> pa.Table:
    columns = [decode_arrow(type_, data[slot], symbols) for slot, type_ in zip(schema.slots, schema.types, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema.to_arrow())


def parts_with_pauses(rows: int) -> Iterator[slice]:
    """Yield the parts of a table in order, with a pause before each; one part if the computation cannot pause."""
    size = min(ROWS_PER_PART, rows) if can_pause() else rows
    for start in range(0, max(1, rows), max(1, size)):
        pause()
        yield slice(start, min(start + size, rows))


@lru_cache(maxsize=256)
def empty_table(schema: Schema) -> pa.Table:
    """Return a table without rows; kept, because a statement asks for it several times."""
    return pa.Table.from_batches([], schema=schema.to_arrow())  # `empty_table` of Arrow imports pandas


def decode_rows(schema: Schema, data: Ints, symbols: Symbols) -> list[tuple[Any, ...]]:
    """Return the rows of lanes as tuples of Python values."""
    if not len(schema):
        return [()] * data.shape[1]
    if schema.all_int64:
        return list(zip(*data.tolist(), strict=True))
    pairs = zip(schema.slots, schema.types, strict=True)
    return list(zip(*[decode_list(type_, data[slot], symbols) for slot, type_ in pairs], strict=True))


# --- tuples ---------------------------------------------------------------------------------------------------------


def _encode_tuples(schema: Schema, rows: list[Any], symbols: Symbols) -> Ints:
    if not rows:
        return np.empty((schema.width, 0), np.int64)
    if schema.all_int64:
        lanes = _all_ints(len(schema), rows)
        if lanes is not None:
            return lanes
    if isinstance(rows[0], Mapping):
        return _encode_dicts(schema, rows, symbols)
    if len(schema) == 1 and not isinstance(rows[0], (tuple, list)):
        return encode_list(schema.types[0], rows, schema.names[0], symbols).reshape(schema.width, -1)
    _check_arity(schema, rows)
    data = np.empty((schema.width, len(rows)), np.int64)
    for position, column in enumerate(zip(*rows, strict=True)):
        name, type_ = schema.names[position], schema.types[position]
        data[schema.slots[position]] = encode_list(type_, column, name, symbols)
    return data


def _all_ints(lanes: int, rows: list[Any]) -> Ints | None:
    """Return the lanes of rows that are all tuples of ints, None for other rows."""
    try:
        if set(map(type, chain.from_iterable(rows))) != _ONLY_INT:
            return None
        data = np.array(rows, np.int64)
    except (TypeError, ValueError, OverflowError):
        if lanes != 1 or set(map(type, rows)) != _ONLY_INT:
            return None
        return None if max(rows) >= 2**63 or min(rows) < -(2**63) else np.array(rows, np.int64).reshape(1, -1)
    if data.ndim != 2 or data.shape[1] != lanes:
        return None
    return np.ascontiguousarray(data.T) if lanes > 1 < len(rows) else data.reshape(lanes, -1)


def _check_arity(schema: Schema, rows: list[Any]) -> None:
    for row, values in enumerate(rows):
        if not isinstance(values, (tuple, list)):
            raise SchemaMismatch(
                f"row {row} is {type(values).__name__}, not tuple",
                detail=f"The columns are {schema!r}.",
                hint="Give one value for each column, in order.",
            )
        if len(values) != len(schema):
            raise SchemaMismatch(
                f"row {row} has {len(values)} values, not {len(schema)}",
                detail=f"The columns are {schema!r}; the row is {repr(values)[:120]}.",
                hint="Give one value for each column, in order.",
            )


def _encode_dicts(schema: Schema, rows: list[Any], symbols: Symbols) -> Ints:
    for row, values in enumerate(rows):
        if not isinstance(values, Mapping):
            raise SchemaMismatch(f"row {row} is {type(values).__name__}, not dict like the first")
        if len(values) != len(schema) or not all(name in values for name in schema.names):
            _check_names(schema, list(values), f"row {row}")
    return _encode_tuples(schema, [tuple(values[name] for name in schema.names) for values in rows], symbols)


# --- columns --------------------------------------------------------------------------------------------------------


def _check_names(schema: Schema, names: Sequence[Any], what: str) -> None:
    missing = [name for name in schema.names if name not in names]
    unknown = [name for name in names if name not in schema.positions]
    repeated = sorted({name for name in names if list(names).count(name) > 1})
    if missing or unknown or repeated:
        faults = [("lacks", missing), ("has unknown", unknown), ("repeats", repeated)]
        message = " and ".join(f"{fault} {', '.join(map(repr, columns))}" for fault, columns in faults if columns)
        raise SchemaMismatch(
            f"{what} {message}", detail=f"The columns are {schema!r}.", hint="Select or rename columns."
        )


def _encode_table(schema: Schema, table: Any, symbols: Symbols) -> Ints:
    _check_names(schema, table.schema.names, "the table")
    data = np.empty((schema.width, table.num_rows), np.int64)
    for part in parts_with_pauses(table.num_rows):
        rows = table.slice(part.start, part.stop - part.start)
        for slot, name, type_ in zip(schema.slots, schema.names, schema.types, strict=True):
            encode_arrow(type_, rows.column(name), name, symbols, data[slot, part], part.start)
    return data


def _encode_array(schema: Schema, array: npt.NDArray[Any], symbols: Symbols) -> Ints:
    if array.dtype.names is not None and array.ndim == 1:
        names = array.dtype.names
        _check_names(schema, names, "the array")
        return _encode_named(schema, [(name, array[name]) for name in schema.names], len(array), symbols)
    if array.ndim == 1 and len(schema) == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[1] != len(schema):
        raise SchemaMismatch(
            f"an array of shape {array.shape} is not rows of {len(schema)} columns",
            hint=f"Its shape must be (n, {len(schema)})" + (" or (n,)." if len(schema) == 1 else "."),
        )
    named = [(name, array[:, position]) for position, name in enumerate(schema.names)]
    return _encode_named(schema, named, array.shape[0], symbols)


def _encode_columns(schema: Schema, columns: Mapping[Any, Any], symbols: Symbols) -> Ints:
    _check_names(schema, list(columns), "the dict of columns")
    for name, column in columns.items():
        if isinstance(column, (str, bytes)) or not isinstance(column, Iterable):
            raise SchemaMismatch(
                f"column {name!r} is {type(column).__name__}, not a column of values",
                hint="For one row give a list of one dict; for columns, a list or an array for each name.",
            )
    sized = {name: columns[name] if hasattr(columns[name], "__len__") else list(columns[name]) for name in schema.names}
    lengths = {name: len(column) for name, column in sized.items()}
    if len(set(lengths.values())) > 1:
        raise SchemaMismatch("the columns have different lengths", detail=f"Their row counts are {lengths}.")
    return _encode_named(schema, list(sized.items()), max(lengths.values(), default=0), symbols)


def _encode_pandas(schema: Schema, frame: Any, symbols: Symbols) -> Ints:
    labels = list(frame.columns)
    if all(isinstance(label, str) for label in labels):
        _check_names(schema, labels, "the frame")
        return _encode_named(schema, [(name, frame[name]) for name in schema.names], len(frame), symbols)
    if len(labels) != len(schema):
        raise SchemaMismatch(
            f"the frame has {len(labels)} columns, not {len(schema)}", detail=f"The columns are {schema!r}."
        )
    named = [(name, frame.iloc[:, position]) for position, name in enumerate(schema.names)]
    return _encode_named(schema, named, len(frame), symbols)


def _encode_named(schema: Schema, columns: list[tuple[str, Any]], n: int, symbols: Symbols) -> Ints:
    if len(columns) != len(schema):
        raise SchemaMismatch(f"one column cannot fill {len(schema)} columns", detail=f"The columns are {schema!r}.")
    data = np.empty((schema.width, n), np.int64)
    for position, (name, column) in enumerate(columns):
        encode_column(schema.types[position], column, name, symbols, data[schema.slots[position]])
    return data


def encode_column(type_: Type, column: Any, name: str, symbols: Symbols, out: Ints) -> None:
    """Write the lanes of one column of any kind to `out`; `name` is the column's, for errors."""
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise SchemaMismatch(f"column {name!r} has {column.ndim} dimensions, not one")
        encode_numpy(type_, column, name, symbols, out)
    elif isinstance(column, (pa.Array, pa.ChunkedArray)):
        encode_arrow(type_, column, name, symbols, out)
    elif is_pandas(column, "Series"):
        _encode_series(type_, column, name, symbols, out)
    elif hasattr(column, "to_arrow"):  # polars
        encode_arrow(type_, column.to_arrow(), name, symbols, out)
    else:
        out[:] = encode_list(type_, list(column), name, symbols)


def _encode_series(type_: Type, series: Any, name: str, symbols: Symbols, out: Ints) -> None:
    """Encode a pandas column. Values that pandas calls missing are null, but NaN is a number in a type without null."""
    if series.dtype == object:
        nan_is_null = not type_.definition.has_nan or type_.nullable
        pairs = zip(series.tolist(), series.isna().to_numpy(), strict=True)
        values = [
            None if missing and (nan_is_null or not isinstance(value, float)) else value for value, missing in pairs
        ]
        out[:] = encode_list(type_, values, name, symbols)
        return
    plain = isinstance(series.dtype, np.dtype)
    if plain and series.dtype.kind == "f":
        array = pa.array(series.to_numpy(), from_pandas=type_.nullable)
        if type_.kind == "int64" and type_.nullable:  # pandas turns a column of ints with a gap into floats
            array = _whole_numbers(array, name)
        encode_arrow(type_, array, name, symbols, out)
    elif plain and series.dtype.kind != "M":
        encode_numpy(type_, series.to_numpy(), name, symbols, out)
    else:
        encode_arrow(type_, pa.Array.from_pandas(series), name, symbols, out)


def _whole_numbers(array: Any, name: str) -> Any:
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise SchemaMismatch(f"column {name!r} holds floats that are not whole numbers", detail=str(error)) from None


def is_pandas(value: Any, kind: str) -> bool:
    """Return whether a value is pandas' Series or DataFrame, without an import of pandas."""
    return any(base.__name__ == kind and base.__module__.split(".")[0] == "pandas" for base in type(value).__mro__)


def _is_series(value: Any) -> bool:
    polars = type(value).__name__ == "Series" and type(value).__module__.split(".")[0] == "polars"
    return polars or is_pandas(value, "Series") or isinstance(value, (pa.Array, pa.ChunkedArray))
