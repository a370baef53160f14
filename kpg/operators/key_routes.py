"""Key routes: which of the dataflows that import an arrangement a small batch concerns.

    routes.targets(batch)  =  the routed importers that need a key of the batch; all of them if the batch is not small

A join of the arrangement with few rows needs only the batches that have a key of these rows. It registers the keys, and
the publisher finds the importer by key instead of feeding all. Keys are never removed while the importer stays: a batch
that it does not need costs a step, no more.
Cost: a lookup for each row of a batch, regardless of the number of importers; for each registered key, an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpg.columns.updates import Updates
from kpg.dataflow.operator import Operator
from kpg.trace.batch import Batch

MAX_ROUTED_KEYS = 64  # of an importer; one with more is fed every batch
MAX_ROUTED_ROWS = 64  # of a batch; a larger one concerns most importers, or is worth their steps

Key = tuple[int, ...]


class KeyRoutes:
    """The importers of one arrangement that need some keys only."""

    def __init__(self, key_lanes: int) -> None:
        self.key_lanes = key_lanes
        self._importers: dict[Key, dict[Operator, None]] = {}
        self._keys: dict[Operator, set[Key]] = {}

    def __contains__(self, importer: Operator) -> bool:
        return importer in self._keys

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __iter__(self) -> Iterator[Operator]:
        return iter(self._keys)

    def add(self, importer: Operator, keys: set[Key]) -> bool:
        """Register keys of an importer. Return False if it has too many: then it is not routed any more."""
        known = self._keys.setdefault(importer, set())
        if len(known) + len(keys) > MAX_ROUTED_KEYS and len(known | keys) > MAX_ROUTED_KEYS:
            self.remove(importer)
            return False
        for key in keys - known:
            self._importers.setdefault(key, {})[importer] = None
        known |= keys
        return True

    def remove(self, importer: Operator) -> None:
        """Forget an importer."""
        for key in self._keys.pop(importer, ()):
            readers = self._importers[key]
            del readers[importer]
            if not readers:
                del self._importers[key]

    def targets(self, batch: Batch) -> Iterable[Operator]:
        """Return the importers that a batch concerns."""
        if len(batch) > MAX_ROUTED_ROWS:
            return tuple(self._keys)
        keys = keys_of(batch.updates, self.key_lanes)
        if len(keys) == 1:
            return tuple(self._importers.get(keys.pop(), ()))
        return dict.fromkeys(importer for key in keys for importer in self._importers.get(key, ()))


def keys_of(updates: Updates, key_lanes: int) -> set[Key]:
    """Return the distinct keys of some updates."""
    return set(zip(*updates.data[:key_lanes].tolist(), strict=True))
