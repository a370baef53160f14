"""Twins of the kernels of growing sets: plain Python, obviously right."""

from __future__ import annotations


def add(codes: list[int], members: set[int]) -> list[int]:
    """The codes that are new, in order; they become members."""
    found = []
    for code in codes:
        if code not in members:
            members.add(code)
            found.append(code)
    return found


def extend(left: list[int], ranges: list[tuple[int, int]], right: list[int], members: set[int]) -> list[int]:
    """The sums that are new, in order; they become members."""
    sums = [base + right[j] for base, (low, high) in zip(left, ranges, strict=True) for j in range(low, high)]
    return add(sums, members)


def expand(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs of a row and a place of its range."""
    return [(i, j) for i, (low, high) in enumerate(ranges) for j in range(low, high)]


def move(code: int, pairs: list[tuple[int, int]], bits: int) -> int:
    """A code made of some columns of another: from bit to bit."""
    return sum(((code >> source) & ((1 << bits) - 1)) << target for source, target in pairs)
