"""Twin of kpg.kernels.union_find."""

from __future__ import annotations


def connect(pairs: list[tuple[int, int]], nodes: int) -> list[int]:
    """Return the least node that pairs connect each node to, by passing labels on until none changes."""
    labels = list(range(nodes))
    while True:
        before = list(labels)
        for first, second in pairs:
            labels[first] = labels[second] = min(labels[first], labels[second])
        if labels == before:
            return labels
