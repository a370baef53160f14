"""Sweep: count, distinct and sums for totally ordered times, without an output trace and pending times.

    output at t  =  f(Σ diffs of k in the input at t)

In a total order every new time is after all old ones. So the sum before is one number for each key, read from the
input's own trace, and the corrections at each new time retract the old value and insert the new one. A batch at one
time, as nearly all are, needs a single pass over its keys and the trace. Raises BadPlan inside loops, where times are
partially ordered: use `reduce` there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.consolidation import consolidate_all, shrink_block
from kpg.columns.exact_diffs import MAX_MASS, mass
from kpg.columns.exact_sums import COUNT_ONLY, LaneKinds
from kpg.columns.output_buffer import allocate_block, release_unused
from kpg.columns.pause_points import aside
from kpg.columns.updates import Ints, Updates, concatenate, trim
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Inputs, Message, Operator, Times
from kpg.errors import BadPlan
from kpg.kernels.one_pass_corrections import PRESENCE, SUMS
from kpg.kernels.single_time import single_time_changes
from kpg.kernels.sweep_few import sweep_few
from kpg.kernels.sweep_totals import sums_changes_of_batch
from kpg.operators.arrange import Arranged
from kpg.operators.corrections import sweep_presence, sweep_sums
from kpg.operators.exact_corrections import sweep_exactly
from kpg.operators.payload import Batches
from kpg.operators.reduce import shrink
from kpg.operators.reduce_in_parts import parts_by_key
from kpg.operators.trace_input import TraceInput
from kpg.operators.unfit_totals import UnfitTotals, split_unfit
from kpg.trace.batch import Batch, may_leave_64_bits
from kpg.trace.description import Description
from kpg.trace.key_history import accumulate_in_64_bits, distinct_keys

__all__ = ["PRESENCE", "SUMS", "Sweep", "SweepReduce", "sweep_reduce"]

START = Frontier.start(1)
FEW_ROWS = 128  # a batch that is corrected in one call, in memory that is not given back
ROWS_ARE_KEYS = np.empty(0, np.int64)  # given to a kernel instead of offsets if each row has a key of its own


@dataclass(frozen=True, slots=True)
class Sweep:
    """A function of accumulated diffs: PRESENCE (whether lane 0 is at least `at_least`), or the SUMS themselves."""

    kind: int
    at_least: int = 0
    kinds: LaneKinds = COUNT_ONLY  # of the lanes of sums

    def correct(self, updates: Updates, key_lanes: int, before: Batches) -> Updates:
        """Return the corrections when sorted updates follow some batches, sorted by key, value and time.

        No sum may leave 64 bits; otherwise `correct_exactly` must be used.
        """
        if updates.times.shape[1] == 1:
            return self.at_single_time(updates, key_lanes, before)
        return self.over_times(updates, key_lanes, before)

    def correct_exactly(self, updates: Updates, key_lanes: int, before: Batches) -> Updates:
        """Return the corrections where sums may leave 64 bits; see kpg.operators.unfit_totals for those that do."""
        return sweep_exactly(self.kind, self.at_least, self.kinds, updates, key_lanes, before)

    def at_single_time(self, updates: Updates, key_lanes: int, before: Batches) -> Updates:
        """Return the corrections for updates at one constant time."""
        if updates.data.shape[0] == key_lanes:
            keys, offsets = updates.data, ROWS_ARE_KEYS  # each row is distinct
        else:
            keys, offsets = distinct_keys(updates, key_lanes)
        old = accumulate_in_64_bits(before, keys, updates.width)
        values = updates.diffs.shape[0] if self.kind == SUMS else 0
        most = keys.shape[1] * (2 if before and self.kind == SUMS else 1)
        data, diffs = allocate_block(key_lanes + values, most), np.empty((1, most), np.int64)
        n = single_time_changes(self.kind, self.at_least, keys, offsets, updates.diffs, old, data, diffs)
        return Updates(release_unused(data, n), updates.times, shrink_block(diffs, n), known_mass=n)  # diffs are ±1

    def of_few(self, updates: Updates, key_lanes: int, table: Ints, batches: int) -> Updates:
        """Return the same for few updates, given a table that begins with the batches before."""
        data = updates.data
        keys, offsets = (data, ROWS_ARE_KEYS) if data.shape[0] == key_lanes else distinct_keys(updates, key_lanes)
        values, most = (updates.diffs.shape[0], 2 * keys.shape[1]) if self.kind == SUMS else (0, keys.shape[1])
        out, diffs = np.empty((key_lanes + values, most), np.int64), np.empty((1, most), np.int64)
        n = sweep_few(self.kind, self.at_least, table, batches, keys, offsets, updates.diffs, out, diffs)
        return Updates(trim(out, n), updates.times, trim(diffs, n), known_mass=n)

    def over_times(self, updates: Updates, key_lanes: int, before: Batches) -> Updates:
        """Return the corrections for updates at several times."""
        keys, offsets = distinct_keys(updates, key_lanes)
        sums = accumulate_in_64_bits(before, keys, updates.width)
        if self.kind == SUMS:
            in_order = _sums_in_order(updates, keys, offsets, sums)
            if in_order is not None:
                return in_order
            corrections = sweep_sums(offsets, updates.times, updates.diffs, sums)
        else:
            corrections = sweep_presence(self.at_least, offsets, updates.times, updates.diffs, sums)
        data = np.empty((key_lanes + corrections.data.shape[0], len(corrections)), np.int64)
        np.take(
            keys, corrections.key_index, axis=1, out=data[:key_lanes], mode="clip"
        )  # "clip" avoids the copy that checking indices would need
        data[key_lanes:] = corrections.data
        return Updates(data, shrink(corrections.times), shrink(corrections.diffs), known_mass=len(corrections))


def _sums_in_order(updates: Updates, keys: Ints, offsets: Ints, before: Ints) -> Updates | None:
    """Return the corrections of sums if the times of each key are in order, as in rows without values; else None."""
    lanes, most = keys.shape[0], 2 * len(updates) - int((before == 0).all(axis=0).sum())  # a new key has no old value
    data, times, diffs = allocate_block(lanes + before.shape[0], most), allocate_block(1, most), allocate_block(1, most)
    values = data[lanes:]
    n = sums_changes_of_batch(keys, offsets, updates.times, updates.diffs, before, data, values, times, diffs)
    del values  # `release_unused` gives back memory, so nothing else may refer to it
    if n < 0:
        return None
    return Updates(release_unused(data, n), shrink_block(times, n), shrink_block(diffs, n), known_mass=n)


class SweepReduce(Operator):
    """Maintain a function of each key's accumulated diff, for times with one coordinate."""

    def __init__(self, name: str, arranged: Arranged, sweep: Sweep, unfit: UnfitTotals | None = None) -> None:
        super().__init__(name)
        if arranged.depth != 1:
            raise BadPlan(
                f"{name} needs totally ordered times",
                detail=f"Times here have {arranged.depth} coordinates.",
                hint="Inside a loop use reduce, count or distinct, which choose the general operator.",
            )
        self.key_lanes = arranged.key_lanes
        self.sweep = sweep
        self.unfit = unfit
        self.input = TraceInput(arranged, f"{name} (input)")
        self.upper = START

    def follow_frontiers(self) -> None:
        """Tie the since of the trace to the input frontier."""
        assert self.input.handle is not None
        self.input.handle.follow(lambda: self.frontier(0))

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            corrected = self._correct_few(message.payload)
            if corrected is None:
                corrected = self._correct(message)
            upper = message.payload[-1].description.upper
            if corrected.data.shape[1]:
                batch = Batch(corrected, self.key_lanes, Description(self.upper, upper, START))
                self.upper = upper
                self.send((batch,), message.times)
            self.input.acknowledge(upper)
        return False

    def _correct(self, message: Message) -> Updates:
        """Return the corrections when the batches of a message follow the acknowledged ones."""
        before, parts = self.input.batches(), []
        exact = may_leave_64_bits(before + message.payload)
        correct = self.sweep.correct_exactly if exact else self.sweep.correct
        for batch in message.payload:
            cut = (batch.updates,) if exact else parts_by_key(batch.updates, self.key_lanes)
            corrected_parts = [correct(part, self.key_lanes, before) for part in cut]
            parts.append(aside(rows_of(corrected_parts), concatenate, corrected_parts))
            before += (batch,)
        corrected = parts[0] if len(parts) == 1 else aside(rows_of(parts), consolidate_all, parts)
        if exact and self.unfit is not None:
            return self._report_unfit(self.unfit, corrected, message.times)
        return corrected

    def _correct_few(self, batches: Batches) -> Updates | None:
        """Return the corrections for one batch of few updates at one time; None for others."""
        updates = batches[0].updates
        if len(batches) > 1 or updates.times.shape[1] > 1 or updates.data.shape[1] > FEW_ROWS:
            return None
        search = self.input.search_table(updates.data.shape[1])
        if search is None or search[0].mass + mass(updates) > MAX_MASS:
            return None
        return self.sweep.of_few(updates, self.key_lanes, search[0].rows, search[1])

    def _report_unfit(self, unfit: UnfitTotals, corrected: Updates, times: Times) -> Updates:
        """Send the totals that do not fit as errors, and return the other corrections."""
        corrected, marked = split_unfit(corrected, self.key_lanes)
        if len(marked):
            self.send(unfit.errors(marked, (self.dataflow.id, self.index)), times, port=1)
        return corrected

    def release_unneeded(self) -> None:
        if self.frontier(0) == CLOSED:
            self.input.release()

    def release(self) -> None:
        self.input.release()


def rows_of(parts: list[Updates]) -> int:
    """Return the number of updates in all parts."""
    return sum(map(len, parts))


def sweep_reduce(
    dataflow: Dataflow, name: str, arranged: Arranged, sweep: Sweep, unfit: UnfitTotals | None = None
) -> tuple[SweepReduce, Stream]:
    """Add a sweep over an arrangement. Its stream carries batches by the same key. Port 1 has the unfit totals."""
    operator = SweepReduce(name, arranged, sweep, unfit)
    ports = 1 if unfit is None else 2
    return operator, dataflow.add(operator, [(arranged.stream, LocalPact())], depth=1, ports=ports)
