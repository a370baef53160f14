"""Arrangements as people hold them: an index by key, shared by every query that uses it.

    by_src = edges.arrange("src")

An arrangement is a collection, so everything that works on collections works on it; joins and reductions by its key
read its index instead of making one. It can be read directly, as of a time: `lookup` for some keys, `scan` for all.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.api.collection import Collection
from kpg.api.group import Group
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.api.trace_reads import check_readable, to_table
from kpg.columns.consolidation import consolidate
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import Closed
from kpg.plan import nodes

if TYPE_CHECKING:
    from kpg.api.database import Database


class Arrangement(Collection):
    """A collection with an index by `keys`."""

    def __init__(self, db: Database, installed: InstalledArrangement, described: nodes.PlanNode) -> None:
        schema = described.schema
        super().__init__(db, nodes.InstalledNode(schema, frozenset(), installed))
        self.installed = installed
        self._key_schema = installed.schema.select(installed.keys)
        self._released = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that this is indexed by."""
        return self.installed.keys

    def lookup(self, *key: Any, as_of: Any = None) -> pa.Table:
        """The rows with a key, as of a time; the last complete one if not said."""
        return self.lookup_many([key], as_of=as_of)

    def lookup_many(self, keys: Any, as_of: Any = None) -> pa.Table:
        """The rows with any of some keys, as of a time."""
        self._check()
        data = encode(self._key_schema, keys, self.db.symbols)
        time = check_readable(self.db, self.installed, as_of)
        return to_table(self.db, self.installed, self.schema, time, wanted_keys(data))

    def scan(self, as_of: Any = None) -> pa.Table:
        """All rows, as of a time; the last complete one if not said."""
        self._check()
        time = check_readable(self.db, self.installed, as_of)
        return to_table(self.db, self.installed, self.schema, time, None)

    def group(self) -> Group:
        """The groups of rows with equal key."""
        return self.group_by(*self.keys)

    @property
    def rows(self) -> int:
        """How many updates the trace holds now."""
        return self.installed.handle.spine.rows

    @property
    def nbytes(self) -> int:
        """What the arrays of the trace hold now."""
        return self.installed.handle.spine.nbytes

    def release(self) -> None:
        """Let go: when no query uses it either, the index is freed. May be repeated."""
        if not self._released:
            self.db.check_thread()
            self._released = True
            self.installed.release()

    def _check(self) -> None:
        self.db.check()
        if self._released:
            raise Closed("the arrangement was released")

    def __enter__(self) -> Arrangement:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def wanted_keys(keys: Ints) -> Ints:
    """Keys as a trace is asked for them: sorted, each once."""
    if keys.shape[1] == 1:
        return np.ascontiguousarray(keys)
    return np.ascontiguousarray(consolidate(Updates(keys, constant((0,)), constant((1,)))).data)
