"""Pause points: places in a long computation at which it checks its limits, and may be left for a while.

    with taking_turns(turn):    # a worker, while it runs steps in slices
        ...
        pause()                 # between two parts of a long computation: checks the budget, then calls turn()

`turn` may run other computations before it returns, or raise to end this one. A function may pause where no state that
others read is half changed. Functions that change shared traces must not pause. `can_pause()` tells a driver whether to
cut its work into small parts. Like the budget, `turn` belongs to the thread. Cost: two function calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kpg.columns.memory_budget import reserve


class _Turns(threading.local):
    """The function that lets others run, on this thread."""

    turn: Callable[[], None] | None = None


_turns = _Turns()


@contextmanager
def taking_turns(turn: Callable[[], None] | None) -> Iterator[None]:
    """Call a function at each pause of this thread in this block."""
    before, _turns.turn = _turns.turn, turn
    try:
        yield
    finally:
        _turns.turn = before


def can_pause() -> bool:
    """Return whether the computation on this thread may be left at a pause."""
    return _turns.turn is not None


def pause() -> None:
    """Raise if the computation exceeds its limits; let others run if it is their turn."""
    reserve()
    if _turns.turn is not None:
        _turns.turn()
