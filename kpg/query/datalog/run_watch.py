"""Watch a run of a program: show the rows of its relations while it works, and explain its memory limit.

    watch(db, progress)      from now on, `progress` is called a few times a second with the growing relations

Cost: below one percent of the time, because a report that takes long delays the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kpg.api.embedded_database import EmbeddedDatabase
from kpg.api.relation_growth import RelationSize, relation_sizes

if TYPE_CHECKING:
    from kpg.api.contracts import Database

Progress = Callable[[str, int, int], None]  # (activity, done, total); a total of 0 is unknown
SHOWN_RELATIONS = 4  # the largest ones; more do not fit on a line
REPORT_SECONDS = 0.25
HINT = "Restrict the rules that derive the most rows, or raise the limit: --memory-limit BYTES, or none for no limit."


def no_progress(what: str, done: int, of: int) -> None:
    """Ignore progress."""


def watch(db: Database, progress: Progress) -> Callable[[], None]:
    """Report progress while a db works, and explain its memory limit in terms of the command.

    Return a function that checks the limit.
    """
    assert isinstance(db, EmbeddedDatabase)
    db.memory.hint = HINT
    if progress is not no_progress:
        db.watch.report_seconds = REPORT_SECONDS
        db.watch.report = partial(report, db, progress)
        db.worker.guard = db.watch
    return db.memory.check


def report(db: EmbeddedDatabase, progress: Progress) -> None:
    """Report the sizes of the largest relations."""
    progress(f"computing {describe(relation_sizes(db.worker.dataflows.values()))}".rstrip(), 0, 0)


def describe(sizes: dict[str, RelationSize]) -> str:
    """Return the largest relations with their row counts, in the order in which they are computed."""
    largest = sorted(sizes, key=lambda name: -sizes[name].rows)[:SHOWN_RELATIONS]
    return ", ".join(f"{name}: {sizes[name].rows:,} rows" for name in sizes if name in largest and sizes[name].rows)
