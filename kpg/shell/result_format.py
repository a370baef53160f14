"""Rows for people, or for programs: a table on a terminal, columns separated by tabs in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

SHOWN = 1_000  # rows on a terminal; more are counted


def show_table(console: Console, table: pa.Table, note: str = "") -> None:
    """Print rows."""
    names = table.column_names
    rows = table.slice(0, SHOWN if console.is_terminal else None).to_pylist()
    show_rows(console, names, [[row[name] for name in names] for row in rows], table.num_rows, note)


def show_rows(
    console: Console, names: Sequence[str], rows: Iterable[Sequence[Any]], count: int, note: str = ""
) -> None:
    """Print rows of values."""
    if not console.is_terminal:
        plain(console, "\t".join(names))
        for row in rows:
            plain(console, "\t".join(escaped(value) for value in row))
        return
    console.print(framed(names, rows))
    console.print(f"({count:,} row{'' if count == 1 else 's'}{note})", style="dim", highlight=False)


def framed(names: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> Table:
    """A table with a frame; numbers to the right."""
    kept = [list(row) for row in rows]
    made = Table(title=title or None, title_justify="left", header_style="bold")
    for place, name in enumerate(names):
        number = bool(kept) and all(isinstance(row[place], int | float) for row in kept)
        made.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in kept:
        made.add_row(*(Text(written(value)) for value in row))
    return made


def written(value: Any) -> str:
    """A value as it is shown."""
    return "" if value is None else value if isinstance(value, str) else str(value)


def escaped(value: Any) -> str:
    """A value in a line of columns."""
    return written(value).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def plain(console: Console, line: str) -> None:
    """A line, as it is, however long."""
    console.file.write(line + "\n")
