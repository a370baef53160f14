"""Key routes: which of the dataflows that import an arrangement a small batch concerns.

    routes.targets(batch)  =  the routed importers that need a key of the batch; all of them if the batch is not small

A join of the arrangement with few rows needs only the batches that have a key of these rows, and a filter that compares
columns with constants only those that have the constants. The importer registers the lanes that it compares and the
keys that it needs there, and the publisher finds it by key instead of feeding all. Keys are never removed while the
importer stays: a batch that it does not need costs a step, no more.
Cost: for each set of lanes, a lookup for each row of a batch, regardless of the number of importers; for each
registered key, an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpg.columns.updates import Updates
from kpg.dataflow.operator import Operator
from kpg.trace.batch import Batch

MAX_ROUTED_KEYS = 64  # of an importer; one with more is fed every batch
MAX_ROUTED_ROWS = 64  # of a batch; a larger one concerns most importers, or is worth their steps
ROUTED_ROWS_PER_IMPORTER = 16  # of a batch that is larger still: as many lookups as one step costs
MAX_LOOKUPS = 1 << 14  # for one batch: beyond, Python would loop over its rows for milliseconds

Key = tuple[int, ...]
Lanes = tuple[int, ...]


class KeyRoutes:
    """The importers of one arrangement that need some keys only."""

    def __init__(self) -> None:
        self._importers: dict[Lanes, dict[Key, dict[Operator, None]]] = {}
        self._lanes: dict[Operator, Lanes] = {}
        self._keys: dict[Operator, set[Key]] = {}

    def __contains__(self, importer: Operator) -> bool:
        return importer in self._keys

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __iter__(self) -> Iterator[Operator]:
        return iter(self._keys)

    def add(self, importer: Operator, lanes: Lanes, keys: set[Key]) -> bool:
        """Register keys of an importer. Return False if it has too many: then it is not routed any more."""
        known = self._keys.setdefault(importer, set())
        assert self._lanes.setdefault(importer, lanes) == lanes, "an importer is routed by the same lanes for ever"
        if len(known) + len(keys) > MAX_ROUTED_KEYS and len(known | keys) > MAX_ROUTED_KEYS:
            self.remove(importer)
            return False
        by_key = self._importers.setdefault(lanes, {})
        for key in keys - known:
            by_key.setdefault(key, {})[importer] = None
        known |= keys
        return True

    def remove(self, importer: Operator) -> None:
        """Forget an importer."""
        lanes = self._lanes.pop(importer, ())
        by_key = self._importers.get(lanes, {})
        for key in self._keys.pop(importer, ()):
            readers = by_key[key]
            del readers[importer]
            if not readers:
                del by_key[key]
        if not by_key:
            self._importers.pop(lanes, None)

    def targets(self, batch: Batch) -> Iterable[Operator]:
        """Return the importers that a batch concerns."""
        rows = len(batch)
        if rows > MAX_ROUTED_ROWS and rows > min(ROUTED_ROWS_PER_IMPORTER * len(self._keys), MAX_LOOKUPS):
            return tuple(self._keys)
        targets: dict[Operator, None] = {}
        for lanes, by_key in self._importers.items():
            for key in keys_of(batch.updates, lanes):
                readers = by_key.get(key)
                if readers is not None:
                    targets |= readers
        return targets


def keys_of(updates: Updates, lanes: Lanes) -> set[Key]:
    """Return the distinct values of some lanes."""
    data = updates.data
    if data.shape[1] == 1:
        return {tuple([data.item(lane, 0) for lane in lanes])}
    return set(zip(*[data[lane].tolist() for lane in lanes], strict=True))
