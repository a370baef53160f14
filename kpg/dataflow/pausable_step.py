"""A step of an operator that can be left at a pause and resumed later.

    step = PausableStep(operator, partial(operator.run, can_pause=True))
    again = step.resume()       # None: the step has paused; otherwise whether the operator asks for another step
    step.is_waiting             # it paused for a result of the helper thread, which is not there yet
    step.stop()                 # end it where it paused

The step runs on a stack of its own (a greenlet) on the worker's thread, so functions that it calls pause without being
written for it (kpg.columns.pause_points). While it is paused, the messages that it took count as unread: no frontier
passes them. Cost: about two microseconds for each step, and one for each pause.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from greenlet import getcurrent, greenlet

from kpg.dataflow.operator import Operator


class PausableStep:
    """One step of an operator, from its first message to its end."""

    __slots__ = ("operator", "awaited", "_stack", "_paused")

    def __init__(self, operator: Operator, step: Callable[[], bool]) -> None:
        """Take the operator, and the function that does its step."""
        self.operator = operator
        self.awaited: Future[Any] | None = None  # that it paused for
        self._stack = greenlet(step)
        self._paused = False

    @property
    def is_current(self) -> bool:
        """Whether the caller runs inside this step."""
        return getcurrent() is self._stack

    @property
    def is_waiting(self) -> bool:
        """Whether to resume it would be in vain."""
        return self.awaited is not None and not self.awaited.done()

    def resume(self) -> bool | None:
        """Run until the step ends or pauses. Return whether to step again; None after a pause."""
        if self._paused:
            self._paused = False
            self.operator.take_messages_again()
        self._stack.parent = getcurrent()
        again: bool | None = self._stack.switch()
        return again if self._stack.dead else None

    def pause(self, awaited: Future[Any] | None = None) -> None:
        """Return to the caller of `resume`, perhaps until a result is there; called inside the step."""
        self._paused, self.awaited = True, awaited
        self.operator.give_messages_back()
        assert self._stack.parent is not None
        self._stack.parent.switch()
        self.awaited = None

    def stop(self) -> None:
        """End the step where it paused; its operator must not be stepped again."""
        if not self._stack.dead:
            self._stack.parent = getcurrent()
            self._stack.throw()
