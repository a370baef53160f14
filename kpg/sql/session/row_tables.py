"""Tables of rows between statements and inputs: multisets of rows as Arrow tables, compared by their lanes.

All functions are vectorised. Rows are equal when their lanes are, as in the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpg.columns.consolidation import consolidate_all
from kpg.columns.pause_points import aside
from kpg.columns.schema import Schema
from kpg.columns.table_rows import decode, empty_table, encode
from kpg.columns.updates import Ints, Updates, constant

if TYPE_CHECKING:
    from kpg.columns.symbols import Symbols


def no_rows(schema: Schema) -> pa.Table:
    """Return an empty table with some columns."""
    return empty_table(schema)


def sum_rows(
    schema: Schema, added: Sequence[pa.Table], subtracted: Sequence[pa.Table], symbols: Symbols
) -> tuple[pa.Table, Ints]:
    """Return the sum of some tables minus others: each row once, and its count, which may be negative."""
    parts = [
        Updates(encode(schema, table, symbols), constant((0,)), constant((diff,)))
        for diff, tables in ((1, added), (-1, subtracted))
        for table in tables
        if table.num_rows
    ]
    if not parts:
        return no_rows(schema), np.empty(0, np.int64)
    total = aside(sum(part.data.size for part in parts), consolidate_all, parts)
    counts = np.broadcast_to(total.diffs[0], len(total))
    return decode(schema, np.ascontiguousarray(total.data), symbols), np.ascontiguousarray(counts)


def repeat(table: pa.Table, counts: Ints) -> pa.Table:
    """Return each row as often as its count says; rows with a negative count are left out."""
    if (counts == 1).all():
        return table
    places = np.repeat(np.arange(table.num_rows), np.maximum(counts, 0))
    taken: pa.Table = aside(len(places) * table.num_columns, table.take, places)
    return taken


def difference(schema: Schema, left: Sequence[pa.Table], right: Sequence[pa.Table], symbols: Symbols) -> pa.Table:
    """Return the rows that the left tables have more often than the right ones, that often."""
    return repeat(*sum_rows(schema, left, right, symbols))


def key_numbers(
    schema: Schema, tables: Sequence[pa.Table], keys: Sequence[str], symbols: Symbols
) -> list[npt.NDArray[np.int64]]:
    """Return a number for the key of each row of each table; equal keys have equal numbers."""
    key_schema = schema.select(keys)
    lanes = [encode(key_schema, table.select(list(keys)), symbols) for table in tables]
    whole = np.concatenate(lanes, axis=1)
    if not whole.shape[1]:
        return [np.empty(0, np.int64) for _ in tables]
    cuts = np.cumsum([part.shape[1] for part in lanes])[:-1]
    return np.split(aside(whole.size, numbers_of_columns, whole), cuts)


def numbers_of_columns(data: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the rank of each column among the different ones, in order of their numbers from top to bottom."""
    order = np.argsort(data[0], kind="stable") if len(data) == 1 else np.lexsort(data[::-1])
    is_new = np.zeros(data.shape[1], np.int64)
    for lane in data:
        in_order = lane[order]
        is_new[1:] |= in_order[1:] != in_order[:-1]
    numbers = np.empty(data.shape[1], np.int64)
    numbers[order] = np.cumsum(is_new)
    return numbers


def repeated(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return whether an equal number stands before each one."""
    return aside(len(numbers), _repeated, numbers)


def _repeated(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    _, first = np.unique(numbers, return_index=True)
    mask = np.ones(len(numbers), np.bool_)
    mask[first] = False
    return mask


def changed_before(numbers: npt.NDArray[np.int64], is_changed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return whether a row that changes the table stands before each row of the same number."""
    changed = np.flatnonzero(is_changed)
    known, first = np.unique(numbers[changed], return_index=True)
    found = np.isin(numbers, known)
    before = np.zeros(len(numbers), np.bool_)
    before[found] = changed[first][np.searchsorted(known, numbers[found])] < np.flatnonzero(found)
    return before
