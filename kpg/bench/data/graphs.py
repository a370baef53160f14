"""Graphs from a seed: random, RMAT (skewed, like social networks), grids, trees. Edges are int64[edges, 2]: from, to.

    the same arguments give the same edges, on any machine

Cost: linear in the edges; RMAT does a draw for each edge and level.
"""

from __future__ import annotations

import numpy as np

Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

LIVEJOURNAL = (4_800_000, 68_000_000)  # nodes, edges
ORKUT = (3_000_000, 117_000_000)
LIKE_SOCIAL = (0.57, 0.19, 0.19, 0.05)  # the corners that Graph500 uses


def random_graph(nodes: int, edges: int, seed: int = 0) -> Ints:
    """Uniform edges; some may be there twice, or lead back to their node."""
    return np.random.default_rng(seed).integers(0, nodes, (edges, 2))


def rmat(nodes: int, edges: int, seed: int = 0, corners: tuple[float, float, float, float] = LIKE_SOCIAL) -> Ints:
    """Edges by recursive choice of a corner of the adjacency matrix: few nodes have most of them.

    Nodes are numbered at random, so that a small number says nothing about the degree.
    """
    random = np.random.default_rng(seed)
    levels = max(1, int(np.ceil(np.log2(max(2, nodes)))))
    a, b, c, _ = corners
    source, target = np.zeros(edges, np.int64), np.zeros(edges, np.int64)
    for _ in range(levels):
        draw = random.random(edges)
        down, right = draw >= a + b, ((draw >= a) & (draw < a + b)) | (draw >= a + b + c)
        source = 2 * source + down
        target = 2 * target + right
    names = random.permutation(1 << levels) % nodes
    return np.stack([names[source], names[target]], axis=1)


def livejournal_like(scale: float, seed: int = 0) -> tuple[int, Ints]:
    """Nodes and edges as many as livejournal has, times a scale, as skewed."""
    nodes, edges = (max(2, round(each * scale)) for each in LIVEJOURNAL)
    return nodes, rmat(nodes, edges, seed)


def orkut_like(scale: float, seed: int = 0) -> tuple[int, Ints]:
    """The same for orkut."""
    nodes, edges = (max(2, round(each * scale)) for each in ORKUT)
    return nodes, rmat(nodes, edges, seed)


def crawled(edges: Ints) -> Ints:
    """The same graph, its nodes numbered in the order in which a crawl from the first one meets them.

    Nodes with many edges get small numbers. Breadth first, along the edges; nodes that it does not meet come last.
    """
    nodes = int(edges.max()) + 1 if len(edges) else 0
    ordered = edges[np.argsort(edges[:, 0], kind="stable")]
    ends = np.searchsorted(ordered[:, 0], np.arange(nodes), side="right")
    number, met = np.full(nodes, -1, np.int64), 0
    wave = ordered[:1, 0]
    while len(wave):
        number[wave] = np.arange(met, met + len(wave))
        met += len(wave)
        ranges = [ordered[ends[node - 1] if node else 0 : ends[node], 1] for node in wave.tolist()]
        targets = np.concatenate(ranges)
        found, first = np.unique(targets[number[targets] < 0], return_index=True)
        wave = found[np.argsort(first)]
    number[number < 0] = np.arange(met, nodes)
    return np.stack([number[edges[:, 0]], number[edges[:, 1]]], axis=1)


def grid(side: int) -> Ints:
    """(side + 1)^2 nodes, each with edges to the right and down: grid-150 of the Datalog papers is `grid(150)`."""
    number = np.arange((side + 1) ** 2, dtype=np.int64).reshape(side + 1, side + 1)
    right = np.stack([number[:, :-1].reshape(-1), number[:, 1:].reshape(-1)], axis=1)
    down = np.stack([number[:-1].reshape(-1), number[1:].reshape(-1)], axis=1)
    return np.concatenate([right, down])


def tree(depth: int, seed: int = 0, least: int = 2, most: int = 6) -> Ints:
    """A tree whose inner nodes have from 2 to 6 children, edges towards the leaves: tree-11 is `tree(11)`."""
    random = np.random.default_rng(seed)
    level, known, parts = np.zeros(1, np.int64), 1, []
    for _ in range(depth):
        children = random.integers(least, most + 1, len(level))
        parents = np.repeat(level, children)
        level = known + np.arange(len(parents), dtype=np.int64)
        known += len(parents)
        parts.append(np.stack([parents, level], axis=1))
    return np.concatenate(parts) if parts else np.zeros((0, 2), np.int64)


def gnp(nodes: int, probability: float, seed: int = 0) -> Ints:
    """Each pair of different nodes with the same probability, once: gnp1 is `gnp(10_000, 0.001)`."""
    random = np.random.default_rng(seed)
    codes = np.unique(random.integers(0, nodes * nodes, random.poisson(nodes * nodes * probability)))
    edges = np.stack([codes // nodes, codes % nodes], axis=1)
    return np.asarray(edges[edges[:, 0] != edges[:, 1]], np.int64)
