"""The appearance of dbs, collections and outputs in a notebook: small tables of HTML.

Displaying an object never raises because of its data: an output without an answer shows the reason instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from kpg.api.answer_preview import PREVIEW_ROWS
from kpg.api.database_description import columns_of
from kpg.api.times import show_frontier
from kpg.errors import KpgError
from kpg.html_table import caption, preformatted, table

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.contracts import Database, Output


def html_database(db: Database) -> str:
    """Show the relations, answers, arrangements and dataflows of a db, on however many workers."""
    described = db.describe()
    workers = described.get("workers", [described])
    on = f" on {len(workers)} workers" if len(workers) > 1 else ""
    relations: list[Sequence[Any]] = [("input", source.name, repr(source.schema)) for source in db.inputs.values()]
    relations += [("output", output.name, repr(output.schema)) for output in db.outputs.values()]
    states = [(dataflow["name"], dataflow["operators"], dataflow["state"]) for dataflow in workers[0]["dataflows"]]
    return (
        caption(f"db{on}, open at {show_frontier(db.time)}")
        + table(("", "name", "columns"), relations)
        + table(("arrangement", "rows", "bytes", "shared by"), arrangement_rows(workers))
        + table(("dataflow", "operators", "state"), states)
    )


def arrangement_rows(workers: Sequence[dict[str, Any]]) -> Iterator[Sequence[Any]]:
    """Yield each arrangement with the sum of its rows and bytes on all workers; empty ones of errors are left out."""
    for indexes in zip_longest(*[worker["arrangements"] for worker in workers], fillvalue=None):
        parts = [index for index in indexes if index is not None]
        rows, nbytes = (sum(index[figure] for index in parts) for figure in ("rows", "bytes"))
        if rows or not parts[0]["name"].startswith("errors of "):
            yield parts[0]["name"], f"{rows:,}", f"{nbytes:,}", ", ".join(parts[0]["shared_by"])


def html_output(output: Output) -> str:
    """Show the first rows of an answer, as of the last complete time."""
    title = f"output {output.name}"
    try:
        preview = output.preview(PREVIEW_ROWS)
    except KpgError as error:
        return caption(title) + preformatted(str(error)) + table(("column", "type"), columns_of(output).items())
    return caption(preview.title(title)) + table(preview.head, preview.lines())


def html_collection(collection: Collection) -> str:
    """Show the columns of a collection."""
    name = getattr(collection, "name", "")
    title = f"{collection.label} {name}".strip()
    return caption(title) + table(("column", "type"), columns_of(collection).items())
