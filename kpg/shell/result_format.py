"""Print rows: as a framed table on a terminal, as columns separated by tabs in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kpg.columns.rows import rows_of

MAX_TERMINAL_ROWS = 1_000  # rows printed on a terminal; the count below the table includes the others


def show_table(console: Console, table: pa.Table, note: str = "") -> None:
    """Print an Arrow table."""
    names = table.column_names
    rows = rows_of(table.slice(0, MAX_TERMINAL_ROWS if console.is_terminal else None))
    show_rows(console, names, rows, table.num_rows, note)


def show_rows(
    console: Console, names: Sequence[str], rows: Iterable[Sequence[Any]], count: int, note: str = ""
) -> None:
    """Print rows of values."""
    if not console.is_terminal:
        print_line(console, "\t".join(names))
        for row in rows:
            print_line(console, "\t".join(escape_cell(value) for value in row))
        return
    console.print(framed_table(names, rows))
    console.print(f"({count:,} row{'' if count == 1 else 's'}{note})", style="dim", highlight=False)


def framed_table(names: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> Table:
    """Return a table with a frame; columns of numbers are right-aligned."""
    values = [list(row) for row in rows]
    table = Table(title=title or None, title_justify="left", header_style="bold")
    for index, name in enumerate(names):
        is_number = bool(values) and all(isinstance(row[index], int | float) for row in values)
        table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
    for row in values:
        table.add_row(*(Text(to_text(value)) for value in row))
    return table


def to_text(value: Any) -> str:
    """Return a value as text; None is empty."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def escape_cell(value: Any) -> str:
    """Return a value as text without tabs and line breaks."""
    return to_text(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def print_line(console: Console, line: str) -> None:
    """Print a line without markup and wrapping."""
    console.file.write(line + "\n")
