"""The appearance of dbs, collections and outputs in a notebook: small tables of HTML, with every value escaped.

Displaying an object never raises because of its data: an output without an answer shows the reason instead.
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

MAX_ROWS = 20  # of an answer that are shown
MAX_CELL_CHARACTERS = 200  # of a value that are shown


def html_database(db: EmbeddedDatabase) -> str:
    """Show the relations, answers and arrangements of a db."""
    rows: list[Sequence[Any]] = [("input", source.name, repr(source.schema)) for source in db.inputs.values()]
    rows += [("output", output.name, repr(output.schema)) for output in db.outputs.values()]
    arrangements = [
        (index.name, f"{index.rows:,}", f"{index.nbytes:,}", ", ".join(index.shared_by)) for index in indexes(db)
    ]
    return (
        caption(f"db, open at {show_frontier(db.time)}")
        + table(("", "name", "columns"), rows)
        + table(("arrangement", "rows", "bytes", "shared by"), arrangements)
    )


def html_output(output: EmbeddedOutput) -> str:
    """Show the first rows of an answer, as of the last complete time."""
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
    shown = decode_rows(output.schema, np.ascontiguousarray(data[:, :MAX_ROWS]), output.db.symbols)
    rows: list[Sequence[Any]] = [(*row, n) for row, n in zip(shown, counts[:MAX_ROWS].tolist(), strict=True)]
    names = (*output.schema.names, "times")
    if all(row[-1] == 1 for row in rows):
        rows, names = [row[:-1] for row in rows], names[:-1]
    some = f"the first {MAX_ROWS} of " if len(counts) > MAX_ROWS else ""
    return caption(f"{title} as of {show_time(time)}: {some}{len(counts):,} distinct rows") + table(names, rows)


def html_collection(collection: Collection) -> str:
    """Show the columns of a collection."""
    name = getattr(collection, "name", "")
    title = f"{collection.label} {name}".strip()
    return caption(title) + table(("column", "type"), columns_of(collection).items())


def caption(text: str) -> str:
    """Write a line above a table."""
    return f"<div><b>{escape(text)}</b></div>"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table; every cell is escaped."""
    lines = [_line("th", head), *[_line("td", row) for row in rows]]
    return f"<table>{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[Any]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(_shortened(cell))}</{tag}>" for cell in cells) + "</tr>"


def _shortened(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= MAX_CELL_CHARACTERS else text[:MAX_CELL_CHARACTERS] + "…"
