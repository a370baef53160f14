"""The numbers that one session draws from the sequences of its db.

    next_numbers("s", 3)      the next three; no session gets one of them again, also after a rollback

The last number of each sequence belongs to the catalog and is written to disk with the next epoch; currval and lastval
are the session's own. A number costs nothing beyond its place in an array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kpg.columns.updates import Ints
from kpg.errors import DataError, ProgramError
from kpg.sql.session import sql_errors
from kpg.sql.session.sql_errors import sql_error

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog
    from kpg.sql.catalog.entries import SequenceEntry


def counter_of(name: str) -> str:
    """Return the name of a sequence's counter; those of identity columns have no blank before the table."""
    return f"sequence {name}"


class SequenceNumbers:
    """What a session sees of sequences."""

    def __init__(self, catalog: DatabaseCatalog) -> None:
        self._catalog = catalog
        self._current: dict[str, tuple[SequenceEntry, int]] = {}
        self._last: SequenceEntry | None = None  # the sequence that numbers were drawn from last

    def next_numbers(self, name: str, count: int) -> Ints:
        """Draw numbers."""
        entry = self._catalog.sequences[name]
        last = self._counter(entry)
        try:
            numbers = numbers_after(entry, last, count)
        except DataError:  # the numbers before the end are lost, as those of a rolled back transaction are
            self._note_drawn(entry, numbers_after(entry, last, numbers_ahead(entry, last)))
            raise
        self._note_drawn(entry, numbers)
        return numbers

    def _note_drawn(self, entry: SequenceEntry, numbers: Ints) -> None:
        if len(numbers):
            last = int(numbers[-1])
            self._catalog.store.count_to(counter_of(entry.name), last)
            self._current[entry.name], self._last = (entry, last), entry

    def _counter(self, entry: SequenceEntry) -> int | None:
        return self._catalog.store.identities.get(counter_of(entry.name))

    def current_number(self, name: str) -> int:
        """Return the last number that the session drew from a sequence."""
        entry, number = self._current.get(name, (None, 0))
        if entry is None or entry is not self._catalog.sequences.get(name):
            raise undrawn(f"currval of sequence {name!r} is not yet defined in this session")
        return number

    def last_number(self) -> int:
        """Return the last number that the session drew from any sequence."""
        last = self._last
        if last is None or self._catalog.sequences.get(last.name) is not last:  # dropped, perhaps created again
            raise undrawn("lastval is not yet defined in this session")
        return self.current_number(last.name)

    def set_number(self, name: str, number: int, is_drawn: bool) -> None:
        """Let a sequence continue after a number, or with it if it counts as not drawn."""
        entry = self._catalog.sequences[name]
        if not entry.least <= number <= entry.greatest:
            raise sql_error(
                DataError,
                sql_errors.OUT_OF_RANGE,
                f"setval: {number} is out of bounds for sequence {name!r}",
                detail=f"It has numbers from {entry.least} to {entry.greatest}.",
            )
        self._catalog.store.count_to(counter_of(name), number if is_drawn else number - entry.increment)
        if is_drawn:
            self._current[name] = (entry, number)


def first_and_end(entry: SequenceEntry, last: int | None) -> tuple[int, int]:
    """Return the number after the last one, or the start, and the last number before a sequence ends or cycles."""
    first = entry.start if last is None else last + entry.increment
    return first, entry.greatest if entry.increment > 0 else entry.least


def numbers_ahead(entry: SequenceEntry, last: int | None) -> int:
    """Return how many numbers follow the last one before a sequence ends or cycles."""
    first, end = first_and_end(entry, last)
    return max(0, (end - first) // entry.increment + 1)


def numbers_after(entry: SequenceEntry, last: int | None, count: int) -> Ints:
    """Return the numbers of a sequence that follow its last one, or its start; raise at its end unless it cycles."""
    first, end = first_and_end(entry, last)
    ahead = numbers_ahead(entry, last)
    if count <= ahead:
        return first + entry.increment * np.arange(count)
    if not entry.cycles:
        bound = "maximum" if entry.increment > 0 else "minimum"
        what = f"nextval: reached {bound} value of sequence {entry.name!r} ({end})"
        raise sql_error(DataError, sql_errors.SEQUENCE_LIMIT, what, hint="setval() lets it continue elsewhere.")
    begin = entry.least if entry.increment > 0 else entry.greatest
    period = (end - begin) // entry.increment + 1
    rest = begin + entry.increment * (np.arange(count - ahead) % period)
    return np.concatenate([first + entry.increment * np.arange(ahead), rest])


def undrawn(what: str) -> ProgramError:
    """Return the error for a number that no nextval has drawn."""
    return sql_error(ProgramError, sql_errors.NOT_READY, what, hint="Call nextval() in this session first.")
