"""The columns that reductions compute: times to evaluate, target rows, and corrections."""

from __future__ import annotations

from dataclasses import dataclass

from kpg.columns.updates import Ints


@dataclass(frozen=True, slots=True, eq=False)
class InterestingTimes:
    """For each key the times to evaluate now, and the minimal times that stay pending; sorted and distinct."""

    eval_offsets: Ints
    eval_times: Ints
    pending_offsets: Ints
    pending_times: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Corrections:
    """Updates of an output, sorted by (key_index, data, time) and consolidated. Times and diffs may be constants."""

    key_index: Ints
    data: Ints
    times: Ints
    diffs: Ints

    def __len__(self) -> int:
        return int(self.key_index.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class TargetOutput:
    """The rows that an output should have at each evaluation time, sorted by value. A diff of zero is no row."""

    spans: Ints  # int64[2, evaluation times]: first and end row of each time; without columns, each has one row
    data: Ints
    diffs: Ints
