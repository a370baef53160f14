"""The components of a graph, of which a first load needs no lists of neighbours.

    components = DeferredComponents(spec)     spec: own_starts, without weights and steps
    components.change(starts, edges)          as LeastValues.change

Union-find merges the components of a first load. Its edges are kept as they came, and the first change after it builds
the lists (`kpg.seminaive.graph_lists`) and the keys of all nodes. So a load costs a fifth of what it costs with lists,
and the first change also costs what the load has saved. A load whose nodes do not lie close together is not deferred.
"""

from __future__ import annotations

import numpy as np

from kpg.columns.memory_budget import reserve
from kpg.columns.pause_points import aside
from kpg.columns.updates import Ints
from kpg.kernels.union_find import connect
from kpg.seminaive import least_values
from kpg.seminaive.graph_lists import GraphChange, uniform_or_all
from kpg.seminaive.least_values import LeastValues, LeastValueSpec, ValueChange
from kpg.seminaive.row_codes import TABLE_SPREAD

NO_STARTS = GraphChange(np.empty((2, 0), np.int64), np.empty(0, np.int64))


class DeferredComponents(LeastValues):
    """The graph and the component of each node; until the first change after a load, the edges of the load alone."""

    def __init__(self, spec: LeastValueSpec) -> None:
        assert spec.own_starts and not spec.weighted and not spec.step
        super().__init__(spec)
        self._load: GraphChange | None = None  # the edges whose lists are not built
        self._load_nodes = 0

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return super().nbytes + (0 if self._load is None else self._load.data.nbytes + self._load.diffs.nbytes)

    def row_count(self) -> int:
        """Return the number of nodes."""
        return super().row_count() if self._load is None else self._load_nodes

    def used_nodes(self) -> Ints:
        """Return all nodes that have edges, int64[1, n]."""
        return super().used_nodes() if self._load is None else np.unique(self._load.data)[None]

    def change(self, starts: GraphChange, edges: GraphChange) -> ValueChange:
        """Apply changes of edges; return the changes of components."""
        if self._load is not None:
            self._build_lists(self._load)
        elif self.graph.node_count == 1 and edges.diffs.min(initial=1) > 0:
            components = components_of(edges.data) if len(edges.diffs) > least_values.MIN_HEAP else None
            if components is not None:
                self._load = GraphChange(edges.data, uniform_or_all(edges.diffs))
                self._load_nodes = components.shape[1]
                return ValueChange(components, np.ones((1, 1), np.int64), True)
        return super().change(starts, edges)

    def _build_lists(self, load: GraphChange) -> None:
        self.graph.load(NO_STARTS, load)
        self._derive()
        self._checked_nodes = self.graph.node_count
        self._load = None


def components_of(ends: Ints) -> Ints | None:
    """Return the nodes of some edges with their components, sorted; None if nodes are far apart."""
    least, greatest = int(ends.min()), int(ends.max())
    spread = greatest - least + 1
    if spread > TABLE_SPREAD * ends.size:
        return None
    reserve(ends.nbytes + 17 * spread)
    return aside(2 * ends.size, _merge_components, ends, least, spread)


def _merge_components(ends: Ints, least: int, spread: int) -> Ints:
    numbers = ends - least if least else np.ascontiguousarray(ends)
    parents = np.arange(spread)
    connect(numbers, parents)
    used = np.zeros(spread, np.bool_)
    for column in numbers:
        used[column] = True
    nodes = np.flatnonzero(used)
    return np.stack([nodes + least, parents[nodes] + least])
