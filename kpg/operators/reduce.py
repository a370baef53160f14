"""Reduce: maintain a function of each key's group at every time.

    output at t  =  { (k, w) : w in f(values of k in the input at t) }       for every t not beyond the input frontier

The output of a group can change at a time at which no input changes: at the join of two input times. The operator
therefore keeps *pending* (key, time) pairs. In each step it computes, for the keys with new input or due pending times:

    interesting  =  the new and due times, closed under join with the key's input and output times
    now          =  those not beyond upper: evaluate f there, subtract the present output, send the correction
    later        =  the others: they become pending, and the operator holds a capability for them

It reads the input history from the acknowledged batches and the output history from its own trace, both advanced to the
meet of the times in question. The output is sealed in batches too, so it is an arrangement that others can share.
The driver in this file decides *when* and *for which keys*; a `Tactic` (kpg.operators.tactic) computes the corrections.
Cost: proportional to the histories of the changed keys as of the times in question.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier, minimal
from kpg.algebra.order import Time
from kpg.columns.consolidation import consolidate_all
from kpg.columns.pause_points import aside
from kpg.columns.selection import keep
from kpg.columns.updates import Ints, Updates, constant, no_updates, spread
from kpg.dataflow.channel import LocalPact
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Inputs
from kpg.operators.arrange import Arranged, Publisher
from kpg.operators.correction_columns import Corrections
from kpg.operators.reduce_in_parts import correct_in_parts
from kpg.operators.tactic import ReduceResult, ReduceTask, Tactic
from kpg.operators.trace_input import TraceInput
from kpg.operators.unfit_totals import UnfitTotals, split_unfit
from kpg.trace.batch import Batch, may_leave_64_bits
from kpg.trace.batcher import earliest
from kpg.trace.description import Description
from kpg.trace.handle import TraceHandle
from kpg.trace.key_history import distinct_keys
from kpg.trace.merge_policy import MergePolicy
from kpg.trace.spine import Spine

ONE = constant((1,))


class Reduce(Publisher):
    """Maintain a function of each group, at any depth of time."""

    waits_for_frontier = True

    def __init__(
        self, name: str, arranged: Arranged, spine: Spine, tactic: Tactic, unfit: UnfitTotals | None = None
    ) -> None:
        super().__init__(name, spine)
        self.key_lanes = arranged.key_lanes
        self.tactic = tactic
        self.unfit = unfit
        self.unfit_rows = no_updates(spine.lanes, spine.depth)  # output rows of totals that do not fit: sent as errors
        self.input = TraceInput(arranged, f"{name} (input)")
        self.output = TraceHandle(spine, f"{name} (output)", spine.upper)
        self.pending = no_updates(self.key_lanes, spine.depth)
        self.never_retracted = True  # the input has had insertions only
        self.early: list[Updates] = []  # each at one time that is not complete yet: from an import, while peers lag

    def follow_frontiers(self) -> None:
        """Tie the since of both traces to the earliest times that a later step may evaluate."""
        depth = self.input.trace_depth
        assert self.input.handle is not None
        self.input.handle.follow(lambda: self._since().truncate(depth))
        self.output.follow(self._since)

    def _since(self) -> Frontier:
        frontier = self.frontier(0)
        return frontier.meet(Frontier(self.held)) if self.held else frontier

    def step(self, inputs: Inputs) -> bool:
        if inputs[0]:
            # Hold before reading the frontier: the output of this step may come back to its own input through a loop.
            self.hold(minimal([*self.held, *[time for message in inputs[0] for time in message.times]]))
        upper = self.frontier(0)
        if self.dataflow.worker.peers > 1:
            upper = upper.join(self.upper)  # times that were complete on this worker stay complete
        arrived, self.early = self.early, []
        for message in inputs[0]:
            for batch in message.payload:
                if len(batch):
                    arrived.append(batch.updates)
            last = message.payload[-1].upper
            self.input.acknowledge(last)
            # The batch is complete on this worker, even if peers lag and hold back the frontier.
            upper = upper.join(last.extend(self.depth))
        self._reduce([updates for updates in arrived if not self._keep_early(updates, upper)], upper)
        return False

    def _keep_early(self, updates: Updates, upper: Frontier) -> bool:
        """Keep new updates for a later step if all are at one time beyond upper. Return whether they were kept."""
        if updates.times.shape[1] > 1 or not upper.beyond(self._time_of(updates)):
            return False
        self.early.append(updates)
        return True

    def _time_of(self, updates: Updates) -> Time:
        return tuple(extend(updates.times, self.depth)[:, 0].tolist())

    def _reduce(self, arrived: list[Updates], upper: Frontier) -> None:
        pending_before = len(self.pending)
        seeds, self.pending = self._seeds(arrived, upper)
        inserted = all((updates.diffs > 0).all() for updates in arrived)
        self.never_retracted = self.never_retracted and inserted
        if len(seeds):
            if seeds.times.shape[1] == 1:  # pairs are distinct, so keys are too
                keys, offsets = seeds.data, np.arange(len(seeds) + 1)
            else:
                keys, offsets = aside(seeds.data.size, distinct_keys, seeds, self.key_lanes)
            nothing_due = len(self.pending) == pending_before  # a due time may retract where insertions would not
            monotone, never_retracted = nothing_due and inserted, nothing_due and self.never_retracted
            inputs, outputs = self.input.batches(), self._output_batches()
            task = ReduceTask(keys, offsets, seeds.times, monotone, inputs, outputs, upper, never_retracted)
            result = correct_in_parts(self.tactic, task)
            if len(result.pending_keys):
                self._postpone(keys, result)
            if len(result.corrections):
                self._publish(keys, result.corrections, upper)
        held = [self._time_of(updates) for updates in self.early]
        if len(self.pending):
            held += earliest(self.pending.times)
        self.hold(minimal(held))

    def _publish(self, keys: Ints, corrections: Corrections, upper: Frontier) -> None:
        updates = aside(keys.size, corrected_rows, keys, corrections)
        if self.unfit is not None and (len(self.unfit_rows) or may_leave_64_bits(self.input.batches())):
            updates = self._report_unfit(self.unfit, updates, upper)
        if not len(updates):
            return
        batch = Batch(updates, self.key_lanes, Description(self.upper, upper, Frontier.start(self.depth)))
        self.publish(batch, tuple([time for time in self.held if not upper.beyond(time)]))
        self.output.set_physical(upper)

    def _output_batches(self) -> tuple[Batch, ...]:
        """Return all batches of the output, the rows that were sent as errors included."""
        batches = self.output.batches(None)
        if not len(self.unfit_rows):
            return batches
        start = Frontier.start(self.depth)
        return (*batches, Batch(self.unfit_rows, self.key_lanes, Description(start, self.upper, start)))

    def _report_unfit(self, unfit: UnfitTotals, updates: Updates, upper: Frontier) -> Updates:
        """Send the totals that do not fit as errors, and return the other corrections."""
        updates, marked = split_unfit(updates, self.key_lanes)
        if len(marked):
            self.unfit_rows = consolidate_all([self.unfit_rows, marked])
            times = tuple([time for time in self.held if not upper.beyond(time)])
            self.send(unfit.errors(marked, (self.dataflow.id, self.index)), times, port=1)
        return updates

    def _seeds(self, arrived: list[Updates], upper: Frontier) -> tuple[Updates, Updates]:
        """Return the (key, time) pairs to evaluate now, sorted and distinct, and the pairs that stay pending."""
        due, later = self.pending, self.pending
        if len(self.pending):
            late = beyond(self.pending.times, upper)
            due, later = keep(self.pending, ~late), keep(self.pending, late)
        depth, keys = self.depth, self.key_lanes
        parts = [Updates(u.data[:keys], extend(u.times, depth), ONE) for u in arrived]
        if len(arrived) == 1 and arrived[0].times.shape[1] == 1:  # sorted and at one time: its keys are the seeds
            parts = [Updates(self._keys_of(arrived[0]), parts[0].times, ONE)]
            if not len(due):
                return parts[0], later
        if len(due):
            parts.append(Updates(due.data, spread(due.times, len(due)), ONE))
        rows = sum(map(len, parts))
        return (aside(rows, consolidate_all, parts) if parts else no_updates(keys, depth)), later

    def _keys_of(self, news: Updates) -> Ints:
        """Return the keys of new rows at one time, without keys that the tactic knows to be unaffected."""
        if news.lanes == self.key_lanes:
            return news.data
        keys, offsets = aside(news.data.size, distinct_keys, news, self.key_lanes)
        extended = Updates(news.data, extend(news.times, self.depth), news.diffs)
        chosen = self.tactic.affected_keys(extended, keys, offsets, self.output.batches(None))
        return keys if chosen is None or len(chosen) == keys.shape[1] else keys.take(chosen, axis=1)

    def _postpone(self, keys: Ints, result: ReduceResult) -> None:
        later = Updates(np.take(keys, result.pending_keys, axis=1), result.pending_times, ONE)
        pending = consolidate_all([self.pending, later])
        self.pending = Updates(pending.data, spread(pending.times, len(pending)), ONE)

    def state(self) -> Iterator[Updates]:
        yield from super().state()
        for updates in (self.pending, self.unfit_rows):
            if len(updates):
                yield updates

    def release_unneeded(self) -> None:
        if self.frontier(0) == CLOSED and not self.held:
            self.release()

    def release(self) -> None:
        self.input.release()
        self.output.release()


def beyond(times: Ints, frontier: Frontier) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which columns of `times` are beyond a frontier."""
    result = np.zeros(times.shape[1], np.bool_)
    for element in frontier:
        result |= (times >= constant(element)).all(axis=0)
    return result


