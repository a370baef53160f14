"""Twins of kpg.kernels.key_hash and kpg.kernels.partition_rows, in Python's unbounded integers."""

from __future__ import annotations

from typing import Any

WORD_MASK = 2**64 - 1


def mix64(value: int) -> int:
    """Return the word with its bits scrambled (the finaliser of splitmix64)."""
    value = (value + 0x9E3779B97F4A7C15) & WORD_MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & WORD_MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & WORD_MASK
    return value ^ (value >> 31)


def worker_of_hash(hashed: int, workers: int) -> int:
    """Return the worker that owns a key with this hash."""
    return ((hashed >> 32) * workers) >> 32


def owner_of_key(key: tuple[int, ...], workers: int) -> int:
    """Return the worker that owns a key."""
    hashed = 0
    for value in key:
        hashed = mix64(hashed ^ (value & WORD_MASK))
    return worker_of_hash(hashed, workers)


def partition_rows(rows: list[tuple[int, ...]], key_lanes: int, workers: int) -> list[list[tuple[int, ...]]]:
    """Return the rows of each worker, in their order."""
    parts: list[list[Any]] = [[] for _ in range(workers)]
    for row in rows:
        parts[owner_of_key(row[:key_lanes], workers)].append(row)
    return parts
