"""The steps of one interest that its client may not have received, so that a new connection can continue after them.

    history.after(n)  ==  the steps n + 1, n + 2, ... up to the last one; None if one of them is gone

A step is added when it is taken from the engine and numbered from 1. It is removed when the client says that it has
received it, or has not asked again within `max_age_seconds`, or when the session holds more than `hold_bytes`. So a
client that asks for `after(n)` gets each step once, or learns that it must begin again. Cost: the steps share the
memory of the messages being sent.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from kpg.server.change_payload import ChangePayload

STEP_BYTES: Final = 200  # of an empty step


@dataclass(frozen=True, slots=True)
class NumberedStep:
    """One step, its number, and the moment at which it was taken."""

    number: int
    payload: ChangePayload
    taken_at: float

    @property
    def nbytes(self) -> int:
        """The approximate size in bytes."""
        return STEP_BYTES + self.payload.nbytes


@dataclass(slots=True)
class HeldBytes:
    """The bytes of the steps that the interests of one session hold, and their maximum."""

    limit: int
    count: int = 0


class StepHistory:
    """The unacknowledged steps of one interest."""

    def __init__(self, held: HeldBytes, max_age_seconds: float | None = None) -> None:
        self.last = 0  # the number of the last step
        self._held = held
        self._max_age_seconds = max_age_seconds
        self._steps: deque[NumberedStep] = deque()

    def append(self, payload: ChangePayload, now: float) -> NumberedStep:
        """Number a step and keep it, if there is room."""
        self.last += 1
        step = NumberedStep(self.last, payload, now)
        self._steps.append(step)
        self._held.count += step.nbytes
        while self._steps and (self._held.count > self._held.limit or self._is_old(self._steps[0], now)):
            self._remove_first()
        return step

    def _is_old(self, step: NumberedStep, now: float) -> bool:
        return self._max_age_seconds is not None and now - step.taken_at > self._max_age_seconds

    def forget(self, step: int) -> None:
        """Remove the steps up to this one."""
        while self._steps and self._steps[0].number <= step:
            self._remove_first()

    def _remove_first(self) -> None:
        self._held.count -= self._steps.popleft().nbytes

    def after(self, step: int) -> list[NumberedStep] | None:
        """Return the steps that follow one; None if one of them is no longer held, or the number is not its own."""
        missing = self.last - step
        if not 0 <= missing <= len(self._steps):
            return None
        return list(self._steps)[len(self._steps) - missing :]

    def move_to(self, held: HeldBytes) -> None:
        """Count the steps for another session."""
        nbytes = sum(step.nbytes for step in self._steps)
        self._held.count -= nbytes
        held.count += nbytes
        self._held = held

    def clear(self) -> None:
        """Remove all steps."""
        self.forget(self.last)