def extend(times: Ints, depth: int) -> Ints:
    """Return the times with `depth` coordinates. The new ones, of the loops around the reader, are zero."""
    if times.shape[0] == depth:
        return times
    extended = np.zeros((depth, times.shape[1]), np.int64)
    extended[: times.shape[0]] = times
    return extended


def corrected_rows(keys: Ints, corrections: Corrections) -> Updates:
    """Return the corrections as updates, each with its key."""
    data = np.take(keys, corrections.key_index, axis=1)
    if len(corrections.data):
        data = np.concatenate([data, corrections.data])
    return Updates(data, shrink(corrections.times), shrink(corrections.diffs))


def shrink(block: Ints) -> Ints:
    """Return a constant if all columns are equal, otherwise a contiguous block, as kernels need it."""
    if block.shape[1] > 1 and block[0, 0] == block[0, -1] and (block == block[:, :1]).all():
        return block[:, :1].copy()
    return np.ascontiguousarray(block)


def reduce(
    dataflow: Dataflow,
    name: str,
    arranged: Arranged,
    tactic: Tactic,
    *,
    value_lanes: int,
    policy: MergePolicy,
    unfit: UnfitTotals | None = None,
) -> tuple[Reduce, Arranged]:
    """Add a reduction of an arrangement by its key. Its output is an arrangement by the same key.

    Port 1 has the totals that do not fit, if `unfit` says how to report them.
    """
    depth = arranged.depth
    spine = Spine(arranged.key_lanes, arranged.key_lanes + value_lanes, depth, 1, policy)
    handle = TraceHandle(spine, f"building {name}", Frontier.start(depth))
    operator = Reduce(name, arranged, spine, tactic, unfit)
    ports = 1 if unfit is None else 2
    stream = dataflow.add(operator, [(arranged.stream, LocalPact())], depth=depth, ports=ports)
    return operator, Arranged(stream, handle, arranged.key_lanes, arranged.key_lanes + value_lanes, 1, depth)
