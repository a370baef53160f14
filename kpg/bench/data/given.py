"""Graphs of files for experiments: nodes numbered anew, so that any numbers will do.

Arrays of the experiments are as long as there are nodes, and pairs of nodes are coded as one number: both need nodes
0 .. n - 1, which files seldom have. Cost: linear where numbers are not much larger than there are edges, as in SNAP's
files; else a sort.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kpg.bench.data.graphs import Ints
from kpg.bench.data.readers import read_graspan, read_snap

DENSE = 4  # numbers below so many times the edges are looked up in an array


def graph(path: Path) -> tuple[int, Ints]:
    """Nodes and edges of an edge list; nodes are 0 .. n - 1, in the order of the numbers they had."""
    nodes, (edges,) = renumbered(read_snap(path))
    return nodes, edges


def program(path: Path, *labels: str) -> tuple[int, tuple[Ints, ...]]:
    """Nodes of a Graspan file, and its edges with each of some labels."""
    found = read_graspan(path, *labels)
    return renumbered(*(found[label] for label in labels))


def renumbered(*parts: Ints) -> tuple[int, tuple[Ints, ...]]:
    """How many nodes there are, and the same edges with nodes 0 .. n - 1."""
    most = max(int(part.max()) for part in parts)
    if most < DENSE * sum(map(len, parts)):
        there = np.zeros(most + 1, np.int64)
        for part in parts:
            there[part] = 1
        place = np.cumsum(there) - 1
        return int(place[-1]) + 1, tuple(place[part] for part in parts)
    names = np.unique(np.concatenate([part.reshape(-1) for part in parts]))
    return len(names), tuple(np.searchsorted(names, part).astype(np.int64) for part in parts)
