"""The contract of an arrangement: an installed index, shared by all queries that use it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import pyarrow as pa

from kpg.api.collection import Collection
from kpg.api.contracts.releasable import Releasable
from kpg.api.group import Group
from kpg.columns.rows import rows_of


class Arrangement(Collection, Releasable):
    """A collection with an index by `keys`."""

    label = "Arrangement"

    @property
    @abstractmethod
    def keys(self) -> tuple[str, ...]:
        """The columns of the index."""

    def lookup(self, *key: Any, as_of: Any = None) -> pa.Table:
        """Return the rows with a key, as of a time; by default the last complete one."""
        return self.lookup_many([key], as_of=as_of)

    def lookup_rows(self, *key: Any, as_of: Any = None) -> list[tuple[Any, ...]]:
        """Return the rows with a key as tuples, as of a time; faster than a table if they are few."""
        return rows_of(self.lookup(*key, as_of=as_of), self.schema)

    @abstractmethod
    def lookup_many(self, keys: Any, as_of: Any = None) -> pa.Table:
        """Return the rows with any of some keys, as of a time."""

    @abstractmethod
    def scan(self, as_of: Any = None) -> pa.Table:
        """Return all rows, as of a time; by default the last complete one."""

    def group(self) -> Group:
        """Return the groups of rows with equal key."""
        return self.group_by(*self.keys)

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of updates that its trace holds now."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The size of its trace's arrays in bytes."""

    @abstractmethod
    def release(self) -> None:
        """Give up this handle; the index is freed when no query uses it either. May be repeated."""
