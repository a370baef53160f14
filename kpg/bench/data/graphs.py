"""Graphs from a seed: random, RMAT (skewed, like social networks), grids, trees, stars.

Edges are int64[edges, 2]: source and target. The same arguments give the same edges on every machine. Cost: linear in
the edges; RMAT draws once for each edge and level.
"""

from __future__ import annotations

import numpy as np

Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

LIVEJOURNAL = (4_800_000, 68_000_000)  # nodes, edges
ORKUT = (3_000_000, 117_000_000)
SOCIAL_CORNERS = (0.57, 0.19, 0.19, 0.05)  # probabilities of the four corners in Graph500


def random_graph(nodes: int, edges: int, seed: int = 0) -> Ints:
    """Return uniform random edges; some may occur twice or lead back to their node."""
    return np.random.default_rng(seed).integers(0, nodes, (edges, 2))


def rmat(nodes: int, edges: int, seed: int = 0, corners: tuple[float, float, float, float] = SOCIAL_CORNERS) -> Ints:
    """Return edges by recursive choice of a corner of the adjacency matrix: few nodes have most edges.

    Nodes are numbered at random, so a small number says nothing about the degree.
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
    """Return the nodes and edges of a graph with the size of livejournal, times a scale, and its skew."""
    nodes, edges = (max(2, round(count * scale)) for count in LIVEJOURNAL)
    return nodes, rmat(nodes, edges, seed)


def orkut_like(scale: float, seed: int = 0) -> tuple[int, Ints]:
    """Return the nodes and edges of a graph with the size of orkut, times a scale, and its skew."""
    nodes, edges = (max(2, round(count * scale)) for count in ORKUT)
    return nodes, rmat(nodes, edges, seed)


def crawled(edges: Ints) -> Ints:
    """Renumber the nodes of a graph in the order in which a breadth-first crawl from the first one reaches them.

    Nodes with many edges get small numbers. Nodes that the crawl does not reach come last.
    """
    nodes = int(edges.max()) + 1 if len(edges) else 0
    ordered = edges[np.argsort(edges[:, 0], kind="stable")]
    ends = np.searchsorted(ordered[:, 0], np.arange(nodes), side="right")
    number, reached = np.full(nodes, -1, np.int64), 0
    wave = ordered[:1, 0]
    while len(wave):
        number[wave] = np.arange(reached, reached + len(wave))
        reached += len(wave)
        ranges = [ordered[ends[node - 1] if node else 0 : ends[node], 1] for node in wave.tolist()]
        targets = np.concatenate(ranges)
        fresh, first = np.unique(targets[number[targets] < 0], return_index=True)
        wave = fresh[np.argsort(first)]
    number[number < 0] = np.arange(reached, nodes)
    return np.stack([number[edges[:, 0]], number[edges[:, 1]]], axis=1)


def grid(side: int) -> Ints:
    """Return (side + 1)^2 nodes with edges to the right and down: grid-150 of the Datalog papers is `grid(150)`."""
    number = np.arange((side + 1) ** 2, dtype=np.int64).reshape(side + 1, side + 1)
    right = np.stack([number[:, :-1].reshape(-1), number[:, 1:].reshape(-1)], axis=1)
    down = np.stack([number[:-1].reshape(-1), number[1:].reshape(-1)], axis=1)
    return np.concatenate([right, down])


def tree(depth: int, seed: int = 0, least: int = 2, most: int = 6) -> Ints:
    """Return a tree with 2 to 6 children for each inner node, edges towards the leaves: tree-11 is `tree(11)`."""
    random = np.random.default_rng(seed)
    level, nodes, parts = np.zeros(1, np.int64), 1, []
    for _ in range(depth):
        children = random.integers(least, most + 1, len(level))
        parents = np.repeat(level, children)
        level = nodes + np.arange(len(parents), dtype=np.int64)
        nodes += len(parents)
        parts.append(np.stack([parents, level], axis=1))
    return np.concatenate(parts) if parts else np.zeros((0, 2), np.int64)


def gnp(nodes: int, probability: float, seed: int = 0) -> Ints:
    """Return each pair of different nodes with the same probability, once: gnp1 is `gnp(10_000, 0.001)`."""
    random = np.random.default_rng(seed)
    codes = np.unique(random.integers(0, nodes * nodes, random.poisson(nodes * nodes * probability)))
    edges = np.stack([codes // nodes, codes % nodes], axis=1)
    return np.asarray(edges[edges[:, 0] != edges[:, 1]], np.int64)


def bernoulli_graph(nodes: int, probability: float, seed: int = 1) -> Ints:
    """Return each of all pairs of nodes, loops included, with the same probability. Cost: quadratic in the nodes."""
    chosen = np.random.default_rng(seed).random((nodes, nodes)) < probability
    return np.argwhere(chosen).astype(np.int64)


def binary_tree(depth: int) -> Ints:
    """Return the complete binary tree, with edges from parents to children."""
    children = np.arange(1, 2 ** (depth + 1) - 1)
    return np.stack([(children - 1) // 2, children], axis=1).astype(np.int64)


def star(rays: int) -> Ints:
    """Return 0→i, i→0 for each ray i, and i→i+1: three directed triangles, one in each rotation, for each but the last.

    A join of two edges through node 0 has as many pairs as the square of the rays.
    """
    ends = np.arange(1, rays + 1)
    hub = np.zeros_like(ends)
    parts = [(hub, ends), (ends, hub), (ends[:-1], ends[1:])]
    return np.concatenate([np.stack(part, axis=1) for part in parts])


def rmat_in_order(levels: int, edges: int, seed: int = 5) -> Ints:
    """Return an RMAT graph of 2^levels nodes, each edge once; nodes keep the order of the recursion (see `rmat`)."""
    random = np.random.default_rng(seed)
    ends = np.zeros((edges, 2), np.int64)
    for _ in range(levels):
        quarter = random.choice(4, edges, p=SOCIAL_CORNERS)
        ends = 2 * ends + np.stack([quarter // 2, quarter % 2], axis=1)
    return np.unique(ends, axis=0)
