"""Counts of rows where they leave the engine: as int64, or as copies of the rows.

Inside, a count of any size is exact (kpg.columns.exact_diffs). Arrow tables and files hold 64 bits. A count that
does not fit raises DataError, which names the row; nothing wraps.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.exact_diffs import is_exact
from kpg.columns.lane_values import MAX
from kpg.columns.schema import Schema
from kpg.columns.symbols import Symbols
from kpg.columns.table_rows import decode_rows
from kpg.columns.updates import Ints
from kpg.errors import DataError, SchemaMismatch

MAX_COPIES = 1 << 40  # of all rows together: no memory holds more, and NumPy would fail with a message of its own


def counts_as_int64(name: str, schema: Schema, data: Ints, counts: Ints, symbols: Symbols) -> Ints:
    """Return the counts, int64[n], of the rows of a collection; raise DataError if one does not fit 64 bits."""
    if not is_exact(counts):
        return counts
    row, count = next(((row, count) for row, count in enumerate(counts.tolist()) if abs(count) > MAX), (0, 0))
    if not count:
        return counts.astype(np.int64)
    lanes = np.ascontiguousarray(data[: schema.width, row : row + 1])
    raise DataError(
        f"{name} holds a row more often than 64 bits can count",
        detail=f"The row is {decode_rows(schema, lanes, symbols)[0]}; its count is {count}.",
        hint="Take distinct() before the query multiplies its rows, or read exact changes one by one in Python.",
    )


def repeat_rows(name: str, data: Ints, counts: Ints) -> Ints:
    """Return each row as often as its count; raise DataError for a negative count, or for more rows than fit memory."""
    if (counts < 0).any():
        row = int(np.argmax(counts < 0))
        raise DataError(
            f"{name} holds a row fewer than zero times",
            detail=f"Its count is {int(counts[row])}.",
            hint="Read it with counts=True, or find the query or writer that removes rows it never inserted.",
        )
    total = sum(counts.tolist()) if is_exact(counts) or float(counts.sum(dtype=np.float64)) > MAX_COPIES else 0
    if total > MAX_COPIES:
        raise DataError(
            f"{name} holds more rows than a table can",
            detail=f"Its rows and their copies are {total} in all.",
            hint="Read it with counts=True, or take distinct() in the query.",
        )
    repeated: Ints = np.repeat(data, counts.astype(np.int64), axis=1)
    return repeated


def first_copies(data: Ints, counts: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the rows whose first `size` copies `repeat_rows` repeats, with counts of no more; negative ones stay."""
    if size > MAX_COPIES:
        return data, counts
    data, counts = data[:, :size], counts[:size]
    if (counts == 1).all():
        return data, counts
    counts = np.clip(counts, -MAX, size).astype(np.int64)
    beyond = np.maximum(np.cumsum(np.maximum(counts, 0)) - size, 0)
    return data, np.where(counts > 0, np.maximum(counts - beyond, 0), counts)


def check_diffs(diffs: Ints) -> None:
    """Raise SchemaMismatch for -2^63, the only int64 that is no diff: its negation does not fit 64 bits."""
    if not is_exact(diffs) and diffs.size and int(diffs.min()) < -MAX:
        raise SchemaMismatch(
            "diffs are whole numbers from -(2^63 - 1) to 2^63 - 1", detail=f"Found {int(diffs.min())}."
        )
