"""The result of a statement: rows with named and typed columns, or only the tag of what was done.

    result = db.sql("SELECT who, total FROM totals ORDER BY total DESC")
    result.rows(), result.to_pandas(), result.to_arrow(), result.to_polars(); print(result)

A result holds its rows; it is a plain value that any thread may read. Two columns may have one name, as in SQL.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kpg.columns.rows import rows_of
from kpg.columns.schema import Schema
from kpg.errors import TypeMismatch
from kpg.extras import require
from kpg.sql.functions.text_output import show_value
from kpg.sql.sql_types import SqlType

MAX_PRINTED_ROWS = 1_000  # of `print(result)`; more rows are only counted


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """The name and type of a column of a result."""

    name: str
    type: SqlType


@dataclass(frozen=True, slots=True, repr=False)
class QueryResult:
    """Rows in order. `tag` is PostgreSQL's: "SELECT 3", "INSERT 0 1", "CREATE TABLE"."""

    tag: str
    columns: tuple[ResultColumn, ...] = ()
    table: pa.Table = field(default_factory=lambda: pa.table({}))
    schema: Schema | None = None  # of the table's columns, in their order

    @property
    def has_rows(self) -> bool:
        """Whether the statement returns rows, even if there are none now."""
        return self.schema is not None

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples of Python values."""
        return rows_of(self.table, self.schema) if self.has_rows else []

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.table

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        require("pandas", "to_pandas()")
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """Return the rows as a polars DataFrame."""
        require("polars", "to_polars()")
        import polars

        return polars.from_arrow(self.table)

    def value(self) -> Any:
        """Return the only value of a result with one row and one column."""
        if (self.table.num_rows, self.table.num_columns) != (1, 1):
            raise TypeMismatch(
                "the result is not a single value",
                detail=f"It has {self.table.num_rows:,} rows and {self.table.num_columns} columns.",
            )
        return self.rows()[0][0]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        if not self.has_rows:
            return self.tag
        shown = rows_of(self.table.slice(0, MAX_PRINTED_ROWS), self.schema)
        lines = align_rows([column.name for column in self.columns], shown, [column.type for column in self.columns])
        count = len(self)
        return "\n".join([*lines, f"({count:,} row{'' if count == 1 else 's'})"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self.has_rows:
            return f"<p>{html.escape(self.tag)}</p>"
        head = "".join(f"<th>{html.escape(column.name)}</th>" for column in self.columns)
        shown = rows_of(self.table.slice(0, MAX_PRINTED_ROWS), self.schema)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(show_value(v))}</td>" for v in row) + "</tr>" for row in shown
        )
        more = f"<p>{len(self):,} row{'' if len(self) == 1 else 's'}</p>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def align_rows(names: Sequence[str], rows: Sequence[tuple[Any, ...]], types: Sequence[SqlType]) -> list[str]:
    """Return the lines of a table as psql prints it: numbers right-aligned, null empty."""
    texts = [[show_value(value) for value in row] for row in rows]
    widths = [max([len(name), *(len(row[at]) for row in texts)]) for at, name in enumerate(names)]
    right = [type_.is_number for type_ in types]
    lines = ["|".join(f" {name:^{width}} " for name, width in zip(names, widths, strict=True)).rstrip()]
    lines.append("+".join("-" * (width + 2) for width in widths))
    for row in texts:
        cells = zip(row, widths, right, strict=True)
        lines.append(
            "|".join(
                f" {text:>{width}} " if is_right else f" {text:<{width}} " for text, width, is_right in cells
            ).rstrip()
        )
    return lines
