"""Hashes that depend on values alone: the same in every process, on every machine, in every release.

    mix(lane)            each number scrambled, no two alike (the finaliser of splitmix64)
    hash_values(values)  strings and binary values: the sum of their 8-byte words, each scrambled with its position,
                         scrambled again with length and type

Vectorised: under a microsecond a value. Not for adversaries: who knows the function can make values collide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kpg.columns.updates import Ints

_AT_ONCE: Final = 65_536  # values hashed together, so that working memory stays small
_STRING: Final = np.uint64(0x2545F4914F6CDD1D)
_BINARY: Final = np.uint64(0x9FB21C651E98DF25)


def mix(lane: Ints) -> Ints:
    """Each number scrambled, no two alike."""
    return _mix(lane.view(np.uint64)).view(np.int64)


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = z + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hash_values(values: Sequence[str | bytes]) -> Ints:
    """A hash of each value; a string and the binary value of its UTF-8 bytes have different ones."""
    parts = [_hash_some(values[start : start + _AT_ONCE]) for start in range(0, len(values), _AT_ONCE)]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _hash_some(values: Sequence[str | bytes]) -> Ints:
    encoded = [value.encode() if isinstance(value, str) else value for value in values]
    kinds = np.where([isinstance(value, str) for value in values], _STRING, _BINARY)
    lengths = np.array(list(map(len, encoded)), np.int64)
    counts = lengths // 8 + 1  # one word more than is full, so that each value has one
    padded = b"".join([value.ljust(count, b"\0") for value, count in zip(encoded, (8 * counts).tolist(), strict=True)])
    starts = np.cumsum(counts) - counts
    positions = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts, counts)
    words = np.frombuffer(padded, "<u8") ^ _mix(positions.view(np.uint64))
    sums = np.add.reduceat(_mix(words), starts)
    return _mix(sums ^ kinds ^ _mix(lengths.view(np.uint64))).view(np.int64)
