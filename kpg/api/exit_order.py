"""What is still open when the interpreter exits is ended first, the newest before the others.

    end_at_exit(db.close)      unless it is garbage by then, or the process is a forked child

Python stops daemon threads wherever they are when it exits. A thread that is inside Arrow then, such as the thread of a
db in the background, aborts the process ("terminate called without an active exception"). So those threads end before.
The function gets the number of seconds that it may take.
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable
from typing import Final

EXIT_TIMEOUT_SECONDS: Final = 10.0  # a call that still runs then is left behind: a program must be able to end
_ends: list[tuple[int, weakref.WeakMethod[Callable[[float], None]]]] = []  # process ids and methods


def end_at_exit(end: Callable[[float], None]) -> None:
    """Call a method, with a timeout in seconds, when the interpreter exits."""
    if not _ends:
        atexit.register(end_all)
    _ends[:] = [entry for entry in _ends if entry[1]() is not None]
    _ends.append((os.getpid(), weakref.WeakMethod(end)))


def end_all() -> None:
    """End everything that this process has left open, the newest first."""
    while _ends:
        process, method = _ends.pop()
        end = method()
        if end is not None and process == os.getpid():
            end(EXIT_TIMEOUT_SECONDS)
