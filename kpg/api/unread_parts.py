"""Parts of unread changes, in the order of arrival. Their number does not grow with that of epochs.

    parts.add(changes)             a part of one epoch, or of several
    parts.sum_through(epoch)       where times are not needed: one part for all changes up to an epoch
    parts.take(through)            remove and return the parts up to an epoch

Small parts are joined, since each costs as much memory as some ten rows. Cost of `add`: constant, and each row is
copied once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kpg.algebra.order import Time
from kpg.columns.consolidation import consolidate_all
from kpg.columns.selection import keep
from kpg.columns.updates import Updates, concatenate, constant

MAX_SMALL_PARTS: Final = 256  # when there are this many parts, they are joined to one
SMALL_PART_ROWS: Final = 1024


class UnreadParts:
    """Changes that no reader has taken yet."""

    def __init__(self) -> None:
        self.rows = 0
        self.summed_through = -1  # the epoch to which changes of earlier ones were moved
        self._parts: list[Updates] = []
        self._small = 0  # the number of parts at the end that may be joined

    def add(self, part: Updates) -> None:
        """Append changes."""
        self._parts.append(part)
        self.rows += len(part)
        self._small = self._small + 1 if len(part) < SMALL_PART_ROWS else 0
        if self._small == MAX_SMALL_PARTS:
            self._parts[-self._small :] = [concatenate(self._parts[-self._small :])]
            self._small = 0

    def sum_through(self, epoch: int | None) -> None:
        """Give all changes up to an epoch this time, and sum them; with None, all changes the latest of their times."""
        early, late = (self._parts, []) if epoch is None else split_at(self._parts, epoch)
        if not early:
            return
        latest = latest_time(early)
        self.summed_through = max(self.summed_through, latest[0])
        self.set([consolidate_all([Updates(part.data, constant(latest), part.diffs) for part in early]), *late])

    def latest_time(self) -> Time:
        """Return the least time that no change is after."""
        return latest_time(self._parts)

    def set(self, parts: list[Updates]) -> None:
        """Replace all changes."""
        self._parts, self.rows, self._small = parts, sum(map(len, parts)), 0

    def take(self, through: int | None = None) -> list[Updates]:
        """Remove and return the changes, or those at epochs up to `through`."""
        taken, left = (self._parts, []) if through is None else split_at(self._parts, through)
        self.set(left)
        return taken

    def has_some(self, through: int) -> bool:
        """Return whether there are changes at or before an epoch."""
        return any(int(part.times[0].min()) <= through for part in self._parts)

    def __iter__(self) -> Iterator[Updates]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def latest_time(parts: list[Updates]) -> Time:
    """Return the least time that no update is after."""
    return tuple(map(max, zip(*(part.times.max(axis=1).tolist() for part in parts), strict=True)))


def split_at(parts: list[Updates], through: int) -> tuple[list[Updates], list[Updates]]:
    """Return the updates at epochs up to `through`, and the later ones."""
    early, late = [], []
    for part in parts:
        is_early = part.times[0] <= through
        if is_early.all():
            early.append(part)
        elif not is_early.any():
            late.append(part)
        else:
            early.append(keep(part, is_early))
            late.append(keep(part, ~is_early))
    return early, late
