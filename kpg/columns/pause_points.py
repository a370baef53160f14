"""Pause points: places in a long computation at which it checks its limits, and may be left for a while.

    with taking_turns(turns):           # a worker, while it runs steps in slices
        ...
        pause()                         # between two parts of a long computation: checks the budget, then turns.pause()
        aside(n, function, *arguments)  # a part that cannot be cut: the helper thread computes it if it is large

`turns` may run other computations before it returns, or raise to end this one. A function may pause where no state that
others read is half changed. `can_pause()` tells a driver whether to cut its work into small parts. Like the budget,
`turns` belongs to the thread. Cost: two function calls.

    allow_interrupts(charge)            # on a thread that runs steps whole, and gets the signals of Ctrl-C
    request_interrupt()                 # the next pause, also within `aside`, raises KeyboardInterrupt

On such a thread, drivers cut their work into parts of some ten milliseconds (`part_of`), which cost next to nothing.
The helper thread computes what cannot be cut, and the thread that waits for it can be interrupted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from time import thread_time
from types import TracebackType
from typing import Any, Protocol, TypeAlias, TypeVar

from kpg.columns.helper_thread import submit
from kpg.columns.memory_budget import reserve

Result = TypeVar("Result")

MIN_ASIDE_NUMBERS = 1 << 18  # read or written by a part: about a millisecond of work
MIN_WAIT_NUMBERS = (
    1 << 19
)  # the same on a thread that can be interrupted: to change threads costs a tenth of a millisecond
MAX_WAIT_SECONDS = 0.01  # between two looks at whether an interrupt was requested
ROWS_PER_PAUSE = 1 << 14  # that are sorted or merged between two pauses: a millisecond of work or two
CALLS_PER_PAUSE = 1 << 12  # of a Python function of values between two pauses: some milliseconds
ROWS_PER_ASIDE = 1 << 20  # the same on the helper thread: it goes on for so long after the computation was ended


Charge: TypeAlias = Callable[[float], None]  # counts seconds for the computation of this thread


class Turns(Protocol):
    """Lets other computations run."""

    def pause(self) -> None:
        """Let others run if it is their turn."""

    def wait(self, future: Future[Any]) -> bool:
        """Let others run until a future is done. Return False if the caller cannot be left here."""

    def charge(self, seconds: float) -> None:
        """Count CPU time of the helper thread for the computation."""


class _Current(threading.local):
    """The turns of the computation on this thread."""

    turns: Turns | None = None
    interrupted = False  # whether the next pause raises KeyboardInterrupt
    charge: Charge | None = None  # counts CPU time of the helper thread, if interrupts are allowed


_current = _Current()


class taking_turns:  # noqa: N801 - used as a statement, like contextlib.suppress
    """Let others run at the pauses of this thread in this block.

    A class and not a generator, because every installation of a query enters it.
    """

    __slots__ = ("_turns", "_before")

    def __init__(self, turns: Turns | None) -> None:
        self._turns = turns
        self._before: Turns | None = None

    def __enter__(self) -> None:
        self._before, _current.turns = _current.turns, self._turns

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _current.turns = self._before


def current_turns() -> Turns | None:
    """Return the turns of the computation on this thread."""
    return _current.turns


def can_pause() -> bool:
    """Return whether the computation on this thread may be left at a pause."""
    return _current.turns is not None


def rows_per_part(rows: int) -> int:
    """Return the number of rows to sort or merge between two pauses, if there are `rows` in sum."""
    if not can_pause():
        return rows
    return ROWS_PER_PAUSE if rows < MIN_ASIDE_NUMBERS else ROWS_PER_ASIDE


def at_most_per_pause(rows: int) -> int:
    """Return a maximum of rows that are processed at once, or less if the computation may pause."""
    return min(rows, ROWS_PER_PAUSE) if can_pause() else rows


def can_be_interrupted(numbers: int) -> bool:
    """Return whether a part with this many numbers runs on the helper thread, where Ctrl-C does not wait for it."""
    return _current.turns is None and _current.charge is not None and numbers >= MIN_WAIT_NUMBERS


def part_of(whole: int, short: int, medium: int) -> int:
    """Return the size of the parts of some work: short if it may pause, medium if it can only be interrupted."""
    if _current.turns is not None:
        return min(whole, short)
    return whole if _current.charge is None else min(whole, medium)


def pause() -> None:
    """Raise if the computation exceeds its limits; let others run if it is their turn."""
    reserve()
    if _current.turns is not None:
        _current.turns.pause()
    else:
        check_interrupt()


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if it was requested, unless the computation may be left here."""
    if _current.interrupted and _current.turns is None:
        clear_interrupt()
        raise KeyboardInterrupt


def allow_interrupts(charge: Charge | None) -> None:
    """Let this thread wait for the helper thread, whose CPU time is passed to `charge`; with None, no more."""
    _current.charge = charge


def request_interrupt() -> None:
    """Let the next pause of this thread raise KeyboardInterrupt, unless it may be left there."""
    _current.interrupted = True


def clear_interrupt() -> None:
    """Forget a requested interrupt that no pause has raised."""
    _current.interrupted = False


def aside(numbers: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """Return the result of a pure function that reads or writes about `numbers` numbers.

    If that takes long and the computation may be left, the helper thread calls the function, and others run meanwhile.
    """
    turns = _current.turns
    if can_be_interrupted(numbers) and _current.charge is not None:
        future = submit(timed, function, arguments)
        del arguments
        waited: Result = _wait(future, _current.charge)
        return waited
    if turns is None or numbers < MIN_ASIDE_NUMBERS:
        return function(*arguments)
    pause()
    future = submit(timed, function, arguments)
    del arguments  # so that a function which drops its input is the only one that refers to it
    try:
        while not future.done() and turns.wait(future):
            turns = _current.turns  # the computation may continue where nothing runs in turns
            if turns is None:
                break
        result: Result
        result, seconds = future.result()
    finally:
        future.cancel()  # if the computation was ended meanwhile
    if turns is not None:
        turns.charge(seconds)
    return result


def _wait(future: Future[tuple[Result, float]], charge: Charge) -> Result:
    """Return the result of the helper thread; raise KeyboardInterrupt as soon as it is requested."""
    result: Result
    try:
        while not future.done():
            check_interrupt()
            wait((future,), MAX_WAIT_SECONDS)
        result, seconds = future.result()
    finally:
        future.cancel()
    charge(seconds)
    return result


def timed(function: Callable[..., Result], arguments: tuple[Any, ...]) -> tuple[Result, float]:
    """Return the result of a function, and the CPU time of this thread that it took."""
    began = thread_time()
    return function(*arguments), thread_time() - began
