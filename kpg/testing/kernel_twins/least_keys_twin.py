"""Twin of kpg.kernels.least_keys and kpg.kernels.neighbour_lists: keys by repeated passes over all edges."""

from __future__ import annotations

from collections.abc import Mapping

Key = tuple[int, int]  # value and hops


def least_keys(starts: Mapping[tuple[int, int], int], edges: Mapping[tuple[int, int, int], int]) -> dict[int, Key]:
    """Return the least key of each node. Starts are (node, value), edges (source, target, weight), with counts."""
    keys: dict[int, Key] = {}
    changed = True
    while changed:
        offers = [(node, (value, 0)) for (node, value), count in starts.items() if count > 0]
        offers += [
            (target, (keys[source][0] + weight, keys[source][1] + 1))
            for (source, target, weight), count in edges.items()
            if count > 0 and source in keys
        ]
        changed = False
        for node, key in offers:
            if node not in keys or key < keys[node]:
                keys[node], changed = key, True
    return keys
