"""Twins of kpg.kernels.code_sets, with Python's sets."""

from __future__ import annotations


def insert_codes(codes: list[int], members: set[int]) -> list[int]:
    """Insert the codes; return the new ones, in order."""
    new = []
    for code in codes:
        if code not in members:
            members.add(code)
            new.append(code)
    return new


def insert_slots(slots: list[int], members: set[int]) -> None:
    """Insert the codes of all slots that are not free."""
    members.update(code for code in slots if code >= 0)


def insert_sums(left: list[int], ranges: list[tuple[int, int]], right: list[int], members: set[int]) -> list[int]:
    """Insert left[i] + right[j] for each j in the range of i; return the new sums, in order."""
    sums = [base + right[j] for base, (low, high) in zip(left, ranges, strict=True) for j in range(low, high)]
    return insert_codes(sums, members)


def expand_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs of a row and a position of its range."""
    return [(i, j) for i, (low, high) in enumerate(ranges) for j in range(low, high)]


def move_columns(code: int, pairs: list[tuple[int, int]], bits: int) -> int:
    """Return a code of some columns of another, each moved from one bit position to another."""
    return sum(((code >> source) & ((1 << bits) - 1)) << target for source, target in pairs)


def table_members(slots: list[int]) -> list[int]:
    """Return the codes of all slots that are not free."""
    return [code for code in slots if code >= 0]


def read_ranges(keys: list[int], starts: list[int]) -> list[tuple[int, int]]:
    """Return the start and the end of each key."""
    return [(starts[key], starts[key + 1]) for key in keys]
