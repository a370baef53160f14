"""The memory budget of a computation: it is asked while work goes on, and before large allocations.

    with budget(check):         # a worker, while it runs
        ...
        reserve(nbytes)         # before an allocation: calls check(nbytes) if the allocation is large
        reserve()               # between two parts of a long computation: calls check(0)

`check` raises OverBudget if the process would exceed its limit. The budget belongs to the thread. Without one,
`reserve` does nothing. Cost: a function call; `check` decides how often it looks at the memory of the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LARGE_BYTES = 1 << 25  # smaller allocations are noticed by the next check: many of them fit between two checks

Check = Callable[[int], None]


class _Running(threading.local):
    """The check of the computation that runs on this thread."""

    check: Check | None = None


_running = _Running()


@contextmanager
def budget(check: Check | None) -> Iterator[None]:
    """Use a check for everything that this thread computes in this block; None uses none."""
    before, _running.check = _running.check, check
    try:
        yield
    finally:
        _running.check = before


def reserve(nbytes: int = 0) -> None:
    """Raise OverBudget if the computation must not use this many bytes more."""
    if _running.check is not None and (nbytes == 0 or nbytes >= LARGE_BYTES):
        _running.check(nbytes)
