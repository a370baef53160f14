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
from collections.abc import Callable
from types import TracebackType

LARGE_BYTES = 1 << 25  # smaller allocations are noticed by the next check: many of them fit between two checks

Check = Callable[[int], None]


class _Running(threading.local):
    """The check of the computation that runs on this thread."""

    check: Check | None = None


_running = _Running()


class budget:  # noqa: N801 - used as a statement, like contextlib.suppress
    """Use a check for everything that this thread computes in this block; None uses none.

    A class and not a generator, because every installation of a query enters it.
    """

    __slots__ = ("_check", "_before")

    def __init__(self, check: Check | None) -> None:
        self._check = check
        self._before: Check | None = None

    def __enter__(self) -> None:
        self._before, _running.check = _running.check, self._check

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _running.check = self._before


def reserve(nbytes: int = 0) -> None:
    """Raise OverBudget if the computation must not use this many bytes more."""
    if _running.check is not None and (nbytes == 0 or nbytes >= LARGE_BYTES):
        _running.check(nbytes)
