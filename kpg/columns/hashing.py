"""Hashes that depend on values alone: the same in every process, on every machine, in every release.

    mix(lane)            the numbers with their bits scrambled; different numbers stay different
    hash_values(values)  strings and binary values: the sum of their 8-byte words, each mixed with its position, mixed
                         again with the length and the type of the value

Both use the one mixing function of kpg.kernels.key_hash, which loads no compiler. Cost: under a microsecond a value,
vectorised. Not safe against adversaries: with knowledge of the function it is easy to construct collisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kpg.columns.updates import Ints
from kpg.kernels.key_hash import mix64

_CHUNK_VALUES: Final = 65_536  # values hashed together, which bounds working memory
# Mixed into the hash, so that a string and the binary value of its bytes differ. Arbitrary, but they must never change.
_STRING: Final = np.uint64(0x2545F4914F6CDD1D)
_BINARY: Final = np.uint64(0x9FB21C651E98DF25)


def mix(lane: Ints) -> Ints:
    """Return the numbers with their bits scrambled; different numbers stay different."""
    return mix64(lane.view(np.uint64)).view(np.int64)


def hash_values(values: Sequence[str | bytes]) -> Ints:
    """Return the hash of each value; a string and the binary value of its UTF-8 bytes have different hashes."""
    hashes = [_hash_chunk(values[start : start + _CHUNK_VALUES]) for start in range(0, len(values), _CHUNK_VALUES)]
    return np.concatenate([np.empty(0, np.int64), *hashes])


def _hash_chunk(values: Sequence[str | bytes]) -> Ints:
    encoded = [value.encode() if isinstance(value, str) else value for value in values]
    kinds = np.where([isinstance(value, str) for value in values], _STRING, _BINARY)
    lengths = np.array(list(map(len, encoded)), np.int64)
    counts = lengths // 8 + 1  # one word more than the full ones, so that an empty value has a word too
    padded = b"".join([value.ljust(count, b"\0") for value, count in zip(encoded, (8 * counts).tolist(), strict=True)])
    starts = np.cumsum(counts) - counts
    positions = np.arange(int(counts.sum()), dtype=np.int64) - np.repeat(starts, counts)
    words = np.frombuffer(padded, "<u8") ^ mix64(positions.view(np.uint64))
    sums = np.add.reduceat(mix64(words), starts)
    return mix64(sums ^ kinds ^ mix64(lengths.view(np.uint64))).view(np.int64)
