"""Batch files: updates as Parquet, with a column for each lane and text stored as values.

    read_updates(write_updates(u))  ==  u        as a set of updates; in the same order if there is no text

Numbers are stored as their lanes, delta-encoded and not compressed further (docs/decisions/0014). Text and binary
columns are stored as values, null among them, so a file needs no symbol table. Older files have one column for a uuid,
which now takes two lanes. Times and diffs that are equal in all
rows are stored once, in the metadata. Diffs that leave 64 bits are stored as digits (kpg.columns.exact_diffs), whose
number for each diff is in the metadata. Any tool that reads Parquet reads such a file. Names of columns and metadata
are literals: they never change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kpg.columns.arrow_arrays import from_numpy
from kpg.columns.consolidation import consolidate
from kpg.columns.exact_diffs import from_words, to_words
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema, Type
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates
from kpg.errors import Corrupt

METADATA_KEY = b"kpg updates"  # the entry of the file's metadata that holds kpg's JSON; a name on disk
ROW_GROUP_ROWS = 1 << 20  # rows per Parquet row group
TEXT_PART_ROWS: Final = 1 << 14  # rows of text converted together: the interpreter lock is held for a millisecond


def lane_name(lane: int) -> str:
    """Return the column name of a lane. It is not the user's name, which may have a meaning for Parquet."""
    return f"lane {lane}"


def write_updates(
    updates: Updates, schema: Schema, symbols: Symbols, between_parts: Callable[[], object] = lambda: None
) -> pa.Buffer:
    """Return the content of a file for updates of a relation; their lanes are in the order of `schema`.

    Any thread may call it while another adds symbols. It calls `between_parts` between two parts of the text.
    """
    columns: dict[str, Any] = {}
    numbers: list[str] = []
    texts: list[str] = []
    for lane, type_ in enumerate(schema.lane_types()):
        label = lane_name(lane)
        if type_.is_symbolic:
            columns[label] = _text(updates.data[lane], type_.definition.large_arrow, symbols, between_parts)
            texts.append(label)
        else:
            columns[label] = from_numpy(updates.data[lane], pa.int64())
            numbers.append(label)
    diffs, digits = to_words(updates.diffs)
    metadata: dict[str, Any] = {"columns": schema.names, "depth": updates.depth, "width": diffs.shape[0]}
    if digits:
        metadata["digits"] = digits
    for label, block in (("time", updates.times), ("diff", diffs)):
        if block.shape[1] == 1:
            metadata[label] = block[:, 0].tolist()
            continue
        for row in range(block.shape[0]):
            columns[f"{label} {row}"] = from_numpy(block[row], pa.int64())
            numbers.append(f"{label} {row}")
    # `pa.table` of a dictionary would import pandas, for which other threads wait.
    table = pa.Table.from_arrays(list(columns.values()), list(columns))
    table = table.replace_schema_metadata({METADATA_KEY: json.dumps(metadata).encode()})
    return _write(table, numbers, texts)


def _text(ids: Ints, type_: Any, symbols: Symbols, between_parts: Callable[[], object]) -> Any:
    """Return the values of symbols as a chunked array, converted in parts."""
    chunks: list[Any] = []
    for start in range(0, len(ids), TEXT_PART_ROWS):
        if start:
            between_parts()
        text = symbols.text(ids[start : start + TEXT_PART_ROWS], type_)
        chunks += text.chunks if isinstance(text, pa.ChunkedArray) else [text]
    return pa.chunked_array(chunks, type_)


def _write(table: pa.Table, numbers: list[str], texts: list[str]) -> pa.Buffer:
    out = pa.BufferOutputStream()
    pq.write_table(
        table,
        out,
        compression={**dict.fromkeys(numbers, "none"), **dict.fromkeys(texts, "zstd")},
        use_dictionary=texts,  # type: ignore[arg-type]
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        row_group_size=ROW_GROUP_ROWS,
    )
    return out.getvalue()


def read_updates(data: bytes, name: str, schema: Schema, symbols: Symbols) -> Updates:
    """Return the updates of a file, sorted and consolidated if they were so when it was written."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        columns = layout_of(schema, sum(name.startswith("lane ") for name in file.schema_arrow.names))
        texts = [column.name for column in columns if column.type.is_symbolic]
        table = pq.read_table(pa.BufferReader(data), read_dictionary=texts, use_threads=False)
        metadata = json.loads((table.schema.metadata or {})[METADATA_KEY])
        lanes = _lanes(table, columns, schema, symbols)
        times = _block(table, metadata, "time", metadata["depth"])
        diffs = from_words(_block(table, metadata, "diff", metadata["width"]), metadata.get("digits", 0))
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise Corrupt(f"{name} cannot be read", detail=str(error)) from None
    updates = Updates(lanes, times, diffs)
    return consolidate(updates) if texts else updates  # new symbol ids mean a new order


class StoredColumn(NamedTuple):
    """A column of a file: its name there, the lane or lanes it is for, and their type."""

    name: str
    slot: int | slice
    type: Type


def layout_of(schema: Schema, columns: int) -> list[StoredColumn]:
    """Return the columns of a file: one for each lane, or for each column of the relation in older files."""
    if columns == schema.width:
        return [StoredColumn(lane_name(lane), lane, type_) for lane, type_ in enumerate(schema.lane_types())]
    pairs = zip(schema.slots, schema.types, strict=True)
    return [StoredColumn(lane_name(at), slot, type_) for at, (slot, type_) in enumerate(pairs)]


def _lanes(table: pa.Table, columns: list[StoredColumn], schema: Schema, symbols: Symbols) -> Ints:
    lanes = np.empty((schema.width, table.num_rows), np.int64)
    for name, slot, type_ in columns:
        column = table.column(name)
        if isinstance(slot, slice):
            lanes[slot] = type_.definition.from_stored_bytes(type_, column.combine_chunks(), symbols)
        elif not type_.is_symbolic:
            _fill(lanes[slot], column)
        elif column.null_count == len(column):
            lanes[slot] = NULL
        else:
            lanes[slot] = symbols.intern(column)
    return lanes


def _block(table: pa.Table, metadata: dict[str, Any], label: str, height: int) -> Ints:
    if label in metadata:
        return np.array(metadata[label], np.int64).reshape(height, 1)
    block = np.empty((height, table.num_rows), np.int64)
    for row in range(height):
        _fill(block[row], table.column(f"{label} {row}"))
    return block


def _fill(out: Ints, column: Any) -> None:
    filled = 0
    for chunk in column.chunks:
        out[filled : filled + len(chunk)] = chunk.to_numpy()
        filled += len(chunk)
