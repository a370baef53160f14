"""Into, around and out of a loop.

    enter     (t)     → (t, 0)
    feedback  (t, r)  → (t, r + 1)
    leave     (t, r)  → (t)

A loop is  variable = enter(source) + feedback(result − enter(source)),  which settles when result = variable. Any two
updates that cancel must meet before they go round again, so a cycle without an arrangement on it is consolidated.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.updates import Ints, Updates
from kpg.dataflow.operator import Inputs, Operator
from kpg.errors import TooManyRounds
from kpg.operators.payload import updates_of


class Enter(Operator):
    """The updates of a collection, in round 0 of a loop."""

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            times = tuple([time + (0,) for time in message.times])
            for updates in updates_of(message.payload):
                self.send(Updates(updates.data, append_zero(updates.times), updates.diffs), times)
        return False


class EnterArranged(Operator):
    """The batches of an arrangement, unchanged and shared: readers see a missing coordinate as zero."""

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            self.send(message.payload, tuple([time + (0,) for time in message.times]))
        return False


class Leave(Operator):
    """The updates of a loop, without their round: outside, all rounds of a time are one."""

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            times = tuple(sorted({time[:-1] for time in message.times}))
            for updates in updates_of(message.payload):
                self.send(Updates(updates.data, drop_last(updates.times), updates.diffs), times)
        return False


class Feedback(Operator):
    """The result of a loop's body, one round later; refuses to pass a limit of rounds."""

    def __init__(self, name: str, max_rounds: int) -> None:
        super().__init__(name)
        self.max_rounds = max_rounds

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            times = tuple([time[:-1] + (time[-1] + 1,) for time in message.times])
            for updates in updates_of(message.payload):
                if not len(updates):
                    continue
                later = updates.times.copy()
                later[-1] += 1
                if int(later[-1].max()) > self.max_rounds:
                    raise TooManyRounds(
                        f"{self.name} did not reach a fixed point within {self.max_rounds} rounds",
                        hint="Check that the recursion ends, or allow more with max_rounds=.",
                    )
                self.send(Updates(updates.data, later, updates.diffs), times)
        return False


def append_zero(times: Ints) -> Ints:
    """The times with one more coordinate, zero."""
    extended = np.zeros((times.shape[0] + 1, times.shape[1]), np.int64)
    extended[:-1] = times
    return extended


def drop_last(times: Ints) -> Ints:
    """The times without their last coordinate; one column if they are all alike."""
    kept = times[:-1]
    if kept.shape[1] > 1 and (kept == kept[:, :1]).all():
        return kept[:, :1].copy()
    return np.ascontiguousarray(kept)
