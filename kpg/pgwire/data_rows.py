"""Rows of a result as DataRow messages, made column by column.

    data_rows(columns)  ==  b"".join(one DataRow message for each row)

Each column is an Arrow array of bytes, as kpg/pgwire/text_fields.py and binary_fields.py make them. Lengths are
computed with NumPy, and one call of Arrow joins the pieces of all rows, so there is no loop over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpg.columns.schema import Schema
from kpg.pgwire.binary_fields import binary_field
from kpg.pgwire.text_fields import text_field
from kpg.pgwire.wire_format import BINARY_FORMAT, TEXT_FORMAT
from kpg.sql.sql_types import SqlType

HEAD: Final = np.dtype([("kind", "S1"), ("length", ">i4"), ("count", ">u2")])


def encode_table(table: pa.Table, schema: Schema, types: Sequence[SqlType], formats: Sequence[int]) -> list[Any]:
    """Return the columns of a table as arrays of bytes, each in its format."""
    return [
        (text_field if form == TEXT_FORMAT else binary_field)(table.column(at), schema.types[at], type_)
        for at, (type_, form) in enumerate(zip(types, formats, strict=True))
    ]


def data_rows(fields: Sequence[Any], count: int) -> bytes:
    """Return the DataRow messages of `count` rows."""
    lengths = [field_lengths(field) for field in fields]
    heads = np.zeros(count, HEAD)
    heads["kind"], heads["count"] = b"D", len(fields)
    heads["length"] = 6 + 4 * len(fields) + sum((np.maximum(length, 0) for length in lengths), np.zeros(count, int))
    return joined([fixed_bytes(heads), *with_lengths(fields, lengths)])


def tuple_fields(table: pa.Table, schema: Schema, types: Sequence[SqlType]) -> list[Any]:
    """Return the parts of rows in the binary format of COPY: the number of fields, then each with its length."""
    fields = encode_table(table, schema, types, [BINARY_FORMAT] * len(types))
    head = fixed_bytes(np.full(table.num_rows, len(fields), ">u2"))
    return [head, *with_lengths(fields, [field_lengths(field) for field in fields])]


def field_lengths(field: Any) -> Any:
    """Return the lengths of values, -1 for null."""
    return pc.fill_null(pc.binary_length(field), -1).to_numpy(zero_copy_only=False).astype(np.int64)


def with_lengths(fields: Sequence[Any], lengths: Sequence[Any]) -> list[Any]:
    """Return fields, each after an array of its lengths."""
    return [part for f, n in zip(fields, lengths, strict=True) for part in (fixed_bytes(n.astype(">i4")), f)]


def fixed_bytes(values: Any) -> Any:
    """Return the items of a NumPy array as an Arrow array of bytes."""
    type_ = pa.binary(values.dtype.itemsize)
    buffers = [None, pa.py_buffer(np.ascontiguousarray(values).tobytes())]
    return pa.FixedSizeBinaryArray.from_buffers(type_, len(values), buffers).cast(pa.large_binary())


def joined(parts: Sequence[Any]) -> bytes:
    """Return the bytes of arrays, row by row; null is nothing."""
    join: Any = pc.binary_join_element_wise
    pieces = [part.cast(pa.large_binary()) for part in parts]
    separator = pa.scalar(b"", pa.large_binary())
    rows = join(*pieces, separator, null_handling="replace", null_replacement=b"")
    _, offsets, data = rows.buffers()
    if data is None:
        return b""
    bounds = np.frombuffer(offsets, np.int64, len(rows) + 1, rows.offset * 8)
    return bytes(memoryview(data)[int(bounds[0]) : int(bounds[-1])])
