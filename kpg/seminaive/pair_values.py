"""The least value of each node of a graph, for each group of start values: distances from many roots.

    value(g, v)  =  min ( start values of (g, v)  ∪  { value(g, u) + weight : an edge from u to v } )

    least = PairValues(spec)
    least.change(starts, edges)      returns the changed rows (group, node, value) and their diffs

This is the fixed point of a loop whose key has columns that its joins carry along unchanged (the group) besides those
that edges lead from and to (the node). Both have any number of lanes; without lanes there is one group. All groups
share the lists of neighbours, and only pairs that are reached are there (`kpg.kernels.pair_keys`). A change of an edge
costs the groups that have its start, and the edges of the pairs whose key changes.

Groups never meet, so the exceptions of `kpg.seminaive.least_values` hold for each: with a negative weight, a change
computes all values of the groups that have the start of a changed edge. With a negative number of copies, all groups
are computed round by round.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kpg.columns.pause_points import part_of, pause
from kpg.columns.updates import Ints
from kpg.kernels import neighbour_lists as lists
from kpg.kernels import pair_keys as kernels
from kpg.seminaive.counted_rounds import CountedEdges, counted_entries, counted_rounds
from kpg.seminaive.graph_lists import GraphChange, GraphLists
from kpg.seminaive.least_values import (
    MAX_VISITS,
    VISITS_PER_INTERRUPT,
    VISITS_PER_PAUSE,
    LeastValueSpec,
    ValueChange,
    too_many_rounds,
)
from kpg.seminaive.pair_table import PairTable
from kpg.seminaive.row_numbers import RowNumbers

Flags = npt.NDArray[np.bool_]

MIN_LOAD_ROWS = 1 << 10  # a first change of fewer edges is an update
MIN_UNUSED = 1 << 16  # unused pairs, groups or nodes that are always allowed


class PairValues:
    """The graph, the groups, and the least value of each pair."""

    def __init__(self, spec: LeastValueSpec) -> None:
        assert not spec.own_starts
        self.spec = spec
        self._forget()

    def _forget(self) -> None:
        spec = self.spec
        self.graph = GraphLists(spec.weighted, spec.step, spec.both_ways, False)
        self.starts = GraphLists(False, 0, False, False)  # the start values of pairs: its nodes are numbers of pairs
        self.table = PairTable()
        self.groups = RowNumbers(spec.group_lanes)
        self.nodes = RowNumbers(spec.node_lanes) if spec.node_lanes > 1 else None
        self.is_counted = False  # whether values were computed round by round
        self.is_negative = False  # whether a weight is negative
        self._checked_pairs = 0  # when unused pairs were last counted

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        numbers = self.groups.nbytes + (0 if self.nodes is None else self.nodes.nbytes)
        return self.graph.nbytes + self.starts.nbytes + self.table.nbytes + numbers

    def row_count(self) -> int:
        """Return the number of pairs with a value."""
        return int((self.table.used[:, lists.HOPS] >= 0).sum())

    def used_groups(self) -> Ints:
        """Return the rows of the groups that have start values or values."""
        used = np.zeros(len(self.groups), np.bool_)
        used[self.table.used[self._used_pairs(), kernels.GROUP]] = True
        return self.groups.rows(np.flatnonzero(used))

    def used_nodes(self) -> Ints:
        """Return the rows of the nodes that have edges or start values."""
        used = np.zeros(self.graph.node_count, np.bool_)
        used[self.graph.linked_nodes()] = True
        used[self.table.used[self._used_pairs(), kernels.NODE]] = True
        return self._node_rows(np.flatnonzero(used))

    def _used_pairs(self) -> Ints:
        used = self.table.used[:, lists.HOPS] >= 0
        has_starts = self.starts.lists[: self.starts.node_count, lists.START + lists.SIZE] > 0
        used[self.starts.values[np.flatnonzero(has_starts)]] = True
        return np.flatnonzero(used)

    # A change

    def change(self, starts: GraphChange, edges: GraphChange) -> ValueChange:
        """Apply changes of starts and edges; return the changes of values."""
        self._apply_edges(edges)
        self._apply_starts(starts)
        self._update()
        change = self._changes()
        if self._is_sparse():
            self._rebuild()
        return change

    def _apply_edges(self, edges: GraphChange) -> None:
        graph, rows = self.graph, self._with_node_numbers(edges)
        is_load = graph.node_count == 1 and edges.diffs.min(initial=1) > 0
        if is_load and len(edges.diffs) > MIN_LOAD_ROWS:  # no pair is there, so no edge changes one
            graph.load(NO_STARTS, rows)
            graph.state[lists.EVENT_COUNT] = 0
        else:
            graph.apply(NO_STARTS, rows)

    def _with_node_numbers(self, edges: GraphChange) -> GraphChange:
        """Return edges whose ends have one lane."""
        if self.nodes is None:
            return edges
        width, count = self.spec.node_lanes, len(edges.diffs)
        ends = self.nodes.add(np.concatenate([edges.data[:width], edges.data[width : 2 * width]], axis=1))
        return GraphChange(np.stack([ends[:count], ends[count:], *edges.data[2 * width :]]), edges.diffs)

    def _apply_starts(self, starts: GraphChange) -> None:
        known, of_starts = self.starts.node_count, self.starts
        if not len(starts.diffs):
            of_starts.state[lists.EVENT_COUNT] = 0
            self.table.fit(len(self.groups), self.graph.node_count)
            return
        split = self.spec.group_lanes
        groups, nodes = self.groups.add(starts.data[:split]), starts.data[split : split + self.spec.node_lanes]
        numbers = self.graph.number(nodes[0] if self.nodes is None else self.nodes.add(nodes))
        self.table.fit(len(self.groups), self.graph.node_count)
        pairs = self.table.number(groups, numbers)
        values = starts.data[-1] if self.spec.has_values else np.zeros(len(pairs), np.int64)
        of_starts.apply(GraphChange(np.stack([pairs, values]), starts.diffs), NO_EDGES)
        new = np.arange(known, of_starts.node_count)
        self.table.pairs[of_starts.values[new], kernels.START] = new

    def _update(self) -> None:
        """Update the keys after the events of edges and starts."""
        was_counted, was_negative = self.is_counted, self.is_negative
        self.is_counted = bool(self.graph.unpaid or self.starts.unpaid)
        self.is_negative = int(self.graph.state[lists.NEGATIVE_WEIGHTS]) > 0
        if self.is_counted:
            self._count_rounds()
        elif was_counted:
            self._derive(np.ones(len(self.groups), np.bool_))
        elif was_negative or self.is_negative:
            self._derive(self._changed_groups())
        else:
            self._run(self._events(), kernels.SUSPECT_EVENTS)

    def _changes(self) -> ValueChange:
        table = self.table
        data, diffs = table.changes(not self.spec.has_values)
        table.give_back()
        lanes = [self.groups.rows(data[0]), self._node_rows(data[1])]
        rows = np.concatenate([*lanes, data[2:]] if self.spec.has_values else lanes)
        return ValueChange(np.ascontiguousarray(rows), diffs, rows.shape[1] <= 1)

    def _node_rows(self, numbers: Ints) -> Ints:
        values = self.graph.values[numbers]
        return values[None] if self.nodes is None else self.nodes.rows(values)

    # An update of keys

    def _events(self) -> Ints:
        """Return the events of edges, and then those of starts by group."""
        edges = self.graph.events[: int(self.graph.state[lists.EVENT_COUNT])]
        starts = self.starts.events[: int(self.starts.state[lists.EVENT_COUNT])].copy()
        starts[:, lists.TARGET] = self.starts.values[starts[:, lists.TARGET]]
        return self._joined(edges, starts)

    def _joined(self, edges: Ints, starts: Ints) -> Ints:
        by_group = np.argsort(self.table.pairs[starts[:, lists.TARGET], kernels.GROUP], kind="stable")
        self.table.state[kernels.FIRST_START] = len(edges)
        return np.concatenate([edges, starts[by_group]])

    def _run(self, events: Ints, phase: int) -> None:
        """Run the phases of an update from one on."""
        graph, table, spec = self.graph, self.table, self.spec
        state = table.state
        if not len(events):
            return
        state[lists.EVENT_COUNT] = len(events)
        state[lists.PHASE], state[kernels.CHAIN] = phase, 0
        state[lists.POSITION] = state[kernels.FIRST_START] if phase == kernels.SETTLE else 0
        max_hops = min(spec.max_rounds, graph.node_count) if self.is_negative else spec.max_rounds
        budget = part_of(MAX_VISITS, VISITS_PER_PAUSE, VISITS_PER_INTERRUPT)
        into, out = graph.incoming, graph.outgoing
        entries = (graph.lists, into.nodes, into.weights, out.nodes, out.weights)
        starts = (self.starts.lists, self.starts.start_values)
        while True:
            pairs = (table.pairs, table.groups, table.pool, table.heads)
            arrays = (*pairs, *entries, *starts, events, table.touched, table.heap, state)
            result = kernels.update_pairs(*arrays, spec.step, max_hops, budget)
            if result == kernels.DONE:
                return
            if result == kernels.TOO_MANY_ROUNDS:
                raise too_many_rounds(spec)
            if result == kernels.LACKS_ROOM:
                table.make_room()
            else:
                pause()

    # From scratch

    def _changed_groups(self) -> Flags:
        """Return which groups have a changed start value, or the start of a changed edge."""
        events, pairs = self._events(), self.table.used
        first = int(self.table.state[kernels.FIRST_START])
        starts_edge = np.zeros(self.graph.node_count, np.bool_)
        starts_edge[events[:first, lists.SOURCE]] = True
        changed = np.zeros(len(self.groups), np.bool_)
        changed[pairs[events[first:, lists.TARGET], kernels.GROUP]] = True
        changed[pairs[1:, kernels.GROUP][starts_edge[pairs[1:, kernels.NODE]]]] = True
        return changed

    def _derive(self, of_groups: Flags) -> None:
        """Compute all keys of some groups from their edges and start values."""
        if not len(self.groups):
            return
        pairs = self.table.used
        belongs = of_groups[pairs[:, kernels.GROUP]] & (pairs[:, lists.HOPS] >= 0)
        self.table.touch(np.flatnonzero(belongs))
        self.table.used[belongs, lists.HOPS] = -1
        owners, slots = self.starts.entries(self.starts.starts)
        of_pairs = self.starts.values[owners]
        kept = np.flatnonzero(of_groups[self.table.used[of_pairs, kernels.GROUP]])
        events = np.zeros((len(kept), lists.EVENT_COLUMNS), np.int64)
        events[:, lists.APPEARS] = 1
        events[:, lists.TARGET] = of_pairs[kept]
        events[:, lists.WEIGHT] = self.starts.start_values[slots[kept]]
        self._run(self._joined(self.graph.events[:0], events), kernels.SETTLE)

    def _count_rounds(self) -> None:
        """Compute the values of all groups round by round, with negative counts. The keys then hold no hops."""
        starts, edges = counted_entries(self.starts, lists.START), counted_entries(self.graph, lists.IN)
        of_pairs = self.table.used[self.starts.values[starts.targets]]
        found: list[tuple[Ints, Ints]] = []
        for group in np.unique(of_pairs[:, kernels.GROUP]).tolist():
            own = np.flatnonzero(of_pairs[:, kernels.GROUP] == group)
            given = CountedEdges(*[column[own] for column in starts])._replace(targets=of_pairs[own, kernels.NODE])
            reached, values = counted_rounds(given, edges, self.graph.node_count, self.spec)
            nodes = np.flatnonzero(reached)
            pairs = self.table.number(np.full(len(nodes), group), nodes.astype(np.int32))
            found.append((pairs, values[nodes]))
        self.table.touch(np.arange(1, self.table.count))
        keys = self.table.used
        keys[1:, lists.HOPS] = -1
        for pairs, values in found:
            keys[pairs, lists.HOPS], keys[pairs, lists.VALUE] = 0, values

    # Values that left 64 bits

    def overflows(self) -> Ints:
        """Return the edges whose sum leaves 64 bits: the lanes of group, source and target, the value, the weight."""
        state, graph, keys = self.table.state, self.graph, self.table.used
        width = self.spec.group_lanes + 2 * self.spec.node_lanes + 2
        if not int(state[lists.OVERFLOWED]):
            return np.empty((width, 0), np.int64)
        owners, slots = graph.entries(graph.incoming)
        sources = graph.incoming.nodes[slots]
        weights = graph.incoming.weights[slots] if self.spec.weighted else np.full(len(slots), self.spec.step)
        found = []
        for pair in np.flatnonzero((keys[:, lists.HOPS] >= 0) & self._may_overflow(weights)).tolist():
            value, group = int(keys[pair, lists.VALUE]), keys[pair, kernels.GROUP]
            rows = np.flatnonzero(sources == keys[pair, kernels.NODE])
            sums = weights[rows] + np.int64(value)
            rows = rows[(sums < value) != (weights[rows] < 0)]
            ends = [self._node_rows(ends[rows]) for ends in (sources, owners)]
            of_group = self.groups.rows(np.full(len(rows), group))
            found.append(np.concatenate([of_group, *ends, np.full((1, len(rows)), value), weights[None, rows]]))
        edges = np.concatenate([np.empty((width, 0), np.int64), *found], axis=1)
        state[lists.OVERFLOWED] = int(edges.shape[1] > 0)
        return edges

    def _may_overflow(self, weights: Ints) -> Flags:
        values = self.table.used[:, lists.VALUE]
        most, least = int(weights.max(initial=0)), int(weights.min(initial=0))
        return np.asarray((values > lists.MAX_INT64 - most) | (values < lists.MIN_INT64 - least), np.bool_)

    # Room

    def _is_sparse(self) -> bool:
        """Return whether most pairs, nodes or slots are unused."""
        if self.is_counted:
            return False
        if self.graph.is_sparse or self.starts.is_sparse:
            return True
        if self.table.count + self.graph.node_count <= 2 * self._checked_pairs + MIN_UNUSED:
            return False
        used = self.row_count() + len(self.graph.linked_nodes())
        self._checked_pairs = self.table.count + self.graph.node_count
        return self._checked_pairs > 2 * used + MIN_UNUSED

    def _rebuild(self) -> None:
        """Build everything again without unused pairs, groups, nodes and slots. Values stay as they are."""
        starts, edges = self._rows()
        overflowed, is_negative = int(self.table.state[lists.OVERFLOWED]), self.is_negative
        self._forget()
        self._apply_edges(edges)
        self._apply_starts(starts)
        self.is_negative = is_negative
        self._derive(np.ones(len(self.groups), np.bool_))
        self._changes()
        self.table.state[lists.OVERFLOWED] = overflowed
        self._checked_pairs = self.table.count + self.graph.node_count

    def _rows(self) -> tuple[GraphChange, GraphChange]:
        """Return all starts and edges."""
        starts, _ = self.starts.rows()
        pairs = self.table.used[starts.data[0]]
        lanes = [self.groups.rows(pairs[:, kernels.GROUP]), self._node_rows(pairs[:, kernels.NODE]), starts.data[1:]]
        _, edges = self.graph.rows()
        if self.nodes is not None:
            ends = [self.nodes.rows(column) for column in edges.data[:2]]
            edges = GraphChange(np.concatenate([*ends, edges.data[2:]]), edges.diffs)
        return GraphChange(np.concatenate(lanes), starts.diffs), edges


NO_STARTS = GraphChange(np.empty((2, 0), np.int64), np.empty(0, np.int64))
NO_EDGES = GraphChange(np.empty((2, 0), np.int64), np.empty(0, np.int64))
