"""The quick tactic: short histories are corrected straight from the batches, in one pass over the keys.

    react(question)  ==  replay(question)

Most groups that change have few distinct times left after compaction; for those, bringing whole histories together
first costs more than the answer. Keys that turn out to be long are given to the general tactic.

While nothing was ever taken away, `distinct` of many keys at once looks for them in its output alone: one that is there
stays, one that is not there comes. The few of which that does not say enough are looked at as others are. And the
least row of a group is not looked for again where only rows after it came or went.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kpg.columns.updates import Ints, Updates, constant, spread
from kpg.kernels.new_keys import new_keys
from kpg.kernels.one_pass_corrections import FIRST, POOL_LISTS, PRESENCE, SUMS, one_pass_corrections
from kpg.kernels.unchanged_minimum import keys_with_changed_minimum
from kpg.operators.corrections import Corrections
from kpg.operators.payload import Batches
from kpg.operators.tactic import Outcome, Question, Tactic
from kpg.trace.description import elements
from kpg.trace.locate_batches import locate

__all__ = ["FIRST", "PRESENCE", "SUMS", "OnePassTactic"]

SPACE = 96  # rows of one key's history, closure or corrections
MANY = 512  # keys that pay for a call more
SOME = 64  # likewise, where a key costs more
ONE = constant((1,))


@dataclass(frozen=True, slots=True)
class OnePassTactic:
    """Corrects short histories itself and asks `general` for the others."""

    kind: int
    at_least: int
    in_values: int
    out_values: int
    width: int
    general: Tactic

    def moved(self, news: Updates, keys: Ints, offsets: Ints, outputs: Batches) -> Ints | None:
        m = keys.shape[1]
        if self.kind != FIRST or m < SOME or not outputs:
            return None
        table, ranges, _ = locate(outputs, keys)
        chosen = np.empty(m, np.int64)
        n = keys_with_changed_minimum(table, ranges, keys.shape[0], news.times, offsets, news.data, news.diffs, chosen)
        return chosen[:n]

    def correct(self, question: Question) -> Outcome:
        if question.keys.shape[0] == 0:  # one group of everything: its history is long or its work little
            return self.general.correct(question)
        if question.grown and self.kind == PRESENCE and self.at_least == 1 and question.keys.shape[1] >= MANY:
            made, unclear = _unseen(question)
            if not len(unclear):
                return made
            return combine(made, self.correct(replace(subset(question, unclear), monotone=True)), unclear)
        made, hard = self._react(question)
        if not len(hard):
            return made
        rest = self.general.correct(subset(question, hard))
        return combine(made, rest, hard)

    def _react(self, question: Question) -> tuple[Outcome, Ints]:
        depth, m, values = question.depth, question.keys.shape[1], self.out_values
        in_table, in_ranges, _ = locate(question.inputs, question.keys)
        out_table, out_ranges, _ = locate(question.outputs, question.keys)
        upper = elements(question.upper, depth)
        at_diff = max(self.in_values, values, self.width) + depth
        size = at_diff + self.width
        pool = np.empty(POOL_LISTS * SPACE * size, np.int64)
        hard = np.empty(m, np.int64)
        capacity = 2 * m + 2 * SPACE
        parts: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
        hards, at = 0, 0
        while at < m:
            made_keys, made = np.empty(capacity, np.int64), np.empty((values + depth, capacity), np.int64)
            late_keys, late = np.empty(capacity, np.int64), np.empty((depth, capacity), np.int64)
            made_diffs = np.empty(capacity, np.int64)
            state = np.array((0, 0, hards), np.int64)
            at = one_pass_corrections(
                self.kind, self.at_least, int(question.monotone), at, question.offsets, question.seeds,
                question.keys.shape[0], self.in_values, values, self.width, upper,
                in_table, in_ranges, out_table, out_ranges, pool, SPACE, size, at_diff,
                made_keys, made, made_diffs, late_keys, late, hard, state,
            )  # fmt: skip
            n, lates, hards = state.tolist()
            parts.append((made_keys[:n], made[:, :n], made_diffs[:n], late_keys[:lates], late[:, :lates]))
        if len(parts) == 1:
            made_keys, made, made_diffs, late_keys, late = parts[0]
        else:
            made_keys, made_diffs, late_keys = [np.concatenate([part[i] for part in parts]) for i in (0, 2, 3)]
            made, late = [np.concatenate([part[i] for part in parts], axis=1) for i in (1, 4)]
        corrections = Corrections(made_keys, made[:values], made[values:], made_diffs.reshape(1, -1))
        return Outcome(corrections, late_keys, np.ascontiguousarray(late)), hard[:hards]


def _unseen(question: Question) -> tuple[Outcome, Ints]:
    """What comes of keys that are not there yet, if nothing was ever taken away; and the keys where that is unclear."""
    m = question.keys.shape[1]
    table, ranges, _ = locate(question.outputs, question.keys)
    fresh, unclear = np.empty(m, np.int64), np.empty(m, np.int64)
    upper = elements(question.upper, question.depth)
    n, others = new_keys(table, ranges, question.offsets, question.seeds, upper, fresh, unclear)
    keys, times = fresh[:n], question.seeds
    if times.shape[1] > 1:
        times = times.take(question.offsets.take(keys), axis=1)
    corrections = Corrections(keys, np.empty((0, n), np.int64), times, ONE)
    nothing = np.empty(0, np.int64), np.empty((question.depth, 0), np.int64)
    return Outcome(corrections, *nothing), unclear[:others]


def subset(question: Question, chosen: Ints) -> Question:
    """The question about some of its keys."""
    starts, ends = question.offsets[chosen], question.offsets[chosen + 1]
    counts = ends - starts
    offsets = np.concatenate([[0], np.cumsum(counts)])
    seeds = question.seeds
    if seeds.shape[1] > 1:
        rows = np.repeat(starts - offsets[:-1], counts) + np.arange(offsets[-1])
        seeds = np.ascontiguousarray(seeds[:, rows])
    keys = np.ascontiguousarray(question.keys[:, chosen])
    return replace(question, keys=keys, offsets=offsets, seeds=seeds, monotone=False, grown=False)


def combine(made: Outcome, rest: Outcome, chosen: Ints) -> Outcome:
    """Two outcomes of disjoint keys as one; the keys of `rest` are numbered by their place in `chosen`."""
    first, second = made.corrections, rest.corrections
    keys = np.concatenate([first.key_index, chosen[second.key_index]])
    order = np.argsort(keys, kind="stable")
    corrections = Corrections(
        keys[order],
        np.concatenate([first.data, second.data], axis=1)[:, order],
        np.concatenate([spread(first.times, len(first)), spread(second.times, len(second))], axis=1)[:, order],
        np.concatenate([spread(first.diffs, len(first)), spread(second.diffs, len(second))], axis=1)[:, order],
    )
    late_keys = np.concatenate([made.late_keys, chosen[rest.late_keys]])
    return Outcome(corrections, late_keys, np.concatenate([made.late_times, rest.late_times], axis=1))
