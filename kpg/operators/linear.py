"""Operators that look at one update at a time: select, filter, negate, flat_map, and whatever is made of them.

    output  =  the sum over updates of f(update),   f applied to whole columns

A `Linear` operator runs a list of stages, each a function from updates to updates, so that a chain of them costs one
step. Stages keep or advance times. Rows on which an expression fails leave through port 1 as errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kpg.columns.bind import BoundExpression
from kpg.columns.schema import Schema
from kpg.columns.selection import keep, take
from kpg.columns.updates import Ints, Updates, spread
from kpg.dataflow.operator import Inputs, Operator, Times
from kpg.operators.error_rows import ErrorRows
from kpg.operators.payload import updates_of


class LinearStage(Protocol):
    """One function from updates to updates."""

    @property
    def fallible(self) -> bool:
        """Whether it can fail on a row."""

    @property
    def width(self) -> int:
        """The width of the diffs that come out; 0 if it does not change."""

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        """The updates that come out; failing rows are given to `fail`."""


class ErrorReport(Protocol):
    """Where a stage reports the rows it fails on."""

    def rows(self, updates: Updates, failed: npt.NDArray[np.bool_], reason: Callable[[int], str]) -> None:
        """Take the rows where `failed`; `reason(row)` says why."""

    def errors(self, updates: Updates) -> None:
        """Take updates of errors that have their numbers already."""


class InfallibleStage:
    """A stage that never fails and leaves diffs as wide as they are."""

    __slots__ = ()

    @property
    def fallible(self) -> bool:
        return False

    @property
    def width(self) -> int:
        return 0


class Linear(Operator):
    """A chain of stages as one operator; port 1 carries the errors of fallible ones."""

    def __init__(
        self,
        name: str,
        stages: Sequence[LinearStage],
        failures: ErrorRows | None = None,
        meanings: Sequence[Schema] = (),
    ) -> None:
        super().__init__(name)
        self.stages = tuple(stages)
        self.failures = failures
        self._meanings = tuple(meanings)  # what the lanes are that each stage reads
        self._stage = 0
        self._times: Times = ()

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            self._times = message.times
            for updates in updates_of(message.payload):
                for index, stage in enumerate(self.stages):
                    if len(updates):
                        self._stage = index
                        updates = stage.apply(updates, self)
                if len(updates):
                    self.send(updates, message.times)
        return False

    def rows(self, updates: Updates, failed: npt.NDArray[np.bool_], reason: Callable[[int], str]) -> None:
        """Send the errors of failed rows."""
        assert self.failures is not None, f"{self.name} was said not to fail"
        rows = keep(updates, failed)
        reasons = [reason(row) for row in np.flatnonzero(failed).tolist()]
        place, meaning = (self.dataflow.id, self.index), self._meanings[self._stage]
        numbers = self.failures.intern(self.name, place, reasons, rows.data, meaning)
        self.errors(Updates(numbers.reshape(1, -1), rows.times, rows.diffs))

    def errors(self, updates: Updates) -> None:
        """Send updates of errors."""
        self.send(updates, self._times, port=1)


@dataclass(frozen=True, slots=True)
class PickStage(InfallibleStage):
    """Some lanes, in some order."""

    lanes: tuple[int, ...]

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        if len(self.lanes) == 1:
            lane = self.lanes[0]
            return Updates(updates.data[lane : lane + 1], updates.times, updates.diffs)
        return Updates(updates.data[list(self.lanes)], updates.times, updates.diffs)


@dataclass(frozen=True, slots=True)
class ComputeStage:
    """One lane per bound expression."""

    expressions: tuple[BoundExpression, ...]

    width = 0

    @property
    def fallible(self) -> bool:
        return any(expression.fallible for expression in self.expressions)

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        data = np.empty((len(self.expressions), len(updates)), np.int64)
        failed: npt.NDArray[np.bool_] | None = None
        for lane, expression in enumerate(self.expressions):
            result = expression.evaluate(updates.data)
            data[lane] = result.values
            if result.failed is not None and result.failed.any():
                fresh = result.failed if failed is None else result.failed & ~failed
                fail.rows(updates, fresh, result.reason)
                failed = result.failed if failed is None else failed | result.failed
        computed = Updates(data, updates.times, updates.diffs)
        return computed if failed is None else keep(computed, ~failed)


@dataclass(frozen=True, slots=True)
class FilterStage:
    """The rows on which a bound expression is true: not false, not null. It may read some of the lanes only."""

    expression: BoundExpression
    lanes: tuple[int, int] | None = None  # from, to

    width = 0

    @property
    def fallible(self) -> bool:
        return self.expression.fallible

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        data = updates.data if self.lanes is None else np.ascontiguousarray(updates.data[slice(*self.lanes)])
        result = self.expression.evaluate(data)
        mask = result.values == 1
        if result.failed is not None and result.failed.any():
            fail.rows(updates, result.failed, result.reason)
            mask &= ~result.failed
        return updates if mask.all() else keep(updates, mask)


@dataclass(frozen=True, slots=True)
class NegateStage(InfallibleStage):
    """Every diff negated."""

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        return Updates(updates.data, updates.times, -updates.diffs)


@dataclass(frozen=True, slots=True)
class ComplementStage(InfallibleStage):
    """Some lanes with their order turned round: the largest value becomes the first."""

    lanes: tuple[int, ...]

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        data = updates.data.copy()
        for lane in self.lanes:
            np.invert(data[lane], out=data[lane])
        return Updates(data, updates.times, updates.diffs)


@dataclass(frozen=True, slots=True)
class ExplodeStage(InfallibleStage):
    """As many copies of each row as a lane says; that lane is dropped."""

    lane: int
    kept: tuple[int, ...]

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        diffs = updates.diffs * updates.data[self.lane : self.lane + 1]
        return Updates(updates.data[list(self.kept)], updates.times, diffs)


@dataclass(frozen=True, slots=True)
class FlatMapStage:
    """Each row becomes any number of rows: `function(data)` returns positions of rows, and a row of data for each.

    If it raises, the rows are halved until those at fault are alone; only they fail, with the exception as reason.
    """

    function: Callable[[Ints], tuple[Ints, Ints]]
    lanes: tuple[int, ...]

    fallible = True
    width = 0

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        given = np.ascontiguousarray(updates.data[list(self.lanes)])
        parts: list[tuple[Ints, Ints]] = []
        reasons: dict[int, str] = {}
        pending = [(0, len(updates))]
        while pending:
            start, stop = pending.pop()
            try:
                rows, data = self.function(np.ascontiguousarray(given[:, start:stop]))
                parts.append((rows + start, data))
            except Exception as error:  # whatever a user's function raises is the row's failure
                if stop - start == 1:
                    reasons[start] = f"{type(error).__name__}: {error}"
                else:
                    middle = (start + stop) // 2
                    pending += [(middle, stop), (start, middle)]
        if reasons:
            failed = np.zeros(len(updates), np.bool_)
            failed[list(reasons)] = True
            fail.rows(updates, failed, reasons.__getitem__)
        if not parts:
            return take(updates, np.empty(0, np.int64))
        taken = take(updates, np.concatenate([rows for rows, _ in parts]))
        return Updates(np.concatenate([data for _, data in parts], axis=1), taken.times, taken.diffs)


@dataclass(frozen=True, slots=True)
class DelayStage:
    """One coordinate of each time raised to the value of a bound expression, where that is later."""

    expression: BoundExpression
    coordinate: int

    width = 0

    @property
    def fallible(self) -> bool:
        return self.expression.fallible

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        result = self.expression.evaluate(updates.data)
        times = spread(updates.times, len(updates)).copy()
        np.maximum(times[self.coordinate], result.values, out=times[self.coordinate])
        delayed = Updates(updates.data, times, updates.diffs)
        if result.failed is None or not result.failed.any():
            return delayed
        fail.rows(updates, result.failed, result.reason)
        return keep(delayed, ~result.failed)
