"""Linear operators: select, filter, negate, flat_map and others that process each update independently.

    output  =  the sum over updates of f(update),   f applied to whole columns

A `Linear` operator runs a list of stages. Each stage is a function from updates to updates, and a chain of stages costs
one step. Stages keep or advance times. A row on which an expression fails leaves through port 1 as an error row.
Many rows pass through the stages in slices, so that what a stage computes is still in the cache for the next one, and
other computations run between the slices. The rows into which a stage expands few rows are cut as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kpg.columns.bind import BoundExpression
from kpg.columns.exact_diffs import multiply_diffs
from kpg.columns.expression_origin import ExpressionOrigin, Failure
from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import aside, pause
from kpg.columns.schema import Schema, slots_of
from kpg.columns.selection import keep, take
from kpg.columns.updates import Ints, Updates, concatenate, spread
from kpg.dataflow.operator import Inputs, Operator, Times
from kpg.errors import KpgError, OverBudget, OverLimit, Stopped
from kpg.operators.error_rows import ErrorRows
from kpg.operators.payload import updates_of
from kpg.operators.routed_filter import RoutedFilter

FEW_ROWS = 256  # up to this number, rows are not cut, unless a stage makes many of them
FAILED_ROWS_PER_PAUSE = 1 << 10  # rows whose errors become texts between two pauses: a millisecond of work or two
SLICE_ROWS = 1 << 14  # a lane of a slice has 128 KiB, so that a handful of them fit the second-level cache


class LinearStage(Protocol):
    """A function from updates to updates."""

    @property
    def fallible(self) -> bool:
        """Whether it can fail on a row."""

    @property
    def width(self) -> int:
        """The width of the output diffs; 0 if it is that of the input."""

    @property
    def sliceable(self) -> bool:
        """Whether slices of the rows cost no more than all of them at once. The lanes of a slice are not adjacent."""

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        """Return the output updates, and report failing rows to `fail`."""


class ErrorReport(Protocol):
    """Receives the rows on which a stage fails."""

    def report_rows(
        self, updates: Updates, failed: npt.NDArray[np.bool_], reason: Callable[[int], Failure | str]
    ) -> None:
        """Report the rows where `failed` is true. `reason(row)` returns the reason."""

    def report_errors(self, updates: Updates) -> None:
        """Report updates of errors that have symbols already."""


Slot: TypeAlias = int | slice  # the index of a column's lanes in a block

# Returns the updates to send, given the outputs of the stages for the slices of one message.
Collector: TypeAlias = Callable[[Iterator[Updates], ErrorReport], Iterator[Updates]]


def concatenate_outputs(outputs: Iterator[Updates], fail: ErrorReport) -> Iterator[Updates]:
    """Yield all outputs as one."""
    parts = [part for part in outputs if len(part)]
    if parts:
        yield aside(sum([part.data.size for part in parts]), join_outputs, parts)


def join_outputs(parts: list[Updates]) -> Updates:
    """Return the outputs of some slices as one, with adjacent lanes."""
    whole = concatenate(parts)
    return whole if whole.data.flags.c_contiguous else whole.with_data(np.ascontiguousarray(whole.data))


class InfallibleStage:
    """A stage that never fails and does not change the width of diffs."""

    __slots__ = ()

    @property
    def fallible(self) -> bool:
        return False

    @property
    def width(self) -> int:
        return 0

    @property
    def sliceable(self) -> bool:
        return True


class FewRows(Protocol):
    """Applies stages to few rows at once: see kpg.operators.stages_of_few."""

    def run(self, updates: Updates) -> Updates | None:
        """Return the output of the stages, or None if they must be applied one after the other."""


class Linear(Operator):
    """A chain of stages as one operator. Port 1 carries the errors of its fallible stages."""

    def __init__(
        self,
        name: str,
        stages: Sequence[LinearStage],
        failures: ErrorRows | None = None,
        schemas: Sequence[Schema] = (),
        collector: Collector | None = None,
        routed: RoutedFilter | None = None,
        few: FewRows | None = None,
    ) -> None:
        super().__init__(name)
        self._few = few
        self.stages = tuple(stages)
        self.collector = collector or concatenate_outputs
        self.failures = failures
        self._schemas = tuple(schemas)  # of the input of each stage
        self._stage = 0  # the index of the stage in progress
        self._times: Times = ()  # of the message in progress
        self._first_sliceable = first_sliceable(stages)  # from this stage on, slices cost no more
        self._routed = routed

    def follow_frontiers(self) -> None:
        """Begin to receive only the batches that its first filter needs."""
        if self._routed is not None:
            self._routed.begin()

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            self._times = message.times
            payload = message.payload
            candidates: Iterable[Updates] = (payload,)
            if self._routed is not None:
                candidates = self._routed.candidates(payload)
            elif not isinstance(payload, Updates):
                candidates = updates_of(payload)
            for updates in candidates:
                if updates.data.shape[1] <= FEW_ROWS and self.collector is concatenate_outputs:
                    self._send_whole(updates, message.times)
                    continue
                for output in self.collector(self._outputs(updates), self):
                    if len(output):
                        self.send(output, message.times)
        return False

    def _send_whole(self, updates: Updates, times: Times) -> None:
        """Send the output of few rows, which need no slices."""
        output = None if self._few is None else self._few.run(updates)
        if output is None:
            for whole in concatenate_outputs(self._outputs(updates), self):
                self.send(whole, times)
        elif output.data.shape[1]:
            self.send(output, times)

    def _outputs(self, updates: Updates, first: int = 0) -> Iterator[Updates]:
        """Yield the output of the stages from `first` on. From the first sliceable stage on, many rows are cut."""
        for index in range(first, len(self.stages)):
            if index >= self._first_sliceable and len(updates) > 2 * SLICE_ROWS:
                for part in slices(updates):
                    yield from self._outputs(part, index)
                return
            if len(updates):
                self._stage = index
                updates = self.stages[index].apply(updates, self)
        if len(updates) > 2 * SLICE_ROWS and self.collector is not concatenate_outputs:
            yield from slices(updates)
        else:
            yield updates

    def report_rows(
        self, updates: Updates, failed: npt.NDArray[np.bool_], reason: Callable[[int], Failure | str]
    ) -> None:
        """Send the errors of failed rows; others run meanwhile if there are many."""
        assert self.failures is not None, f"{self.name} has a fallible stage but no error rows"
        rows, positions = keep(updates, failed), np.flatnonzero(failed).tolist()
        operator_id, schema = (self.dataflow.id, self.index), self._schemas[self._stage]
        symbols = np.empty(len(rows), np.int64)
        for start in range(0, len(rows), FAILED_ROWS_PER_PAUSE):
            part = slice(start, start + FAILED_ROWS_PER_PAUSE)
            failures = [as_failure(reason(row)) for row in positions[part]]
            symbols[part] = self.failures.intern(operator_id, failures, rows.data[:, part], schema)
            pause()
        self.report_errors(Updates(symbols.reshape(1, -1), rows.times, rows.diffs))

    def report_errors(self, updates: Updates) -> None:
        """Send updates of errors."""
        self.send(updates, self._times, port=1)


def first_sliceable(stages: Sequence[LinearStage]) -> int:
    """Return the index of the first stage from which on all stages are sliceable."""
    unsliceable = [index for index, stage in enumerate(stages) if not stage.sliceable]
    return unsliceable[-1] + 1 if unsliceable else 0


def slices(updates: Updates) -> Iterator[Updates]:
    """Yield the updates in slices; others may run after each."""
    for start in range(0, len(updates), SLICE_ROWS):
        yield view_of(updates, start, start + SLICE_ROWS)
        pause()


def view_of(updates: Updates, start: int, end: int) -> Updates:
    """Return some consecutive updates. The data are not copied, so their lanes are not adjacent in memory."""
    return Updates(
        updates.data[:, start:end],
        updates.times if updates.times.shape[1] == 1 else np.ascontiguousarray(updates.times[:, start:end]),
        updates.diffs if updates.diffs.shape[1] == 1 else np.ascontiguousarray(updates.diffs[:, start:end]),
    )


def as_failure(reason: Failure | str) -> Failure:
    """Return a reason in words as a failure without an origin."""
    return reason if isinstance(reason, Failure) else Failure(reason)


@dataclass(frozen=True, slots=True)
class PickStage(InfallibleStage):
    """Keep some lanes, in a given order."""

    lanes: tuple[int, ...]

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        if len(self.lanes) == 1:
            lane = self.lanes[0]
            return updates.with_data(updates.data[lane : lane + 1])
        return updates.with_data(updates.data[list(self.lanes)])


@dataclass(frozen=True, slots=True)
class ComputeStage:
    """Compute a column for each bound expression. With `silent`, rows that fail are dropped without an error."""

    expressions: tuple[BoundExpression, ...]
    silent: bool = False
    lanes: int = field(init=False)  # of the output
    copied: tuple[tuple[Slot, Slot], ...] = field(init=False)  # the slots of plain columns, in the output and the input
    computed: tuple[tuple[Slot, BoundExpression], ...] = field(init=False)  # the other columns

    width = 0

    def __post_init__(self) -> None:
        slots, lanes = slots_of([expression.type for expression in self.expressions])
        columns = list(zip(slots, self.expressions, strict=True))
        copied = [(slot, bound.schema.slots[bound.column]) for slot, bound in columns if bound.column is not None]
        object.__setattr__(self, "lanes", lanes)
        object.__setattr__(self, "copied", tuple(copied))
        object.__setattr__(self, "computed", tuple([(slot, bound) for slot, bound in columns if bound.column is None]))

    @property
    def fallible(self) -> bool:
        return not self.silent and any(expression.fallible for expression in self.expressions)

    @property
    def sliceable(self) -> bool:
        return all(expression.sliceable for expression in self.expressions)

    @property
    def read_lanes(self) -> list[int | None]:
        """For each lane of the output, the lane of the input that it equals; None for a computed one."""
        return [lane for expression in self.expressions for lane in expression.read_lanes]

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        data = np.empty((self.lanes, len(updates)), np.int64)
        for slot, source in self.copied:
            data[slot] = updates.data[source]
        failed: npt.NDArray[np.bool_] | None = None
        for slot, expression in self.computed:
            result = expression.evaluate(updates.data)
            data[slot] = result.values
            if result.failed is not None and result.failed.any():
                fresh = result.failed if failed is None else result.failed & ~failed
                if not self.silent:
                    fail.report_rows(updates, fresh, result.failure)
                failed = result.failed if failed is None else failed | result.failed
        computed = updates.with_data(data)
        return computed if failed is None else keep(computed, ~failed)


@dataclass(frozen=True, slots=True)
class FilterStage:
    """Keep the rows on which a bound expression is true: not false, not null. `lanes` limits what it reads.

    With `silent`, rows that fail are dropped without an error.
    """

    expression: BoundExpression
    lanes: tuple[int, int] | None = None  # first and end of the range it reads
    silent: bool = False

    width = 0

    @property
    def fallible(self) -> bool:
        return self.expression.fallible and not self.silent

    @property
    def sliceable(self) -> bool:
        return self.expression.sliceable

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        data = updates.data if self.lanes is None else np.ascontiguousarray(updates.data[slice(*self.lanes)])
        result = self.expression.evaluate(data)
        mask = result.values == 1
        if result.failed is not None and result.failed.any():
            if not self.silent:
                read = updates if self.lanes is None else Updates(data, updates.times, updates.diffs)
                fail.report_rows(read, result.failed, result.failure)
            mask &= ~result.failed
        return updates if mask.all() else keep(updates, mask)


def required_constants(stages: Sequence[LinearStage]) -> dict[int, int]:
    """Return the lanes that the first filters of a chain compare with constants: other rows neither pass nor fail."""
    constants: dict[int, int] = {}
    for stage in stages:
        if not isinstance(stage, FilterStage) or stage.lanes is not None:
            break
        constants |= stage.expression.required_constants(silent=stage.silent)
        if stage.fallible:
            break
    return constants


@dataclass(frozen=True, slots=True)
class NegateStage(InfallibleStage):
    """Negate every diff."""

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        return Updates(updates.data, updates.times, -updates.diffs, known_mass=updates.known_mass)


@dataclass(frozen=True, slots=True)
class ComplementStage(InfallibleStage):
    """Reverse the order of some lanes: the largest value becomes the smallest."""

    lanes: tuple[int, ...]

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        data = updates.data.copy()
        for lane in self.lanes:
            np.invert(data[lane], out=data[lane])
        return updates.with_data(data)


@dataclass(frozen=True, slots=True)
class ExplodeStage(InfallibleStage):
    """Multiply the diff of each row by the value of a lane, and drop that lane."""

    lane: int
    kept: tuple[int, ...]

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        diffs = multiply_diffs(updates.diffs, updates.data[self.lane : self.lane + 1])
        return Updates(updates.data[list(self.kept)], updates.times, diffs)


@dataclass(frozen=True, slots=True)
class FlatMapStage:
    """Replace each row by any number of rows. `function(data)` returns the input position and the data of each.

    If it raises, the rows are halved until the failing ones are alone. Only these fail, for the reason it raised.
    """

    function: Callable[[Ints], tuple[Ints, Ints]]
    lanes: tuple[int, ...]
    origin: ExpressionOrigin | None = None
    silent: bool = False

    width = 0

    sliceable = False  # the function may treat a batch as a whole

    @property
    def fallible(self) -> bool:
        return not self.silent

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        columns = np.ascontiguousarray(updates.data[list(self.lanes)])
        parts: list[tuple[Ints, Ints]] = []
        reasons: dict[int, Failure] = {}
        pending = [(0, len(updates))]
        while pending:
            start, stop = pending.pop()
            pause()
            try:
                rows, data = self.function(np.ascontiguousarray(columns[:, start:stop]))
                parts.append((rows + start, data))
            except (OverBudget, OverLimit, Stopped):
                raise
            except Exception as error:  # any other exception of a user's function is the failure of the row
                if stop - start == 1:
                    reasons[start] = self._failure(error)
                else:
                    middle = (start + stop) // 2
                    pending += [(middle, stop), (start, middle)]
        if reasons:
            failed = np.zeros(len(updates), np.bool_)
            failed[list(reasons)] = True
            if not self.silent:
                fail.report_rows(updates, failed, reasons.__getitem__)
        if not parts:
            return take(updates, np.empty(0, np.int64))
        nbytes = sum(rows.nbytes + data.nbytes for rows, data in parts)
        reserve(nbytes)
        return aside(nbytes // 8, join_expanded, Updates(updates.data[:0], updates.times, updates.diffs), parts)

    def _failure(self, error: Exception) -> Failure:
        words = error.what if isinstance(error, KpgError) else f"{type(error).__name__}: {error}"
        return Failure(words) if self.origin is None else Failure(f"{words} in {self.origin.text}", self.origin)


def join_expanded(inputs: Updates, parts: list[tuple[Ints, Ints]]) -> Updates:
    """Return the rows of all parts, each with the time and diff of the input at its position."""
    positions = np.concatenate([rows for rows, _ in parts])
    data = np.concatenate([data for _, data in parts], axis=1)
    return take(inputs, positions).with_data(data)


@dataclass(frozen=True, slots=True)
class DelayStage:
    """Advance one coordinate of each time to the value of a bound expression, where that is later."""

    expression: BoundExpression
    coordinate: int

    width = 0

    @property
    def fallible(self) -> bool:
        return self.expression.fallible

    @property
    def sliceable(self) -> bool:
        return self.expression.sliceable

    def apply(self, updates: Updates, fail: ErrorReport) -> Updates:
        result = self.expression.evaluate(updates.data)
        times = spread(updates.times, len(updates)).copy()
        np.maximum(times[self.coordinate], result.values, out=times[self.coordinate])
        delayed = updates.with_times(times)
        if result.failed is None or not result.failed.any():
            return delayed
        fail.report_rows(updates, result.failed, result.failure)
        return keep(delayed, ~result.failed)
