"""Transactions that are all there or not at all, several at once.

    db.transact(fill)                   fill(db) inserts; then one advance; an error takes back what fill inserted
    db.transact(fill, origin=(s, n))    batch n of writer s: if it was applied before, nothing happens

Several that wait for the same db share an epoch, and on disk a frame: `perform` does them together. Each one's error is
its own; if the epoch cannot be written it is everybody's, and none of them has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpg.errors import TypeMismatch
from kpg.storage.record import Origin

if TYPE_CHECKING:
    from kpg.api.database import Database
    from kpg.api.input import Input


@dataclass(slots=True, eq=False)
class PendingTransaction:
    """Something to insert, whose batch it is, and who waits for its epoch."""

    fill: Callable[[Database], Any]
    origin: Origin | None = None
    future: Future[int] = field(default_factory=Future)


class BufferMark:
    """What inputs had buffered at a moment, to go back to."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._time = db.time
        self._before: dict[Input, tuple[int, tuple[int, ...]]] = {
            source: (len(source.buffered()), source.latest) for source in db.inputs.values()
        }

    def restore(self) -> None:
        """Take back what was inserted since; nothing once the clock has moved, for then it has happened."""
        if self._db.time == self._time:
            for source in self._db.inputs.values():
                source.take_back(*self._before.get(source, (0, source.latest)))


def as_origin(origin: Any) -> Origin | None:
    """What a caller gave as (source, batch)."""
    if origin is None:
        return None
    if isinstance(origin, tuple) and len(origin) == 2 and isinstance(origin[0], str) and isinstance(origin[1], int):
        return Origin(*origin)
    raise TypeMismatch(f"{origin!r} is not an origin", hint='Say whose batch it is: origin=("orders", 17).')


def perform(db: Database, asked: Sequence[PendingTransaction]) -> None:
    """Do several transactions as one epoch, and tell each who waits."""
    start = BufferMark(db)
    waiting = [each for each in asked if each.future.set_running_or_notify_cancel()]
    filled = _fill_all(db, waiting)
    origins = {each.origin: None for each in filled if each.origin is not None}
    try:
        fresh = any(each.origin is None or each.origin not in db.applied for each in filled)
        epoch = db.advance(origins=tuple(origins)) if fresh else db.epoch - 1
    except BaseException as error:
        start.restore()
        for each in filled:
            each.future.set_exception(error)
        return
    for each in filled:
        each.future.set_result(epoch)


def _fill_all(db: Database, asked: Sequence[PendingTransaction]) -> list[PendingTransaction]:
    """Let each insert what it has, unless it was applied before; those that did not fail."""
    filled: list[PendingTransaction] = []
    seen: set[Origin] = set()
    for each in asked:
        before = BufferMark(db)
        try:
            if each.origin is None or (each.origin not in db.applied and each.origin not in seen):
                each.fill(db)
        except BaseException as error:
            before.restore()
            each.future.set_exception(error)
            continue
        filled.append(each)
        if each.origin is not None:
            seen.add(each.origin)
    return filled
