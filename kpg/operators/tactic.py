"""What a reduction asks of the code that computes it: which keys, at which times, from which batches.

The driver (`reduce`) decides *when* and *what*; a tactic does it in columns. The general tactic brings whole histories
together and replays them, whatever the function; others are quicker at what they can do and leave the rest to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from kpg.algebra.frontier import Frontier
from kpg.algebra.order import Time
from kpg.columns.updates import Ints, Updates, spread
from kpg.operators.corrections import Corrections, InterestingTimes, interesting_times
from kpg.operators.payload import Batches
from kpg.trace.batch import Batch
from kpg.trace.key_history import KeyHistory, gather

Evaluate: TypeAlias = Callable[
    [Ints, InterestingTimes, KeyHistory, KeyHistory], Corrections
]  # keys, times, input and output histories


@dataclass(frozen=True, slots=True)
class Question:
    """Which groups to look at: per key the times at which its output may change."""

    keys: Ints  # int64[key lanes, m], sorted, distinct
    offsets: Ints  # int64[m + 1]: where each key's seeds begin
    seeds: Ints  # int64[depth, n or 1]: per key sorted, distinct
    monotone: bool  # only insertions came, and no time that was put off is due
    inputs: tuple[Batch, ...]
    outputs: tuple[Batch, ...]
    upper: Frontier
    grown: bool = False  # monotone, and nothing was ever taken away before

    @property
    def depth(self) -> int:
        """How many coordinates a time has."""
        return int(self.seeds.shape[0])


@dataclass(frozen=True, slots=True)
class Outcome:
    """Corrections of the output, and the times (by key number) at which to look again."""

    corrections: Corrections
    late_keys: Ints
    late_times: Ints


class Tactic(Protocol):
    """How a function of groups is computed."""

    def correct(self, question: Question) -> Outcome:
        """The corrections at all interesting times not beyond the question's upper, and the times that are."""

    def moved(self, news: Updates, keys: Ints, offsets: Ints, outputs: Batches) -> Ints | None:
        """Which keys are to be asked about for their new rows, all of one time; None for all of them.

        The rows of each key begin at its offset. A key may be left out if its output is the same at every time.
        """


@dataclass(frozen=True, slots=True)
class ReplayTactic:
    """The general tactic: gather histories, find the interesting times, evaluate a function at each."""

    evaluate: Evaluate
    out_values: int  # lanes of the output after its key

    def moved(self, news: Updates, keys: Ints, offsets: Ints, outputs: Batches) -> Ints | None:
        return None

    def correct(self, question: Question) -> Outcome:
        keys, depth = question.keys, question.depth
        seeds = spread(question.seeds, int(question.offsets[-1]))
        floor: Time = tuple(seeds.min(axis=1).tolist())
        inputs = gather(question.inputs, keys, floor, depth)
        if question.outputs:
            outputs = gather(question.outputs, keys, floor, depth)
        else:
            outputs = no_history(keys.shape[1], self.out_values, depth)
        times = interesting_times(question.offsets, seeds, inputs, outputs, question.upper)
        late_keys = np.repeat(np.arange(keys.shape[1]), np.diff(times.pending_offsets))
        return Outcome(self.evaluate(keys, times, inputs, outputs), late_keys, times.pending_times)


def no_history(keys: int, values: int, depth: int) -> KeyHistory:
    """The history of keys of which nothing was ever said."""
    return KeyHistory(
        np.zeros(keys + 1, np.int64),
        np.empty((values, 0), np.int64),
        np.empty((depth, 0), np.int64),
        np.empty((1, 0), np.int64),
    )
