"""The operators of a loop: enter it, feed back to it, leave it.

    enter     (t)     → (t, 0)
    feedback  (t, r)  → (t, r + 1)
    leave     (t, r)  → (t)

A loop is  variable = enter(source) + feedback(result − enter(source)).  It reaches its fixpoint when result = variable.
Updates that cancel must be consolidated before they are fed back, so a cycle without an arrangement has a consolidate.
"""

from __future__ import annotations

import numpy as np

from kpg.algebra.order import Time
from kpg.columns.selection import keep
from kpg.columns.updates import Ints, Updates
from kpg.dataflow.operator import Inputs, Operator
from kpg.errors import TooManyRounds
from kpg.operators.payload import updates_of


class Enter(Operator):
    """Send the updates of a collection in round 0 of a loop."""

    enters_loop = True

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            times = tuple([time + (0,) for time in message.times])
            for updates in updates_of(message.payload):
                self.send(updates.with_times(append_zero(updates.times)), times)
        return False


class EnterArranged(Operator):
    """Send the batches of an arrangement unchanged. Readers treat a missing coordinate as zero."""

    enters_loop = True

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            self.send(message.payload, tuple([time + (0,) for time in message.times]))
        return False


class Leave(Operator):
    """Send the updates of a loop without their round: outside, the rounds of an epoch are one time."""

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            times = tuple(sorted({time[:-1] for time in message.times}))
            for updates in updates_of(message.payload):
                self.send(updates.with_times(drop_last(updates.times)), times)
        return False


class Feedback(Operator):
    """Send the result of a loop's body in the next round. Beyond a limit, raise TooManyRounds, or stop."""

    begins_round = True

    def __init__(self, name: str, max_rounds: int, stops: bool = False) -> None:
        super().__init__(name)
        self.max_rounds = max_rounds
        self.stops = stops

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            times = tuple([time[:-1] + (time[-1] + 1,) for time in message.times])
            for updates in updates_of(message.payload):
                if not len(updates):
                    continue
                later = updates.times.copy()
                later[-1] += 1
                if int(later[-1].max()) > self.max_rounds:
                    if self.stops:
                        self._send_before_limit(updates.with_times(later), times)
                        continue
                    self.dataflow.note_circulating(updates.data)
                    raise self.too_many_rounds()
                self.send(updates.with_times(later), times)
        return False

    def too_many_rounds(self) -> TooManyRounds:
        """Return the error of a loop that goes on beyond the limit."""
        return TooManyRounds(
            f"{self.name} did not reach a fixed point within {self.max_rounds} rounds",
            hint="Check that the recursion ends, or allow more: max_rounds= in a program, "
            'limits={"rounds": N} in a request, kpg serve --max-rounds N.',
        )

    def _send_before_limit(self, updates: Updates, times: tuple[Time, ...]) -> None:
        """Send only the updates of allowed rounds."""
        kept = keep(updates, np.broadcast_to(updates.times[-1] <= self.max_rounds, (len(updates),)))
        allowed = tuple(time for time in times if time[-1] <= self.max_rounds)
        if len(kept):
            self.send(kept, allowed)


def append_zero(times: Ints) -> Ints:
    """Return the times with a zero appended."""
    extended = np.zeros((times.shape[0] + 1, times.shape[1]), np.int64)
    extended[:-1] = times
    return extended


def drop_last(times: Ints) -> Ints:
    """Return the times without their last coordinate, as a constant if all are equal."""
    kept = times[:-1]
    if kept.shape[1] > 1 and (kept == kept[:, :1]).all():
        return kept[:, :1].copy()
    return np.ascontiguousarray(kept)
