"""Random relations, the same in every process and for every peer that is asked the same question.

Imports nothing but NumPy: Pathway's environment reads it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

Ints = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def repeated_keys(rows: int, distinct: int) -> Ints:
    """Random keys, each some times."""
    return np.random.default_rng(1).integers(0, distinct, rows)


def distinct_keys(rows: int) -> Ints:
    """The keys below a number, each once, in random order."""
    return np.random.default_rng(2).permutation(rows)


def digraph(nodes: int, edges: int) -> Ints:
    """Random edges, int64[edges, 2]: source and target."""
    return np.random.default_rng(3).integers(0, nodes, (edges, 2))


def keyed_rows(rows: int, keys: int, seed: int, first: int = 0) -> Ints:
    """Random keys with values that are all different, from `first` on, int64[rows, 2]."""
    random = np.random.default_rng(seed)
    return np.stack([random.integers(0, keys, rows), first + random.permutation(rows)], axis=1)


@dataclass(frozen=True)
class Churn:
    """Rounds of changes: rows to insert, and as many to remove that were there from the start."""

    inserts: Ints  # int64[rounds, half, ...]
    removals: Ints  # int64[rounds, half, ...]

    def __iter__(self) -> Iterator[tuple[Ints, Ints]]:
        return zip(self.inserts, self.removals, strict=True)

    def __len__(self) -> int:
        return len(self.inserts)

    @property
    def changes(self) -> int:
        """How many changes a round has."""
        return self.inserts.shape[1] + self.removals.shape[1]

    def part(self, start: int, stop: int) -> Churn:
        """Some of the rounds."""
        return Churn(self.inserts[start:stop], self.removals[start:stop])

    def applied(self, rows: Ints) -> tuple[Ints, Ints]:
        """What is there after all rounds, as rows to count +1 and rows to count -1."""
        added = self.inserts.reshape(-1, *self.inserts.shape[2:])
        return np.concatenate([rows, added]), self.removals.reshape(-1, *self.removals.shape[2:])


def churn(rows: Ints, fresh: Ints, rounds: int, changes: int, seed: int = 5) -> Churn:
    """Rounds that insert from `fresh` and remove from `rows`, no row twice."""
    half = max(1, changes // 2)
    gone = np.random.default_rng(seed).choice(len(rows), (rounds, half), replace=False)
    return Churn(fresh[: rounds * half].reshape(rounds, half, *fresh.shape[1:]), rows[gone])


def alternating(rows: Ints, fresh: Ints, rounds: int, seed: int = 6) -> Iterator[tuple[Ints, int]]:
    """Rounds of one change: a fresh row comes, an old one goes, in turn; with the diff."""
    gone = np.random.default_rng(seed).choice(len(rows), rounds, replace=False)
    for each in range(rounds):
        yield (fresh[each : each + 1], 1) if each % 2 == 0 else (rows[gone[each] : gone[each] + 1], -1)
