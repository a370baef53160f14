"""The strongly connected components of a graph that changes.

    component(v)  =  the least node that reaches v and is reached from it,  for each end v of an edge

    components = MaintainedComponents()
    components.change(edges)      returns the changed rows (node, component) and their diffs

An edge is there if it has a positive number of copies. A change costs the edges of the nodes whose distance from or to
the root of their component changes, and, for a new edge between two components, the smaller part of what its end
reaches and what reaches its start (`kpg.kernels.strong_components`). It never costs much more than a first load.
Memory: 230 bytes for each node, 16 for each edge.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import aside
from kpg.columns.updates import Ints
from kpg.kernels import neighbour_lists as lists
from kpg.kernels import strong_components as kernels
from kpg.seminaive.graph_lists import GraphChange, GraphLists, Numbers, resized
from kpg.seminaive.least_values import ValueChange

MIN_LOAD_ROWS = 1 << 10  # a first change of fewer edges is an update
MIN_RECORDS = 1 << 10  # edges that a search has room for at first
MIN_SEARCH_LIMIT = 1 << 16  # edges that the searches of an update may always visit
FIRST_SEARCH = 1 << 40
NO_STARTS = GraphChange(np.empty((2, 0), np.int64), np.empty(0, np.int64))


class MaintainedComponents:
    """The graph and the component of each node."""

    def __init__(self) -> None:
        self.graph = GraphLists(weighted=False, step=0, both_ways=False, own_starts=False)
        self._parts: Ints = np.zeros((0, kernels.PART_COLUMNS), np.int64)
        self._records: Ints = np.empty((MIN_RECORDS, 2), np.int64)
        self._counts: Ints = np.zeros(kernels.COUNTS_SIZE, np.int64)
        self._counts[kernels.SEARCHES] = FIRST_SEARCH
        self._checked_nodes = 0  # when unused nodes were last counted
        self._make_room()

    def _make_room(self) -> None:
        """Make room for all nodes and events."""
        nodes = len(self.graph.values)
        if len(self._parts) < nodes:
            reserve(8 * nodes * (kernels.PART_COLUMNS + kernels.SCRATCH_COLUMNS + 8))
            self._parts = resized(self._parts, nodes)
            self._scratch: Ints = np.zeros((nodes, kernels.SCRATCH_COLUMNS), np.int64)
            self._leaving: Ints = np.empty(nodes, np.int64)
            self._queue: Ints = np.empty(2 * nodes, np.int64)
            self._touched: Ints = np.empty((nodes, 2), np.int64)
            self._heap: Ints = np.empty((0, 3), np.int64)
        if len(self._heap) < nodes + len(self.graph.events):
            self._heap = np.empty((nodes + len(self.graph.events), 3), np.int64)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        own = (self._parts, self._scratch, self._leaving, self._queue, self._touched, self._heap, self._records)
        return self.graph.nbytes + sum(part.nbytes for part in own)

    def row_count(self) -> int:
        """Return the number of nodes with edges."""
        return int((self._parts[: self.graph.node_count, kernels.COMPONENT] != 0).sum())

    def rows(self) -> Ints:
        """Return all nodes with their components."""
        nodes = np.flatnonzero(self._parts[: self.graph.node_count, kernels.COMPONENT])
        return np.stack([self.graph.values[nodes], self.graph.values[self._parts[nodes, kernels.COMPONENT]]])

    def change(self, edges: GraphChange) -> ValueChange:
        """Apply changes of edges; return the changes of components."""
        graph = self.graph
        if graph.node_count == 1 and len(edges.diffs) > MIN_LOAD_ROWS and edges.diffs.min() > 0:
            graph.load(NO_STARTS, edges)
            self._make_room()
            self._derive()
            self._forget_touched()
            self._checked_nodes = graph.node_count
            return ValueChange(self.rows(), np.ones((1, 1), np.int64), graph.is_ordered)
        graph.apply(NO_STARTS, edges)
        self._make_room()
        self._update()
        changed = self._changed()
        if graph.is_sparse or (graph.node_count > 2 * self._checked_nodes + MIN_LOAD_ROWS and self._has_unused_nodes()):
            self._rebuild()
        return changed

    def _lists(self) -> tuple[Ints, Numbers, Numbers, Ints, Ints]:
        graph = self.graph
        return graph.lists, graph.incoming.nodes, graph.outgoing.nodes, graph.values, self._parts

    def _derive(self) -> None:
        """Compute all components from the edges."""
        scratch = (self._leaving, self._scratch, self._heap, self._queue, self._counts, self._touched)
        numbers = 4 * int(self.graph.state[lists.IN + lists.LIVE])
        aside(numbers, kernels.derive_components, *self._lists(), *scratch, self.graph.state)

    def _update(self) -> None:
        """Update the components after the events of the graph."""
        state = self.graph.state
        state[lists.PHASE], state[lists.POSITION], self._counts[kernels.VISITED] = kernels.START, 0, 0
        limit = max(MIN_SEARCH_LIMIT, 2 * int(state[lists.IN + lists.LIVE]))
        while True:
            scratch = (self._leaving, self._scratch, self._heap, self._queue, self._records, self._counts)
            given = (*self._lists(), self.graph.events, *scratch, self._touched, state)
            result = kernels.update_components(*given, limit)
            if result == kernels.DONE:
                return
            if result == kernels.TOO_MUCH_WORK:
                self._derive()
                return
            reserve(32 * len(self._records))
            self._records = np.empty((2 * len(self._records), 2), np.int64)

    def _changed(self) -> ValueChange:
        count = int(self.graph.state[lists.TOUCHED_COUNT])
        data, diffs = np.empty((2, 2 * count), np.int64), np.empty((1, 2 * count), np.int64)
        n = kernels.write_components(self._touched, self._parts, self.graph.values, data, diffs, self.graph.state)
        if n == 2 * count:
            return ValueChange(data, diffs, False)
        return ValueChange(np.ascontiguousarray(data[:, :n]), np.ascontiguousarray(diffs[:, :n]), n <= 1)

    def _forget_touched(self) -> None:
        self._parts[:, kernels.FLAGS] = 0
        self.graph.state[lists.TOUCHED_COUNT] = 0

    def _has_unused_nodes(self) -> bool:
        self._checked_nodes = self.graph.node_count
        return self.graph.has_unused_nodes()

    def _rebuild(self) -> None:
        """Build the graph again without unused nodes and slots, unless an edge has a negative number of copies."""
        if self.graph.unpaid:
            return
        _, edges = self.graph.rows()
        self.__init__()  # type: ignore[misc]
        if len(edges.diffs):
            self.graph.load(NO_STARTS, edges)
            self._make_room()
            self._derive()
            self._forget_touched()
        self._checked_nodes = self.graph.node_count
