"""Graphs from files, with nodes renumbered to 0 .. n - 1.

Experiments have arrays with an element for each node and encode pairs of nodes as one number, which needs dense node
numbers; files seldom have them. Cost: linear if the numbers are not much larger than the number of edges, as in SNAP's
files; else a sort.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kpg.bench.data.graphs import Ints
from kpg.bench.data.readers import read_graspan, read_snap

DENSE = 4  # numbers below this many times the edges are looked up in an array


def read_graph(path: Path) -> tuple[int, Ints]:
    """Return the number of nodes and the edges of an edge list; renumbering keeps the order of the nodes."""
    nodes, (edges,) = renumbered(read_snap(path))
    return nodes, edges


def read_program(path: Path, *labels: str) -> tuple[int, tuple[Ints, ...]]:
    """Return the number of nodes of a Graspan file, and its edges with each of some labels."""
    edges = read_graspan(path, *labels)
    return renumbered(*(edges[label] for label in labels))


def renumbered(*parts: Ints) -> tuple[int, tuple[Ints, ...]]:
    """Return the number of nodes, and the same edges with nodes 0 .. n - 1."""
    most = max(int(part.max()) for part in parts)
    if most < DENSE * sum(map(len, parts)):
        occurs = np.zeros(most + 1, np.int64)
        for part in parts:
            occurs[part] = 1
        number = np.cumsum(occurs) - 1
        return int(number[-1]) + 1, tuple(number[part] for part in parts)
    names = np.unique(np.concatenate([part.reshape(-1) for part in parts]))
    return len(names), tuple(np.searchsorted(names, part).astype(np.int64) for part in parts)
