"""Join: pair the rows with equal keys of two arrangements.

    output at t  =  Σ over (k, v) in left at t, (k, w) in right at t  of  project(k, v, w)

Join is bilinear, so each pair of batches must be matched exactly once. A new batch of one input is matched with the
other input's trace *through the upper acknowledged there*; then its own upper is acknowledged. Shared traces may
already hold later batches, and no merge may cross the acknowledged upper, so each handle's physical frontier is there.
The since of each handle is the frontier of the *other* input: no later batch there needs earlier times. When
the other input closes, the handle is released.

If one side has few keys and the other is the import of a large arrangement, the join receives only the batches with
these keys (kpg.operators.routed_input).

If a slice ends within the pairs of one key, the workers share the rest of them (kpg.operators.shared_pairs).

The pairs are produced in slices (kpg.operators.deferred_work), so a huge output neither blocks the worker nor fills
memory before operators downstream have reduced it.
Cost: for each new batch, linear in the smaller of the two sides, plus the output (kpg.trace.match_batches). A large
load that meets few rows is scanned for their keys instead of sorted (kpg.trace.unsorted_batch). The few rows of a
direct run are one kernel call (kpg.trace.seek_of_few).
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

import numpy as np

from kpg.algebra.frontier import CLOSED, Frontier
from kpg.columns.updates import Ints, Updates
from kpg.dataflow.channel import ExchangePact, LocalPact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.dataflow.operator import Inputs, Message, Operator, Times
from kpg.operators.arrange import Arranged
from kpg.operators.deferred_work import DeferredWork
from kpg.operators.routed_input import RoutedInput, routed_inputs
from kpg.operators.shared_pairs import PairShares, SharedPairs, can_share
from kpg.operators.trace_input import TraceInput
from kpg.trace.batch import Batch
from kpg.trace.match_batches import Match
from kpg.trace.seek_batches import Seek, is_worth_seeking
from kpg.trace.seek_of_few import MAX_ROWS, SeekOfFew
from kpg.trace.unsorted_batch import is_unsorted

SharedLanes: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # of the left and right side, those with symbols


class Join(Operator):
    """Match the batches of two arrangements."""

    def __init__(
        self, name: str, left: Arranged, right: Arranged, projection: Ints, shares: PairShares | None = None
    ) -> None:
        """Join two arrangements; `shares` divides the pairs of hot keys among workers, by port 1."""
        super().__init__(name)
        self.shares = shares
        assert left.key_lanes == right.key_lanes, "both inputs of a join need keys of the same lanes"
        self.key_lanes = left.key_lanes
        self.projection = projection
        self.sides = (TraceInput(left, f"{name} (left)"), TraceInput(right, f"{name} (right)"))
        self.deferred: DeferredWork[Match | Seek] = DeferredWork()
        self._few = SeekOfFew(self.key_lanes, projection)
        self._arranged: tuple[Arranged, Arranged] | None = (left, right)  # until the dataflow is complete
        self._candidates: list[RoutedInput] = []  # sides that may be routed
        self._routed: RoutedInput | None = None

    def follow_frontiers(self) -> None:
        """Tie the since of each trace to the frontier of the other input."""
        for index, side in enumerate(self.sides):
            if side.handle is not None:
                side.handle.follow(partial(self._since, 1 - index, side.trace_depth))
        if self._arranged is not None:
            self._candidates = routed_inputs(self, self._arranged, self.sides)
            self._arranged = None

    def _since(self, other: int, depth: int) -> Frontier:
        return self.frontier(other).truncate(depth)

    def step(self, inputs: Inputs) -> bool:
        if self._candidates:
            self._candidates = [side for side in self._candidates if side.begin_step(inputs)]
        routed = self._routed
        if routed is None:
            self._match_all(0, inputs[0])
            self._match_all(1, inputs[1])
        else:
            self._match_all(routed.index, inputs[routed.index])
            routed.acknowledge()
            if not self._candidates:
                routed.stop()
                self._routed = None
            self._match_all(1 - routed.index, inputs[1 - routed.index])
        for side in self._candidates:
            side.end_step()
            if side.is_routed:
                self._candidates, self._routed = [side], side
                break
        deferred = self.deferred
        if not deferred.queue and not self.held:
            return False
        deferred.send_slice(self._next_pairs, self.send)
        self.hold(deferred.times())
        return bool(deferred.queue)

    def _match_all(self, index: int, messages: list[Message]) -> None:
        """Match the batches of one input, and acknowledge them."""
        for message in messages:
            for batch in message.payload:
                self._match(index, batch, message.times)
            if message.payload:
                self.sides[index].acknowledge(message.payload[-1].upper)

    def _match(self, index: int, batch: Batch, times: Times) -> None:
        rows = len(batch)
        if not rows or (rows <= MAX_ROWS and self._send_few(index, batch, rows, times)):
            return
        others = [other for other in self.sides[1 - index].batches() if len(other)]
        if not others:
            return
        if self.key_lanes and any(map(is_unsorted, (batch, *others))):
            others = self._scan(index, batch, others, times)
            if not others:
                return
        if self.key_lanes and is_worth_seeking(rows, others):
            seek = Seek(batch.updates, others, index, self.key_lanes, self.projection, self.depth)
            self.deferred.append(seek, times)
            return
        for other in others:
            left, right = (batch, other) if index == 0 else (other, batch)
            match = Match(left.updates, right.updates, self.key_lanes, self.projection, self.depth)
            self.deferred.append(match, times)

    def _send_few(self, index: int, batch: Batch, rows: int, times: Times) -> bool:
        """Send all pairs of the few rows of a direct run. Return False if that is impossible."""
        if self.depth > 1 or not self.key_lanes or not self.dataflow.worker.direct.active:
            return False
        other = self.sides[1 - index]
        search = other.search_table(rows, sort=False) if other.trace_width == 1 else None
        if search is None or other.trace_depth > 1:
            return False
        pairs = self._few.pairs(batch.updates, index, *search)
        if pairs is None:
            return False
        if pairs.data.shape[1]:
            self.send(pairs, times)
        return True

    def _scan(self, index: int, batch: Batch, others: list[Batch], times: Times) -> list[Batch]:
        """Match unsorted loads with few rows, by a scan; return the batches that are left to match."""
        if is_unsorted(batch) and batch.is_worth_scanning(sum(map(len, others))):
            rows = batch.rows_with_keys([other.updates for other in others], self.key_lanes)
            for other in others:
                self._append(index, rows, other.updates, times)
            return []
        rest = []
        for other in others:
            if is_unsorted(other) and other.is_worth_scanning(len(batch)):
                if other.upper != batch.upper:  # later batches search a load again and again: it is sorted for them
                    other.sort_soon()
                self._append(index, batch.updates, other.rows_with_keys([batch.updates], self.key_lanes), times)
            else:
                rest.append(other)
        return rest

    def _append(self, index: int, rows: Updates, others: Updates, times: Times) -> None:
        left, right = (rows, others) if index == 0 else (others, rows)
        self.deferred.append(Match(left, right, self.key_lanes, self.projection, self.depth), times)

    def _next_pairs(self, matching: Match | Seek, budget: int) -> tuple[Updates | None, int]:
        """Return more pairs, or None at the end, and their number as the cost. Share the rest of a hot key."""
        updates = matching.next(budget)
        match = matching.match if isinstance(matching, Seek) else matching
        shares = self.shares
        if shares is not None and match is not None and updates is not None:
            if shares.is_worth_sharing(*match.rows_left_of_key()) and can_share(*match.sides):
                for left, right in match.take_rest_of_key():
                    self.send(shares.divide(left, right), self.deferred.first_times, 1)
        return updates, 0 if updates is None else len(updates)

    def release_unneeded(self) -> None:
        for index, side in enumerate(self.sides):
            if self.frontier(1 - index) == CLOSED:
                side.release()

    def release(self) -> None:
        self.deferred.clear()
        for side in self.sides:
            side.release()


def join(
    dataflow: Dataflow,
    name: str,
    left: Arranged,
    right: Arranged,
    projection: list[tuple[int, int]],
    shared: SharedLanes | None = None,
) -> Stream:
    """Add a join of two arrangements. `projection` lists (side, lane) for each lane of the output.

    If `shared`, several workers share the pairs of hot keys: a pair may then be on any worker.
    """
    assert left.depth == right.depth, "both inputs of a join must be in one scope"
    pairs, peers, depth = np.array(projection, np.int64).reshape(-1, 2), dataflow.worker.peers, left.depth
    shares = None
    if shared is not None and peers > 1:
        shares = PairShares(peers, (left.lanes, right.lanes), (left.width, right.width), depth)
    operator = Join(name, left, right, pairs, shares)
    inputs = [(left.stream, LocalPact()), (right.stream, LocalPact())]
    stream = dataflow.add(operator, inputs, depth=depth, ports=2 if shares else 1)
    if shares is None or shared is None:
        return stream
    helper = SharedPairs(f"pairs of hot keys of {name}", shares, operator.key_lanes, pairs)
    symbolic = tuple([1 + lane for lane in shared[0]] + [1 + left.lanes + lane for lane in shared[1]])
    pact = ExchangePact(divided, symbolic)
    return stream.concat(dataflow.add(helper, [(Stream(((operator, 1),), depth), pact)], depth=depth))


def divided(parts: list[Updates], peers: int) -> list[Updates]:
    """Return a payload that its sender has divided already."""
    assert len(parts) == peers, "a part for each worker"
    return parts
