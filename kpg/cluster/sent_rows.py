"""The pending rows of a cluster's db: sent to the workers, but not yet part of an epoch. This object is their only
owner on the coordinator's side; each worker owns the rows it received (kpg/api/pending_rows.py).

    names       of the inputs that have such rows, in the order in which their first rows were sent
    latest      the join of all times at which an input ever had rows
    copies      of the rows themselves, only on a directory: a lost worker receives them again

Rows that Spark has staged are not pending: they belong to no relation until they are published.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from kpg.algebra.order import Time, join, least
from kpg.cluster.rank_commands.input_commands import MakeRowsCommand, RowsCommand
from kpg.cluster.request_frames import RowBlock
from kpg.cluster.request_history import RequestHistory
from kpg.cluster.row_admission import RowAdmission


class SentMark(NamedTuple):
    """The state of the pending rows at one moment."""

    names: dict[str, None]
    latest: dict[str, Time]
    copies: int
    generation: int  # of the workers that have these rows
    drops: int


class SentRows:
    """The inputs with pending rows, and copies of those rows if they must survive a worker."""

    def __init__(self, coordinates: int, history: RequestHistory, keep_copies: bool, admission: RowAdmission) -> None:
        self.admission = admission
        self._names: dict[str, None] = {}
        self._latest: dict[str, Time] = {}
        self.scattered: set[str] = set()  # inputs with pending rows that are not at their owners
        self.have_made = False  # whether workers make some of them, and may fail to
        self._drops = 0  # how often all rows were dropped
        self._start = least(coordinates)
        self._history = history
        self._keep_copies = keep_copies

    def add(self, name: str, time: Time) -> None:
        """Note that an input has rows at times up to `time`."""
        self._names[name] = None
        self._latest[name] = join(self.latest(name), time)

    def keep_copy(self, rank: int, command: RowsCommand | MakeRowsCommand, blocks: Sequence[RowBlock]) -> None:
        """Keep a copy of rows that one worker receives or all make, if the db must be able to send them again."""
        if self._keep_copies:
            self._history.record_rows(rank, command, blocks)

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Drop the copies of the rows that the block sent if it raises: the caller may send them again."""
        before = len(self._history.open_rows)
        try:
            yield
        except BaseException:
            del self._history.open_rows[before:]
            raise

    def latest(self, name: str) -> Time:
        """Return the join of all times at which an input ever had rows."""
        return self._latest.get(name, self._start)

    def discard(self) -> None:
        """Forget all pending rows: they are part of an epoch now, or `drop` takes them back."""
        self._names.clear()
        self.scattered.clear()
        self.have_made = False
        self.admission.end()
        self._history.open_rows.clear()

    def mark(self, generation: int) -> SentMark:
        """Return the present state, to restore later."""
        copies = len(self._history.open_rows)
        return SentMark(self._names.copy(), self._latest.copy(), copies, generation, self._drops)

    def drop(self) -> None:
        """Take all pending rows back: they will not be part of an epoch."""
        self._drops += 1
        self.discard()

    def holds(self, mark: SentMark) -> bool:
        """Return whether the rows that were pending at a mark still are."""
        return self._drops == mark.drops

    def restore(self, mark: SentMark) -> None:
        """Drop the rows that were sent after a mark."""
        self._names, self._latest = mark.names.copy(), mark.latest.copy()
        del self._history.open_rows[mark.copies :]

    def forget(self, name: str) -> None:
        """Drop everything about an input that no longer exists."""
        self._names.pop(name, None)
        self._latest.pop(name, None)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names
