"""Named readers that end with the process that has the db open: of transactions, and of reads that wait for a time.

    db.set_reader(TEMPORARY + name, time)       keep the history from a time on
    left_behind(db.readers)                     the names of those that a process has left which was killed

They are on disk if the db is, so that workers that replace lost ones keep their history, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

TEMPORARY: Final = "temporary reader: "  # begins their names; part of the disk format
EARLIER_TEMPORARY: Final = "sql transaction "  # the same in directories of earlier versions


def left_behind(names: Iterable[str]) -> list[str]:
    """Return the names of temporary readers: when a db is opened, another process has left them."""
    return [name for name in names if name.startswith((TEMPORARY, EARLIER_TEMPORARY))]
