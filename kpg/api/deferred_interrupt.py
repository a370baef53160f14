"""Ctrl-C while a db works: it takes effect where nothing is half done.

    watch_for_interrupts(db)    while the db is open; called on the main thread, which alone gets signals

Python's own handler raises KeyboardInterrupt between any two instructions: in the middle of a step, of an import, of a
change of a trace. While a worker runs, this handler only notes the interrupt. In an advance, a query raises it at its
next pause and is stopped, as by an error. Between two steps, in a slice, and in the step of a relation or of an index
that others read, it is raised after that step or slice. No rows are lost then: the next advance, or a wait for an
answer, continues the work. Parts of a step that take longer than some ten milliseconds run on the helper thread
(kpg.columns.pause_points), and the main thread waits: the interrupt does not wait for them. While no worker runs, the
handler does what Python's does. A handler of the program's own is left alone.
"""

from __future__ import annotations

import signal
import threading
import weakref
from types import FrameType
from typing import TYPE_CHECKING

from kpg.columns.pause_points import allow_interrupts, request_interrupt

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase
    from kpg.dataflow.graph import Dataflow

_watched: weakref.WeakSet[EmbeddedDatabase] = weakref.WeakSet()


def watch_for_interrupts(db: EmbeddedDatabase) -> None:
    """Handle interrupts of a db of the main thread; db of other threads get none."""
    if threading.current_thread() is threading.main_thread():
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, handle)
        if signal.getsignal(signal.SIGINT) is handle:
            allow_interrupts(charge)
        _watched.add(db)


def forget(db: EmbeddedDatabase) -> None:
    """Handle no more interrupts of a db. With the last one, Python's own handler is back."""
    _watched.discard(db)
    is_main = threading.current_thread() is threading.main_thread()
    if not _watched and is_main and signal.getsignal(signal.SIGINT) is handle:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        allow_interrupts(None)


def handle(number: int, frame: FrameType | None) -> None:
    """Note an interrupt of a worker that runs, or raise it."""
    running = [db for db in _watched if db.worker.running]
    if not running:
        signal.default_int_handler(number, frame)
    for db in running:
        operator = db.worker.stepped
        db.worker.interrupted = True
        if operator is not None and not is_relation(db, operator.dataflow):
            request_interrupt()


def charge(seconds: float) -> None:
    """Count CPU time of the helper thread for the query that the main thread computes."""
    for db in _watched:
        operator = db.worker.stepped if db.worker.running else None
        if operator is not None and operator.dataflow.usage is not None:
            operator.dataflow.usage.seconds += seconds


def is_relation(db: EmbeddedDatabase, dataflow: Dataflow) -> bool:
    """Return whether a dataflow keeps the rows of an input, or an index that other dataflows read."""
    if dataflow.readers:
        return True
    return any(source.is_arranged and source.base().dataflow is dataflow for source in db.inputs.values())
