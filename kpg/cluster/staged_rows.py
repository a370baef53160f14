"""Rows that data connections have staged and the coordinator has not published yet, under a key.

    key  =  query, batch, partition, attempt   of a stream,   or   kind, number, partition, attempt   of a load

Staged rows are bounded in time. They are dropped when their batch is published or given up, when a later batch of the
same stream is published (Spark never goes back before a batch that it has committed), with the generation of workers,
or `KEPT_SECONDS` after the last addition. A publication counts its rows, so it fails, before anything is visible, if
some were dropped.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from kpg.cluster.request_frames import RowBlock
from kpg.columns.updates import Ints

Key = tuple[Any, ...]
KEPT_SECONDS = 3600.0  # longer than any attempt of a task that is still running pauses between two messages
MAX_SETTLED = 256  # prefixes of settled batches that are remembered, to drop rows of their late attempts


class StagedRows:
    """The staged rows of one rank in one generation."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._blocks: dict[Key, list[RowBlock]] = {}
        self._added_at: dict[Key, float] = {}  # the latest addition last
        self._settled: deque[Key] = deque(maxlen=MAX_SETTLED)

    def add(self, key: Key, blocks: list[RowBlock]) -> None:
        """Add rows of an attempt; rows of a settled batch are dropped."""
        self.expire()
        if not any(key[: len(prefix)] == prefix for prefix in self._settled):
            before = self._blocks.pop(key, [])
            self._added_at.pop(key, None)
            self._blocks[key] = before + blocks
            self._added_at[key] = self._clock()

    def take(self, key: Key) -> list[RowBlock]:
        """Remove the rows of an attempt and return them."""
        self._added_at.pop(key, None)
        return self._blocks.pop(key, [])

    def settle(self, prefix: Key) -> None:
        """End a batch: drop its rows, those that still arrive, and those of earlier batches of the same stream."""
        self.drop(prefix)
        self._settled.append(prefix)
        if len(prefix) == 2 and isinstance(prefix[1], int):
            stream, batch = prefix
            for key in [key for key in self._blocks if key[0] == stream and isinstance(key[1], int) and key[1] < batch]:
                self.take(key)

    def drop(self, prefix: Key) -> None:
        """Drop the rows under a prefix; more may be added."""
        for key in [key for key in self._blocks if key[: len(prefix)] == prefix]:
            self.take(key)

    def expire(self) -> None:
        """Drop rows to which nothing was added for `KEPT_SECONDS`."""
        while self._added_at:
            key, added_at = next(iter(self._added_at.items()))
            if added_at + KEPT_SECONDS > self._clock():
                return
            self.take(key)

    def __len__(self) -> int:
        return sum(len(block.updates) for blocks in self._blocks.values() for block in blocks)

    def symbols_in_use(self) -> Ints:
        """Return the symbols of all staged rows."""
        lanes = [
            block.updates.data[lane] for blocks in self._blocks.values() for block in blocks for lane in block.symbolic
        ]
        return np.unique(np.concatenate(lanes)) if lanes else np.empty(0, np.int64)
