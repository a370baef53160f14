"""Reduce: a function of each key's group, kept right at every time.

    output at t  =  { (k, w) : w in f(values of k in the input at t) }          for every t not beyond the input frontier

A group's output can change at times at which no input does: at joins of times. The operator therefore keeps *pending*
(key, time) pairs, and in each step does, for the keys with new input or pending work that is now due:

    interesting  =  the new and due times, closed under join with the key's input and output times
    now          =  those not beyond upper: evaluate f there, subtract what the output already says, emit the correction
    later        =  the others: pending, with a capability held

Input history is read through the batches acknowledged, output history from the operator's own trace; both are advanced
to the meet of the asking times. The output is itself sealed in batches, so it is an arrangement that others share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier, minimal
from kpg.algebra.order import Time
from kpg.columns.consolidate import consolidate
from kpg.columns.updates import Ints, Updates, concatenate, constant, no_updates, spread
from kpg.dataflow.channel import Pipeline
from kpg.dataflow.graph import Dataflow
from kpg.dataflow.operator import Inputs
from kpg.operators.arrange import Arranged, Publisher
from kpg.operators.join import Side
from kpg.operators.linear import keep
from kpg.operators.replay import Corrections, Interesting, interesting_times
from kpg.trace.batch import Batch
from kpg.trace.description import Description
from kpg.trace.gather import Run, distinct_keys, gather
from kpg.trace.handle import TraceHandle
from kpg.trace.spine import Spine

Evaluate: TypeAlias = Callable[[Ints, Interesting, Run, Run], Corrections]  # keys, times, input and output histories


class Reduce(Publisher):
    """Maintains a function of each group, at any depth of time."""

    waits = True

    def __init__(self, name: str, arranged: Arranged, spine: Spine, evaluate: Evaluate) -> None:
        super().__init__(name, spine)
        self.key_lanes = arranged.key_lanes
        self.evaluate = evaluate
        self.input = Side(arranged, f"{name} (input)")
        self.output = TraceHandle(spine, f"{name} (output)", spine.upper)
        self.pending = no_updates(self.key_lanes, spine.depth)

    def follow_frontiers(self) -> None:
        """Tie the traces' logical since to what may still be asked, once the operator is placed."""
        depth = self.input.trace_depth
        assert self.input.handle is not None
        self.input.handle.follow(lambda: self._askable().truncate(depth))
        self.output.follow(self._askable)

    def _askable(self) -> Frontier:
        frontier = self.frontier(0)
        return frontier.meet(Frontier(self.held)) if self.held else frontier

    def step(self, inputs: Inputs) -> bool:
        if inputs[0]:
            # Held before the frontier is asked for: what this step sends may come round a loop to its own input.
            self.hold(minimal([*self.held, *[time for message in inputs[0] for time in message.times]]))
        upper = self.frontier(0)
        arrived: list[Updates] = []
        for message in inputs[0]:
            for batch in message.payload:
                if len(batch):
                    arrived.append(batch.updates)
            last = message.payload[-1].upper
            self.input.acknowledge(last)
            # A batch is complete on this worker even when peers lag behind and hold the frontier back.
            upper = upper.join(last.extend(self.depth))
        self._reduce(arrived, upper)
        return False

    def _reduce(self, arrived: list[Updates], upper: Frontier) -> None:
        seeds, self.pending = self._seeds(arrived, upper)
        times = tuple([time for time in self.held if not upper.beyond(time)])
        if len(seeds):
            keys, offsets = distinct_keys(seeds, self.key_lanes)
            corrections = self._correct(keys, offsets, spread(seeds.times, len(seeds)), upper)
            if len(corrections.key_index):
                data = np.concatenate([keys[:, corrections.key_index], corrections.data])
                updates = Updates(data, shrink(corrections.times), shrink(corrections.diffs))
                batch = Batch(updates, self.key_lanes, Description(self.upper, upper, Frontier.start(self.depth)))
                self.publish(batch, times)
                self.output.set_physical(upper)
        self.hold(minimal(map(tuple, self.pending.times.T.tolist())) if len(self.pending) else ())

    def _seeds(self, arrived: list[Updates], upper: Frontier) -> tuple[Updates, Updates]:
        """The (key, time) pairs to look at now, sorted and each once; and those that stay pending."""
        due, rest = self.pending, self.pending
        if len(self.pending):
            late = beyond(self.pending.times, upper)
            due, rest = keep(self.pending, ~late), keep(self.pending, late)
        depth, keys = self.depth, self.key_lanes
        if len(arrived) == 1 and not len(due):
            only = arrived[0]
            if only.lanes == keys and only.times.shape[1] == 1:  # sorted, one row a key: it is its own list of seeds
                return Updates(only.data, extend(only.times, depth), constant((1,))), rest
        one = constant((1,))
        parts = [Updates(u.data[:keys], extend(u.times, depth), one) for u in arrived]
        if len(due):
            parts.append(Updates(due.data, spread(due.times, len(due)), one))
        return (consolidate(concatenate(parts)) if parts else no_updates(keys, depth)), rest

    def _correct(self, keys: Ints, offsets: Ints, seed_times: Ints, upper: Frontier) -> Corrections:
        floor: Time = tuple(seed_times.min(axis=1).tolist())
        inputs = gather(self.input.batches(), keys, floor, self.depth)
        outputs = gather(self.output.batches(None), keys, floor, self.depth)
        interesting = interesting_times(offsets, seed_times, inputs, outputs, upper)
        if interesting.pending_times.shape[1]:
            self._postpone(keys, interesting)
        return self.evaluate(keys, interesting, inputs, outputs)

    def _postpone(self, keys: Ints, interesting: Interesting) -> None:
        counts = np.diff(interesting.pending_offsets)
        rows = np.repeat(keys, counts, axis=1)
        later = Updates(np.ascontiguousarray(rows), interesting.pending_times, constant((1,)))
        pending = consolidate(concatenate([self.pending, later]) if len(self.pending) else later)
        self.pending = Updates(pending.data, spread(pending.times, len(pending)), constant((1,)))

    def tidy(self) -> None:
        if self.frontier(0) == CLOSED and not self.held:
            self.input.release()

    def release(self) -> None:
        self.input.release()
        self.output.release()


