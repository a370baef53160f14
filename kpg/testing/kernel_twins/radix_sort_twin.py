"""Twin of kpg.kernels.radix_sort."""

from __future__ import annotations


def radix_sort(words: list[int], low: int, high: int) -> list[int]:
    """Return the words sorted by their bits from `low` up to `high`; others keep their order."""
    return sorted(words, key=lambda word: (word >> low) & ((1 << (high - low)) - 1))
