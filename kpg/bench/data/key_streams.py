"""Random relations of keys and the rounds of changes that engine experiments apply to them.

The same arguments give the same rows in every process, so a peer receives the same rows as kpg.

Dense keys are the integers below some bound. kpg recognises them: a sort by counting, a lookup by table. `wide` maps
them to random 62-bit keys, which no such shortcut fits. Cost: linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kpg.bench.data.graphs import Ints

WIDE_BITS = 62


def repeated_keys(rows: int, distinct: int) -> Ints:
    """Return random keys below `distinct`, with repetitions."""
    return np.random.default_rng(1).integers(0, distinct, rows)


def distinct_keys(rows: int) -> Ints:
    """Return the keys below `rows`, each once, in random order."""
    return np.random.default_rng(2).permutation(rows)


def keyed_rows(rows: int, keys: int, seed: int, first: int = 0) -> Ints:
    """Return random keys below `keys` with distinct values from `first` on, int64[rows, 2]."""
    random = np.random.default_rng(seed)
    return np.stack([random.integers(0, keys, rows), first + random.permutation(rows)], axis=1)


def wide_names(keys: int) -> Ints:
    """Return a distinct random 62-bit number for each dense key below `keys`."""
    random = np.random.default_rng(9)
    names = np.unique(random.integers(0, 1 << WIDE_BITS, keys))
    while len(names) < keys:
        more = random.integers(0, 1 << WIDE_BITS, keys - len(names))
        names = np.unique(np.concatenate([names, more]))
    return random.permutation(names)


def wide(rows: Ints, names: Ints) -> Ints:
    """Return rows with each dense key replaced by its 62-bit number; the key is the first column, or the only one."""
    if rows.ndim == 1:
        return names[rows]
    return np.concatenate([names[rows[..., :1]], rows[..., 1:]], axis=-1)


class DenseKeys:
    """The dense keys of 62-bit numbers. The numbers are sorted once."""

    def __init__(self, names: Ints) -> None:
        self._order = np.argsort(names)
        self._sorted = names[self._order]

    def of(self, keys: Ints) -> Ints:
        """Return the dense key of each 62-bit number."""
        return self._order[np.searchsorted(self._sorted, keys)]


@dataclass(frozen=True)
class Churn:
    """Rounds of changes: rows to insert, and as many of the original rows to remove."""

    inserts: Ints  # int64[rounds, half, ...]
    removals: Ints  # int64[rounds, half, ...]

    def __iter__(self) -> Iterator[tuple[Ints, Ints]]:
        return zip(self.inserts, self.removals, strict=True)

    def __len__(self) -> int:
        return len(self.inserts)

    @property
    def changes(self) -> int:
        """The number of changes in a round."""
        return self.inserts.shape[1] + self.removals.shape[1]

    def part(self, start: int, stop: int) -> Churn:
        """Return the rounds from `start` to before `stop`."""
        return Churn(self.inserts[start:stop], self.removals[start:stop])

    def wide(self, names: Ints) -> Churn:
        """Return the same rounds with 62-bit keys."""
        if self.inserts.ndim == 2:
            return Churn(names[self.inserts], names[self.removals])
        return Churn(wide(self.inserts, names), wide(self.removals, names))

    def applied(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the rows after all rounds, as rows to count +1 and rows to count -1."""
        added = self.inserts.reshape(-1, *self.inserts.shape[2:])
        return np.concatenate([rows, added]), self.removals.reshape(-1, *self.removals.shape[2:])


def churn(rows: Ints, fresh: Ints, rounds: int, changes: int, seed: int = 5) -> Churn:
    """Return rounds that insert from `fresh` and remove from `rows`, no row twice."""
    half = max(1, changes // 2)
    removed = np.random.default_rng(seed).choice(len(rows), (rounds, half), replace=False)
    return Churn(fresh[: rounds * half].reshape(rounds, half, *fresh.shape[1:]), rows[removed])


def alternating(rows: Ints, fresh: Ints, rounds: int, seed: int = 6) -> Iterator[tuple[Ints, int]]:
    """Yield rounds of one change with its diff: the insertion of a fresh row and the removal of an old one, in turn."""
    removed = np.random.default_rng(seed).choice(len(rows), rounds, replace=False)
    for index in range(rounds):
        if index % 2 == 0:
            yield fresh[index : index + 1], 1
        else:
            yield rows[removed[index] : removed[index] + 1], -1
