"""Transactions: all of their rows become visible, or none.

    db.transact(fill)                   fill(db) inserts; then one advance; an error undoes the inserts of fill
    db.transact(fill, origin=(s, n))    batch n of writer s: if it was applied before, nothing happens

Transactions that wait for the same db share an epoch, and on disk a frame: `perform` executes them together. An error
in one fails only that one. If the epoch cannot be written, all of them fail and none takes effect. Where answers may
lag (kpg.api.completion), a transaction is done when it is durable; otherwise when all answers include it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kpg.errors import TypeMismatch
from kpg.storage.record import Origin

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase


@dataclass(slots=True, eq=False)
class TransactionRequest:
    """A function that inserts, the origin of its rows, and the future of its epoch."""

    fill: Callable[[EmbeddedDatabase], Any]
    origin: Origin | None = None
    session: Hashable = None  # that reads its own writes; None if answers never lag
    future: Future[int] = field(default_factory=Future)


def as_origin(origin: Any) -> Origin | None:
    """Return the (source, batch) that a caller gave as an origin."""
    if origin is None:
        return None
    if isinstance(origin, tuple) and len(origin) == 2 and isinstance(origin[0], str) and isinstance(origin[1], int):
        return Origin(*origin)
    raise TypeMismatch(
        f"{origin!r} is not an origin", hint='Give the name of the writer and its batch: origin=("orders", 17).'
    )


def perform(db: EmbeddedDatabase, transactions: Sequence[TransactionRequest]) -> None:
    """Execute several transactions as one epoch, and resolve the future of each."""
    start = db.pending.mark(db.time)
    waiting = [transaction for transaction in transactions if transaction.future.set_running_or_notify_cancel()]
    filled = _fill_all(db, waiting)
    origins = {transaction.origin: None for transaction in filled if transaction.origin is not None}
    try:
        is_new = any(transaction.origin is None or transaction.origin not in db.applied for transaction in filled)
        epoch = db.advance(origins=tuple(origins), wait=not db.answers_lag) if is_new else db.epoch - 1
    except BaseException as error:
        db.pending.restore(start, db.time)
        for transaction in filled:
            transaction.future.set_exception(error)
        return
    requests = db.completion.requests
    for transaction in filled:
        if requests is not None:
            requests.note_write(epoch, transaction.session)
        transaction.future.set_result(epoch)


def _fill_all(db: EmbeddedDatabase, transactions: Sequence[TransactionRequest]) -> list[TransactionRequest]:
    """Let each insert its rows, unless they were applied before; return the transactions that did not fail."""
    filled: list[TransactionRequest] = []
    origins: set[Origin] = set()
    for transaction in transactions:
        before, origin = db.pending.mark(db.time), transaction.origin
        try:
            if origin is None or (origin not in db.applied and origin not in origins):
                transaction.fill(db)
        except BaseException as error:
            db.pending.restore(before, db.time)
            transaction.future.set_exception(error)
            continue
        filled.append(transaction)
        if origin is not None:
            origins.add(origin)
    return filled
