"""The least value of each node of a graph that changes: distances, labels of components, reachable nodes.

    value(v)  =  min ( start values of v  ∪  { value(u) + weight : an edge from u to v } )

    least = LeastValues(spec)
    least.change(starts, edges)      returns the changed rows (node, value) and their diffs

This is the fixed point of a loop whose body joins values with edges and keeps the minimum for each node; without
values, of one that keeps distinct nodes. Nodes keep pairs of value and hops, which are updated like distances
(`kpg.kernels.least_keys`): a change costs the edges of the nodes whose pair changes.

Two cases are computed from scratch at each change. If a weight is negative, pairs do not grow along edges; a cycle of
negative weight then has no fixed point (TooManyRounds). If an edge has a negative number of copies, it can cancel
others, and rounds are computed as a loop computes them (`kpg.seminaive.counted_rounds`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import ROWS_PER_PAUSE, part_of, pause
from kpg.columns.updates import Ints
from kpg.errors import TooManyRounds
from kpg.kernels import least_keys as kernels
from kpg.kernels import neighbour_lists as lists
from kpg.seminaive.array_addresses import address
from kpg.seminaive.counted_rounds import RoundRules, counted_entries, counted_rounds
from kpg.seminaive.graph_lists import GraphChange, GraphLists, resized

MAX_VISITS = 1 << 22  # entries that an update visits before it looks at its limits: some ten milliseconds
VISITS_PER_INTERRUPT = 1 << 17  # the same if Ctrl-C may end it: some ten milliseconds, where entries miss all caches
VISITS_PER_PAUSE = 4 * ROWS_PER_PAUSE  # the same if it may pause: some hundred microseconds
MAX_BUCKETS = 1 << 16  # weights of which the greatest is more than this multiple of the least need a heap
MAX_SUM = 1 << 62  # no sum of a start value and weights that buckets hold may exceed this
MIN_HEAP = 1 << 10  # nodes that the heap has room for at first


@dataclass(frozen=True, slots=True)
class LeastValueSpec:
    """A recursion that keeps least values: the edges add `step` to a value, or, if `weighted`, their weight."""

    name: str
    max_rounds: int
    has_values: bool = True  # otherwise it keeps nodes alone
    weighted: bool = False
    step: int = 0
    both_ways: bool = False  # edges lead from each of their ends to the other
    rounds: RoundRules = RoundRules()  # of the loop, for negative counts
    own_starts: bool = False  # the start value of a node with an edge is the node itself; edges then lead both ways
    deferred: bool = False  # the lists of a first load of components are built when it changes
    group_lanes: int = 0  # of the part of a key that stays the same along all edges (`kpg.seminaive.pair_values`)
    node_lanes: int = 1  # of the part of a key that edges lead from and to


def too_many_rounds(spec: LeastValueSpec) -> TooManyRounds:
    """Return the error of an update that found too many rounds."""
    return TooManyRounds(
        f"{spec.name} did not reach a fixed point within {spec.max_rounds} rounds",
        hint="Check that no cycle of edges has a negative sum of weights, or allow more: max_rounds= in a "
        'program, limits={"rounds": N} in a request, kpg serve --max-rounds N.',
    )


class ValueChange(NamedTuple):
    """Changed rows, int64[1 or 2, n], with their diffs, int64[1, n or 1], and whether they are sorted."""

    data: Ints
    diffs: Ints
    is_sorted: bool


class LeastValues:
    """The graph and the least value of each node."""

    def __init__(self, spec: LeastValueSpec) -> None:
        self.spec = spec
        self.graph = self._empty_graph()
        self.is_irregular = False  # whether the keys are not those of `kpg.kernels.least_keys`
        self._heap: Ints = np.empty((MIN_HEAP, 3), np.int64)
        self._touched: Ints = np.empty((0, 3), np.int64)
        self._checked_nodes = 0  # when unused nodes were last counted

    def _empty_graph(self) -> GraphLists:
        spec = self.spec
        return GraphLists(spec.weighted, spec.step, spec.both_ways, spec.own_starts)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.graph.nbytes + self._heap.nbytes + self._touched.nbytes

    def row_count(self) -> int:
        """Return the number of nodes with a value."""
        return int((self._hops() >= 0).sum())

    def rows(self) -> Ints:
        """Return all nodes with their values."""
        return self._rows(np.flatnonzero(self._hops() >= 0))

    def used_nodes(self) -> Ints:
        """Return all nodes that have edges or start values, int64[1, n]."""
        sizes = self.graph.lists[: self.graph.node_count, [kind + lists.SIZE for kind in KINDS]]
        return self.graph.values[None, : self.graph.node_count][:, sizes.any(axis=1)]

    def used_groups(self) -> Ints:
        """Return the rows of all groups: there are none."""
        return np.empty((0, 0), np.int64)

    def change(self, starts: GraphChange, edges: GraphChange) -> ValueChange:
        """Apply changes of starts and edges; return the changes of values."""
        graph = self.graph
        is_load = graph.node_count == 1 and min(edges.diffs.min(initial=1), starts.diffs.min(initial=1)) > 0
        if is_load and len(edges.diffs) + len(starts.diffs) > MIN_HEAP:
            graph.load(starts, edges)
            self._derive()
            rows = self.rows()
            self.is_irregular = bool(graph.state[lists.NEGATIVE_WEIGHTS])
            self._checked_nodes = graph.node_count
            return ValueChange(rows, np.ones((1, 1), np.int64), graph.is_ordered)
        graph.apply(starts, edges)
        was_irregular = self.is_irregular
        self.is_irregular = bool(graph.unpaid) or int(graph.state[lists.NEGATIVE_WEIGHTS]) > 0
        changed = self._recomputed() if was_irregular or self.is_irregular else self._updated()
        if graph.is_sparse or (graph.node_count > 2 * self._checked_nodes + MIN_HEAP and self._has_unused_nodes()):
            self._rebuild()
        return changed

    # An update

    def _updated(self) -> ValueChange:
        """Update the keys after the events of the graph."""
        state = self.graph.state
        if len(self._touched) < self.graph.node_count:
            reserve(24 * len(self.graph.values))
            self._touched = np.empty((len(self.graph.values), 3), np.int64)
        state[lists.PHASE] = kernels.SUSPECT_EVENTS
        self._run_phases(self.spec.max_rounds)
        count = int(state[lists.TOUCHED_COUNT])
        data, diffs = np.empty((1 + self.spec.has_values, 2 * count), np.int64), np.empty((1, 2 * count), np.int64)
        n = kernels.write_changes(
            self._touched, self.graph.keys, self.graph.values, int(not self.spec.has_values), data, diffs, state
        )
        if n == 2 * count:
            return ValueChange(data, diffs, False)
        return ValueChange(np.ascontiguousarray(data[:, :n]), np.ascontiguousarray(diffs[:, :n]), n <= 1)

    def _run_phases(self, max_hops: int) -> None:
        graph, state = self.graph, self.graph.state
        into, out = graph.incoming, graph.outgoing
        state[lists.POSITION] = 0
        budget = part_of(MAX_VISITS, VISITS_PER_PAUSE, VISITS_PER_INTERRUPT)
        while True:
            entries = (into.nodes, into.weights, out.nodes, out.weights, graph.start_values)
            arrays = (graph.events, self._touched, self._heap, state)
            result = kernels.update_values(graph.keys, graph.lists, *entries, *arrays, self.spec.step, max_hops, budget)
            if result == kernels.DONE:
                return
            if result == kernels.HEAP_IS_FULL:
                top = int(self._heap[0, 2]) if int(state[lists.HEAP_SIZE]) else 0
                kind = lists.IN if self.spec.both_ways else lists.OUT
                reserve(48 * len(self._heap))
                self._heap = resized(self._heap, 2 * len(self._heap) + int(graph.lists[top, kind + lists.SIZE]))
            self._check(result)

    def _check(self, result: int) -> None:
        """Pause after a part of an update, or raise if it found too many rounds."""
        if result == kernels.TOO_MANY_ROUNDS:
            raise too_many_rounds(self.spec)
        if result == kernels.PAUSED:
            pause()

    # From scratch

    def _recomputed(self) -> ValueChange:
        """Compute all values again; return the differences."""
        graph, count = self.graph, self.graph.node_count
        before = graph.keys[:count, [lists.VALUE, lists.HOPS]].copy()
        if graph.unpaid:
            self._count_rounds()
        else:
            self._derive()
        after = graph.keys[:count]
        was, now = before[:, 1] >= 0, after[:, lists.HOPS] >= 0
        differs = was != now
        if self.spec.has_values:
            differs |= was & now & (before[:, 0] != after[:, lists.VALUE])
        removed, added = np.flatnonzero(differs & was), np.flatnonzero(differs & now)
        data = np.concatenate([self._rows(removed, before[:, 0]), self._rows(added)], axis=1)
        return ValueChange(data, np.repeat(np.array([[-1, 1]]), [len(removed), len(added)], axis=1), False)

    def _derive(self) -> None:
        """Compute all keys from the edges and start values."""
        graph, state = self.graph, self.graph.state
        graph.keys[: graph.node_count, lists.HOPS] = -1
        owners, slots = graph.entries(graph.starts)
        values = graph.start_values[slots]
        is_negative = int(state[lists.NEGATIVE_WEIGHTS]) > 0
        max_hops = min(self.spec.max_rounds, graph.node_count) if is_negative else self.spec.max_rounds
        if not self.spec.weighted:
            self._derive_uniform(owners, values, max_hops)
            return
        if self._has_buckets(values):
            self._derive_by_buckets(owners, values, max_hops)
            return
        graph.events = np.ones((len(owners) + 1, lists.EVENT_COLUMNS), np.int64)
        state[lists.EVENT_COUNT] = len(owners)
        graph.events[: len(owners), lists.SOURCE] = 0
        graph.events[: len(owners), lists.TARGET] = owners
        graph.events[: len(owners), lists.WEIGHT] = values
        self._touched = np.empty((len(graph.values), 3), np.int64)
        state[lists.PHASE] = kernels.FRESH_EVENTS
        self._run_phases(max_hops)
        graph.keys[: graph.node_count, lists.MARK] = 0
        state[lists.TOUCHED_COUNT] = 0

    def _derive_uniform(self, owners: Ints, values: Ints, max_hops: int) -> None:
        graph, state = self.graph, self.graph.state
        by_value = np.argsort(values, kind="stable")
        order = np.stack([values[by_value], owners[by_value]])
        queue = np.empty(graph.node_count + 1, np.int32)
        others = (graph.incoming if self.spec.both_ways else graph.outgoing).nodes
        addresses = np.array([address(array) for array in (graph.keys, graph.lists, others)])
        state[[lists.POSITION, lists.QUEUE_HEAD, lists.QUEUE_TAIL]] = 0
        budget = part_of(MAX_VISITS, VISITS_PER_PAUSE, VISITS_PER_INTERRUPT)
        result = kernels.PAUSED
        while result != kernels.DONE:
            arrays = (graph.keys, graph.lists, graph.incoming.nodes, graph.outgoing.nodes, addresses, queue, state)
            result = kernels.derive_uniform(order, *arrays, self.spec.step, max_hops, budget)
            self._check(result)

    def _has_buckets(self, starts: Ints) -> bool:
        """Return whether buckets of values can take the place of a heap: weights are positive and of similar size."""
        weights = self._used_weights()
        if not len(weights) or not len(starts):
            return False
        least, greatest = int(weights.min()), int(weights.max())
        if least < 1 or greatest // least > MAX_BUCKETS:
            return False
        return max(abs(int(starts.min())), abs(int(starts.max()))) + greatest * self.graph.node_count < MAX_SUM

    def _used_weights(self) -> Ints:
        """Return the weights of all edges; unused slots between them have weights that were there."""
        used: Ints = self.graph.incoming.weights[: int(self.graph.state[lists.IN + lists.TAIL])]
        return used

    def _derive_by_buckets(self, owners: Ints, values: Ints, max_hops: int) -> None:
        graph, weights = self.graph, self._used_weights()
        by_value = np.argsort(values, kind="stable")
        order = np.stack([values[by_value], owners[by_value]])
        width = int(weights.min())
        heads = np.full(int(weights.max()) // width + 2, -1)
        room = (len(owners) + int(graph.state[lists.IN + lists.LIVE])) // kernels.BLOCK_NODES + 1 + len(heads)
        reserve(64 * room)
        blocks = np.empty((room, kernels.FIRST_NODE + kernels.BLOCK_NODES), np.int32)
        progress = np.zeros(kernels.PROGRESS_SIZE, np.int64)
        progress[kernels.FREE] = -1
        budget = part_of(MAX_VISITS, VISITS_PER_PAUSE, VISITS_PER_INTERRUPT)
        out, kind = (graph.incoming, lists.IN) if self.spec.both_ways else (graph.outgoing, lists.OUT)
        addresses = np.array([address(array) for array in (graph.keys, graph.lists, out.nodes, out.weights)])
        result = kernels.PAUSED
        while result != kernels.DONE:
            arrays = (graph.keys, graph.lists, out.nodes, out.weights, kind, addresses, heads, blocks, progress)
            result = kernels.derive_by_buckets(order, *arrays, width, max_hops, budget)
            self._check(result)
        graph.keys[: graph.node_count, lists.MARK] = 0

    def _count_rounds(self) -> None:
        """Compute the values round by round, with negative counts. The keys then hold no hops."""
        graph = self.graph
        keys = graph.keys[: graph.node_count]
        reached, values = counted_rounds(
            counted_entries(graph, lists.START), counted_entries(graph, lists.IN), graph.node_count, self.spec
        )
        keys[:, lists.HOPS] = np.where(reached, 0, -1)
        keys[:, lists.VALUE] = values

    # Values that left 64 bits

    def overflows(self) -> Ints:
        """Return the edges whose sum of value and weight leaves 64 bits: (source, target, value, weight)."""
        state, graph = self.graph.state, self.graph
        if not int(state[lists.OVERFLOWED]):
            return np.empty((4, 0), np.int64)
        owners, slots = graph.entries(graph.incoming)
        sources = graph.incoming.nodes[slots]
        weights = graph.incoming.weights[slots] if self.spec.weighted else np.full(len(slots), self.spec.step)
        values = graph.keys[sources, lists.VALUE]
        sums = values + weights
        rows = np.flatnonzero((graph.keys[sources, lists.HOPS] >= 0) & ((sums < values) != (weights < 0)))
        state[lists.OVERFLOWED] = int(len(rows) > 0)
        return np.stack([graph.values[sources[rows]], graph.values[owners[rows]], values[rows], weights[rows]])

    # Inside

    def _hops(self) -> Ints:
        return self.graph.keys[: self.graph.node_count, lists.HOPS]

    def _rows(self, nodes: Ints, values: Ints | None = None) -> Ints:
        columns = [self.graph.values[nodes]]
        if self.spec.has_values:
            columns.append((self.graph.keys[:, lists.VALUE] if values is None else values)[nodes])
        return np.stack(columns)

    def _has_unused_nodes(self) -> bool:
        self._checked_nodes = self.graph.node_count
        return self.graph.has_unused_nodes()

    def _rebuild(self) -> None:
        """Build the graph again without unused nodes and slots. Values stay as they are."""
        if self.is_irregular:
            return
        starts, edges = self.graph.rows()
        overflowed = int(self.graph.state[lists.OVERFLOWED])
        self.graph = self._empty_graph()
        if len(starts.diffs) + len(edges.diffs):
            self.graph.load(starts, edges)
            self._derive()
        self.graph.state[lists.OVERFLOWED] = overflowed
        self._checked_nodes = self.graph.node_count


KINDS = (lists.IN, lists.OUT, lists.START)
