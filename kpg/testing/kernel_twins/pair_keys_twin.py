"""Twin of kpg.kernels.pair_keys: the least keys of each group by itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from kpg.testing.kernel_twins.least_keys_twin import Key, least_keys


def pair_keys(
    starts: Mapping[tuple[Hashable, int, int], int], edges: Mapping[tuple[int, int, int], int]
) -> dict[tuple[Hashable, int], Key]:
    """Return the least key of each pair. Starts are (group, node, value), edges as in `least_keys`, with counts."""
    keys: dict[tuple[Hashable, int], Key] = {}
    for group in {group for group, _, _ in starts}:
        own = {(node, value): count for (of, node, value), count in starts.items() if of == group}
        keys |= {(group, node): key for node, key in least_keys(own, edges).items()}
    return keys
