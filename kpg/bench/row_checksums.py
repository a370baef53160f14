"""Checksums of rows that do not depend on their order, to compare the answers of different numbers of workers.

    checksum_of(table)  =  [row count, sum of the hashes of all rows modulo 2^64]

Cost: some nanoseconds a row and column.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from kpg.bench.data.graphs import Ints

ROWS_AT_ONCE = 1 << 20  # so that the hashes of many rows need little memory


def checksum_of(table: pa.Table) -> list[int]:
    """Return the row count and a checksum of integer columns that does not depend on the order of the rows."""
    columns = [column.to_numpy() for column in table.columns]
    return checksum(np.stack(columns) if columns else np.empty((0, 0), np.int64))


def checksum(columns: Ints, diffs: Ints | None = None) -> list[int]:
    """Return the number of rows, each as often as its diff, and the sum of their hashes."""
    total, rows = 0, columns.shape[1]
    counts = np.ones(1, np.int64) if diffs is None else diffs
    for start in range(0, rows, ROWS_AT_ONCE):
        hashes = np.zeros(min(ROWS_AT_ONCE, rows - start), np.uint64)
        for column in columns[:, start : start + ROWS_AT_ONCE]:
            hashes = (hashes ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            hashes ^= hashes >> np.uint64(29)
        part = counts if len(counts) == 1 else counts[start : start + ROWS_AT_ONCE]
        total += int((hashes * part.astype(np.uint64)).sum(dtype=np.uint64))
    copies = int(counts[0]) * rows if len(counts) == 1 else int(counts.sum())
    return [copies, total % (1 << 64)]


def combined(parts: Iterable[list[int]]) -> list[int]:
    """Return the checksum of all rows from those of their parts."""
    rows = total = 0
    for part_rows, part_total in parts:
        rows, total = rows + part_rows, total + part_total
    return [rows, total % (1 << 64)]
