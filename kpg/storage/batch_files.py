"""Files of updates: Parquet, a column for each lane, text by value.

    read_updates(write_updates(u))  ==  u        as a set of updates; in the same order if there is no text

Numbers lie as their lanes do in memory, delta-encoded and not compressed further (docs/decisions/0012); text and binary
columns are values, null among them, so a file needs no table of symbols. Times and diffs that are one number for all
rows stay one number. Any tool that reads Parquet reads such a file.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kpg.columns.consolidation import consolidate
from kpg.columns.lane_values import NULL
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.updates import Ints, Updates
from kpg.errors import Corrupt

META = b"kpg updates"
ROW_GROUP = 1 << 20


def lane_name(lane: int) -> str:
    """What the column of a lane is called; a name of the user's might mean something to Parquet."""
    return f"lane {lane}"


def write_updates(updates: Updates, schema: Schema, symbols: Symbols) -> pa.Buffer:
    """Some updates of a relation, their lanes in the order of `schema`, as the bytes of a file."""
    columns: dict[str, Any] = {}
    numbers: list[str] = []
    texts: list[str] = []
    for lane, type_ in enumerate(schema.types):
        label = lane_name(lane)
        if type_.is_symbolic:
            columns[label] = symbols.text(updates.data[lane], type_.definition.large_arrow)
            texts.append(label)
        else:
            columns[label] = updates.data[lane]
            numbers.append(label)
    meta: dict[str, Any] = {"columns": schema.names, "depth": updates.depth, "width": updates.width}
    for what, block in (("time", updates.times), ("diff", updates.diffs)):
        if block.shape[1] == 1:
            meta[what] = block[:, 0].tolist()
            continue
        for row in range(block.shape[0]):
            columns[f"{what} {row}"] = block[row]
            numbers.append(f"{what} {row}")
    table = pa.table(columns).replace_schema_metadata({META: json.dumps(meta).encode()})
    return _write(table, numbers, texts)


def _write(table: pa.Table, numbers: list[str], texts: list[str]) -> pa.Buffer:
    out = pa.BufferOutputStream()
    pq.write_table(
        table,
        out,
        compression={**dict.fromkeys(numbers, "none"), **dict.fromkeys(texts, "zstd")},
        use_dictionary=texts,  # type: ignore[arg-type]
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        write_statistics=False,
        row_group_size=ROW_GROUP,
    )
    return out.getvalue()


def read_updates(data: bytes, name: str, schema: Schema, symbols: Symbols) -> Updates:
    """The updates of a file, sorted and consolidated if they were when it was written."""
    try:
        texts = [lane_name(lane) for lane, type_ in enumerate(schema.types) if type_.is_symbolic]
        table = pq.read_table(pa.BufferReader(data), read_dictionary=texts, use_threads=False)
        meta = json.loads((table.schema.metadata or {})[META])
        lanes = _lanes(table, schema, symbols)
        times = _block(table, meta, "time", "depth")
        diffs = _block(table, meta, "diff", "width")
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise Corrupt(f"{name} cannot be read", detail=str(error)) from None
    updates = Updates(lanes, times, diffs)
    return consolidate(updates) if texts else updates  # ids are others now, and with them the order


def _lanes(table: pa.Table, schema: Schema, symbols: Symbols) -> Ints:
    lanes = np.empty((len(schema), table.num_rows), np.int64)
    for lane, type_ in enumerate(schema.types):
        column = table.column(lane_name(lane))
        if not type_.is_symbolic:
            _fill(lanes[lane], column)
        elif column.null_count == len(column):
            lanes[lane] = NULL
        else:
            lanes[lane] = symbols.intern(column)
    return lanes


def _block(table: pa.Table, meta: dict[str, Any], what: str, height: str) -> Ints:
    if what in meta:
        return np.array(meta[what], np.int64).reshape(meta[height], 1)
    block = np.empty((meta[height], table.num_rows), np.int64)
    for row in range(meta[height]):
        _fill(block[row], table.column(f"{what} {row}"))
    return block


def _fill(out: Ints, column: Any) -> None:
    at = 0
    for chunk in column.chunks:
        out[at : at + len(chunk)] = chunk.to_numpy()
        at += len(chunk)
