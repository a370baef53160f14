"""Rows that guests have brought and nobody has published yet, under a key that names who brought them.

    key  =  query, batch, partition, attempt   of a stream,   or   kind, number, partition, attempt   of a load

What is staged is bounded in time: it goes when its batch is published or given up, when a later batch of the same
stream is published (Spark never goes back before one that it has committed), with the generation of workers, or when
nothing has been added to it for `KEPT_SECONDS`. Whoever publishes what is gone is told so by its count of rows, before
anything is visible.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from kpg.cluster.message import Rows
from kpg.columns.updates import Ints

Key = tuple[Any, ...]
KEPT_SECONDS = 3600.0
SETTLED = 256  # batches whose late attempts are turned away


class StagedRows:
    """What waits on one rank; it ends with the generation, which attempts name."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rows: dict[Key, list[Rows]] = {}  # those touched last come last
        self._touched: dict[Key, float] = {}
        self._done: deque[Key] = deque(maxlen=SETTLED)  # beginnings of keys: who comes later is late

    def add(self, key: Key, rows: list[Rows]) -> None:
        """Keep more rows of an attempt."""
        self.expire()
        if not any(key[: len(done)] == done for done in self._done):
            before = self._rows.pop(key, [])
            self._touched.pop(key, None)
            self._rows[key] = before + rows
            self._touched[key] = self._clock()

    def take(self, key: Key) -> list[Rows]:
        """The rows of an attempt, which wait no more."""
        self._touched.pop(key, None)
        return self._rows.pop(key, [])

    def settle(self, prefix: Key) -> None:
        """Nothing under this beginning will be published again: what is there, and what still comes, is dropped; so is
        what earlier batches of the same stream have left."""
        self.drop(prefix)
        self._done.append(prefix)
        if len(prefix) == 2 and isinstance(prefix[1], int):
            stream, batch = prefix
            for key in [key for key in self._rows if key[0] == stream and isinstance(key[1], int) and key[1] < batch]:
                self.take(key)

    def drop(self, prefix: Key) -> None:
        """Forget what is under this beginning; more may come."""
        for key in [key for key in self._rows if key[: len(prefix)] == prefix]:
            self.take(key)

    def expire(self) -> None:
        """Forget what nobody has added to for too long."""
        while self._touched:
            key, at = next(iter(self._touched.items()))
            if at + KEPT_SECONDS > self._clock():
                return
            self.take(key)

    def __len__(self) -> int:
        return sum(len(rows.updates) for staged in self._rows.values() for rows in staged)

    def symbols_in_use(self) -> Ints:
        """The texts of all rows that wait."""
        lanes = [rows.updates.data[lane] for staged in self._rows.values() for rows in staged for lane in rows.symbolic]
        return np.unique(np.concatenate(lanes)) if lanes else np.empty(0, np.int64)
