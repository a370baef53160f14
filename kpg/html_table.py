"""Small tables of HTML for notebooks. Every value is escaped and shortened, so data cannot become markup."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

MAX_CELL_CHARACTERS = 200  # of a value that are shown


def caption(text: str) -> str:
    """Write a line above a table."""
    return f"<div><b>{escape(text)}</b></div>"


def preformatted(text: str) -> str:
    """Write text with its line breaks."""
    return f"<pre>{escape(text)}</pre>"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], marked: Collection[int] = ()) -> str:
    """Write a table; rows whose numbers are in `marked` have a coloured background."""
    lines = [_line("th", head, "")]
    lines += [_line("td", row, MARK if number in marked else "") for number, row in enumerate(rows)]
    return f"<table>{''.join(lines)}</table>"


MARK = ' style="background: rgba(80, 180, 80, 0.25)"'  # visible on light and dark pages


def _line(tag: str, cells: Sequence[Any], attributes: str) -> str:
    return f"<tr{attributes}>" + "".join(f"<{tag}>{escape(_shortened(cell))}</{tag}>" for cell in cells) + "</tr>"


def _shortened(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= MAX_CELL_CHARACTERS else text[:MAX_CELL_CHARACTERS] + "…"
