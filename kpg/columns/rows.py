"""An Arrow table as rows of Python values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of a table, in order; without columns, as many empty ones."""
    if not table.num_columns:
        return [()] * table.num_rows
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))
