"""How things look in a notebook: small tables of HTML. Whatever comes from data or names is escaped.

Showing something never raises for a reason that is data: an answer that has none yet, or that failed, says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from kpg.api.database_description import columns_of, indexes
from kpg.api.times import show_frontier, show_time
from kpg.api.trace_reads import check_readable, read_rows
from kpg.columns.table_rows import decode_rows
from kpg.errors import KpgError

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.api.embedded_output import EmbeddedOutput

ROWS = 20
CELL = 200  # characters of a value that are shown


def html_database(db: EmbeddedDatabase) -> str:
    """The relations, answers and arrangements of a db."""
    rows: list[Sequence[Any]] = [("input", each.name, repr(each.schema)) for each in db.inputs.values()]
    rows += [("output", each.name, repr(each.schema)) for each in db.outputs.values()]
    held = [(each.name, f"{each.rows:,}", f"{each.nbytes:,}", ", ".join(each.shared_by)) for each in indexes(db)]
    return (
        caption(f"db, open at {show_frontier(db.time)}")
        + table(("", "name", "columns"), rows)
        + table(("arrangement", "rows", "bytes", "shared by"), held)
    )


def html_output(output: EmbeddedOutput) -> str:
    """The first rows of an answer, as of the last complete time."""
    title = f"output {output.name}"
    try:
        return _html_rows(output, title)
    except KpgError as error:
        reason = f"<pre>{escape(str(error))}</pre>"
        return caption(title) + reason + table(("column", "type"), columns_of(output).items())


def _html_rows(output: EmbeddedOutput, title: str) -> str:
    installed = output.readable()
    time = check_readable(output.db, installed, None)
    data, counts = read_rows(installed, output.schema, time, None)
    shown = decode_rows(output.schema, np.ascontiguousarray(data[:, :ROWS]), output.db.symbols)
    rows: list[Sequence[Any]] = [(*row, n) for row, n in zip(shown, counts[:ROWS].tolist(), strict=True)]
    names = (*output.schema.names, "times")
    if all(row[-1] == 1 for row in rows):
        rows, names = [row[:-1] for row in rows], names[:-1]
    some = f"the first {ROWS} of " if len(counts) > ROWS else ""
    return caption(f"{title} as of {show_time(time)}: {some}{len(counts):,} distinct rows") + table(names, rows)


def html_collection(collection: Collection) -> str:
    """The columns of a collection."""
    name = getattr(collection, "name", "")
    title = f"{type(collection).__name__} {name}".strip()
    return caption(title) + table(("column", "type"), columns_of(collection).items())


def caption(text: str) -> str:
    """A line above a table."""
    return f"<div><b>{escape(text)}</b></div>"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; every cell is escaped."""
    lines = [_line("th", head), *[_line("td", row) for row in rows]]
    return f"<table>{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[Any]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(_short(cell))}</{tag}>" for cell in cells) + "</tr>"


def _short(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= CELL else text[:CELL] + "…"
