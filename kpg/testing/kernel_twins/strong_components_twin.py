"""Twin of kpg.kernels.strong_components: components by the closure of all edges."""

from __future__ import annotations

from collections.abc import Iterable


def strong_components(edges: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return the least node that each end of an edge reaches and is reached from."""
    reached = {(node, node) for edge in edges for node in edge} | set(edges)
    for middle in {node for node, _ in reached}:
        into, out = [u for u, v in reached if v == middle], [v for u, v in reached if u == middle]
        reached |= {(u, v) for u in into for v in out}
    return {node: min(v for u, v in reached if u == node and (v, u) in reached) for node, _ in reached}
