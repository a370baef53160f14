"""Twins of kpg.kernels.code_chains, with a list of codes for each key."""

from __future__ import annotations

from kpg.testing.kernel_twins.code_sets_twin import insert_codes, move_columns


def link_codes(codes: list[int], value_bits: int) -> dict[int, list[int]]:
    """Return the links of each key, the last one first."""
    chains: dict[int, list[int]] = {}
    for link, code in enumerate(codes):
        chains.setdefault(code >> value_bits, []).insert(0, link)
    return chains


def expand_chains(keys: list[int], chains: dict[int, list[int]]) -> list[tuple[int, int]]:
    """Return the pairs of a row and a link of its key."""
    return [(i, link) for i, key in enumerate(keys) for link in chains.get(key, [])]


def insert_chain_sums(
    left: list[int],
    keys: list[int],
    codes: list[int],
    chains: dict[int, list[int]],
    moves: list[tuple[int, int]],
    bits: int,
    members: set[int],
) -> list[int]:
    """Insert the sums of rows and the moved columns of their links; return the new ones, in order."""
    pairs = expand_chains(keys, chains)
    return insert_codes([left[i] + move_columns(codes[link], moves, bits) for i, link in pairs], members)
