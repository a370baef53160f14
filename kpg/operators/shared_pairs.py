"""Shared pairs: the product of a hot key, which the workers of a join compute together.

    pairs of a key  =  longer side × shorter side  =  Σ over workers  (a part of the longer side) × (shorter side)

All rows of a key are on one worker. If both sides have many, their product keeps that worker busy while others wait. So
the join gives the rest of such a product away: the longer side is split, the shorter one is sent to all workers, and
each produces the pairs of its part. No worker keeps anything of it. Every product of two batches is computed once,
wherever that is, so removals are as exact as ever, and arrangements stay where they are, shared by all queries.
A key is hot by its counts in the two batches that meet: there must be many pairs, and many for each row that is sent.
Pairs then appear on any worker; only joins whose pairs are not placed by their key share them (kpg.plan.placement).

On its way, a row has a lane that says its side, then the lanes of both sides; those of the other side are null.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from kpg.columns.consolidation import shrink_block
from kpg.columns.exact_diffs import is_exact
from kpg.columns.lane_values import NULL
from kpg.columns.selection import slice_updates
from kpg.columns.updates import Ints, Updates
from kpg.dataflow.operator import Inputs, Operator
from kpg.operators.deferred_work import DeferredWork
from kpg.trace.match_batches import Match

MIN_SHARED_PAIRS: Final = 1 << 18  # of a key: fewer are done in a millisecond or two
MIN_PAIRS_PER_SENT_ROW: Final = 8  # a sent row costs about as much as some pairs


class PairShares:
    """Divides the pairs of a hot key among workers, as rows to send, and reads these rows again."""

    def __init__(self, peers: int, lanes: tuple[int, int], widths: tuple[int, int], depth: int) -> None:
        """Take the number of workers, and the lanes and diff widths of the left and right side."""
        self.peers, self.lanes, self.widths, self.depth = peers, lanes, widths, depth

    def is_worth_sharing(self, left: int, right: int) -> bool:
        """Return whether a key with these numbers of rows on each side has enough pairs for other workers to help."""
        sent = max(left, right) + self.peers * min(left, right)
        return left * right >= max(MIN_SHARED_PAIRS, MIN_PAIRS_PER_SENT_ROW * sent)

    def divide(self, left: Updates, right: Updates) -> list[Updates]:
        """Return the rows for each worker: a part of the longer side, and all of the other."""
        split_side = 0 if len(left) >= len(right) else 1
        longer = (left, right)[split_side]
        cuts = [len(longer) * peer // self.peers for peer in range(self.peers + 1)]
        parts = [slice_updates(longer, begin, end) for begin, end in pairwise(cuts)]
        return [self._joined(part, right) if split_side == 0 else self._joined(left, part) for part in parts]

    def _joined(self, left: Updates, right: Updates) -> Updates:
        """Return the rows of both sides as updates of one shape."""
        n = len(left) + len(right)
        data = np.full((1 + sum(self.lanes), n), NULL, np.int64)
        times = np.zeros((self.depth, n), np.int64)
        diffs = np.zeros((max(self.widths), n), np.int64)
        begin, lane = 0, 1
        for side, updates in enumerate((left, right)):
            here = slice(begin, begin + len(updates))
            data[0, here] = side
            data[lane : lane + self.lanes[side], here] = updates.data
            times[: updates.times.shape[0], here] = updates.times
            diffs[: self.widths[side], here] = updates.diffs
            begin, lane = begin + len(updates), lane + self.lanes[side]
        return Updates(data, times, diffs)

    def read(self, rows: Updates) -> tuple[Updates, Updates]:
        """Return the rows of both sides again."""
        cut, lanes = int(np.searchsorted(rows.data[0], 1)), self.lanes[0] + 1
        return self._side(rows, 0, slice(0, cut), slice(1, lanes)), self._side(
            rows, 1, slice(cut, len(rows)), slice(lanes, None)
        )

    def _side(self, rows: Updates, side: int, here: slice, lanes: slice) -> Updates:
        n = here.stop - here.start
        times, diffs = (
            block if block.shape[1] == 1 else shrink_block(np.ascontiguousarray(block[:, here]), n)
            for block in (rows.times, np.ascontiguousarray(rows.diffs[: self.widths[side]]))
        )
        return Updates(np.ascontiguousarray(rows.data[lanes, here]), times, diffs)


def can_share(left: Updates, right: Updates) -> bool:
    """Return whether the diffs of both sides are numbers of 64 bits."""
    return not is_exact(left.diffs) and not is_exact(right.diffs)


class SharedPairs(Operator):
    """Produce pairs for the join of another worker, or of this one."""

    def __init__(self, name: str, shares: PairShares, key_lanes: int, projection: Ints) -> None:
        super().__init__(name)
        self.shares, self.key_lanes, self.projection = shares, key_lanes, projection
        self.deferred: DeferredWork[Match] = DeferredWork()

    def step(self, inputs: Inputs) -> bool:
        for message in inputs[0]:
            match = Match(*self.shares.read(message.payload), self.key_lanes, self.projection, self.depth)
            self.deferred.append(match, message.times)
        self.deferred.send_slice(next_pairs_of_match, self.send)
        self.hold(self.deferred.times())
        return bool(self.deferred)

    def release(self) -> None:
        self.deferred.clear()


def next_pairs_of_match(match: Match, budget: int) -> tuple[Updates | None, int]:
    """Return more pairs, or None at the end, and their number as the cost."""
    updates = match.next(budget)
    return updates, 0 if updates is None else len(updates)
