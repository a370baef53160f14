"""Tactics: how a reduction computes the corrections of its output, given keys, times and batches.

The driver (kpg.operators.reduce) decides *when* and *for which keys*; a tactic computes in columns. The general tactic
gathers and replays whole histories, for any function. Special tactics are faster for some cases and leave the others to
the general one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.updates import Ints, Updates, spread
from kpg.operators.correction_columns import Corrections, InterestingTimes
from kpg.operators.corrections import interesting_times
from kpg.operators.payload import Batches
from kpg.trace.batch import Batch
from kpg.trace.key_history import KeyHistory, gather

Evaluate: TypeAlias = Callable[
    [Ints, InterestingTimes, KeyHistory, KeyHistory], Corrections
]  # keys, times, input and output histories


@dataclass(frozen=True, slots=True)
class ReduceTask:
    """The groups to evaluate: for each key, the times at which its output may change (seeds)."""

    keys: Ints  # int64[key lanes, m], sorted, distinct
    offsets: Ints  # int64[m + 1]: the first seed of each key
    seeds: Ints  # int64[depth, n or 1]: sorted and distinct for each key
    monotone: bool  # all new updates are insertions, and no pending time is due
    inputs: tuple[Batch, ...]
    outputs: tuple[Batch, ...]
    upper: Frontier
    never_retracted: bool = False  # monotone, and all earlier updates were insertions too

    @property
    def depth(self) -> int:
        """The number of coordinates of a time."""
        return int(self.seeds.shape[0])


@dataclass(frozen=True, slots=True)
class ReduceResult:
    """The corrections of the output, and the times at which keys (by number) must be evaluated again."""

    corrections: Corrections
    pending_keys: Ints
    pending_times: Ints


class Tactic(Protocol):
    """A way to compute a function of groups."""

    def correct(self, task: ReduceTask) -> ReduceResult:
        """Return the corrections at all interesting times not beyond the task's upper, and the times beyond it."""

    def affected_keys(self, news: Updates, keys: Ints, offsets: Ints, outputs: Batches) -> Ints | None:
        """Return the numbers of the keys with output that may change, given new rows at one time; None for all keys.

        The new rows of each key begin at its offset.
        """


@dataclass(frozen=True, slots=True)
class ReplayTactic:
    """The general tactic: gather histories, find the interesting times, and evaluate a function at each."""

    evaluate: Evaluate
    out_values: int  # lanes of the output after its key

    def affected_keys(self, news: Updates, keys: Ints, offsets: Ints, outputs: Batches) -> Ints | None:
        return None

    def correct(self, task: ReduceTask) -> ReduceResult:
        keys, depth = task.keys, task.depth
        seeds = spread(task.seeds, int(task.offsets[-1]))
        floor: Time = tuple(seeds.min(axis=1).tolist())
        inputs = gather(task.inputs, keys, floor, depth)
        if task.outputs:
            outputs = gather(task.outputs, keys, floor, depth)
        else:
            outputs = no_history(keys.shape[1], self.out_values, depth)
        times = interesting_times(task.offsets, seeds, inputs, outputs, task.upper)
        pending_keys = np.repeat(np.arange(keys.shape[1]), np.diff(times.pending_offsets))
        return ReduceResult(self.evaluate(keys, times, inputs, outputs), pending_keys, times.pending_times)


def no_history(keys: int, values: int, depth: int) -> KeyHistory:
    """Return the empty history of some keys."""
    return KeyHistory(
        np.zeros(keys + 1, np.int64),
        np.empty((values, 0), np.int64),
        np.empty((depth, 0), np.int64),
        np.empty((1, 0), np.int64),
    )
