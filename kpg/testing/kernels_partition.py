"""Twins of the kernels that divide rows among workers: plain Python, obviously right."""

from __future__ import annotations

from typing import Any

MASK = 2**64 - 1


def mix(value: int) -> int:
    """The finaliser of splitmix64."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def owner_of(key: tuple[int, ...], peers: int) -> int:
    """The worker that a key belongs to."""
    mixed = 0
    for part in key:
        mixed = mix(mixed ^ (part & MASK))
    return ((mixed >> 32) * peers) >> 32


def divide(rows: list[tuple[int, ...]], key_lanes: int, peers: int) -> list[list[tuple[int, ...]]]:
    """The rows of each worker, in their order."""
    parts: list[list[Any]] = [[] for _ in range(peers)]
    for row in rows:
        parts[owner_of(row[:key_lanes], peers)].append(row)
    return parts