def beyond(times: Ints, frontier: Frontier) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which columns of `times` are beyond a frontier."""
    result = np.zeros(times.shape[1], np.bool_)
    for element in frontier:
        result |= (times >= constant(element)).all(axis=0)
    return result


def extend(times: Ints, depth: int) -> Ints:
    """The times with zeros for the coordinates of the loops around the reader."""
    if times.shape[0] == depth:
        return times
    extended = np.zeros((depth, times.shape[1]), np.int64)
    extended[: times.shape[0]] = times
    return extended


def shrink(block: Ints) -> Ints:
    """One column where all are alike."""
    if block.shape[1] > 1 and (block == block[:, :1]).all():
        return block[:, :1].copy()
    return block


def reduce(
    dataflow: Dataflow, name: str, arranged: Arranged, evaluate: Evaluate, *, value_lanes: int, effort: str
) -> tuple[Reduce, Arranged]:
    """Add a reduction of an arrangement by its key; its output is an arrangement by the same key."""
    depth = arranged.depth
    spine = Spine(arranged.key_lanes, arranged.key_lanes + value_lanes, depth, 1, effort)
    handle = TraceHandle(spine, f"building {name}", Frontier.start(depth))
    operator = Reduce(name, arranged, spine, evaluate)
    stream = dataflow.add(operator, [(arranged.stream, Pipeline())], depth=depth)
    operator.follow_frontiers()
    return operator, Arranged(stream, handle, arranged.key_lanes, arranged.key_lanes + value_lanes, 1, depth)
