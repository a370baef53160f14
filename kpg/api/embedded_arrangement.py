"""The arrangements of a db in this process: an index by key, shared by every query that uses it.

    by_src = edges.arrange("src")

An arrangement is a collection, so everything that works on collections works on it. Joins and reductions by its key
read its index instead of building one. `lookup` and `scan` read it directly, as of a time; a lookup costs the rows
that it finds and a search of each batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpg.api.contracts import Arrangement
from kpg.api.installed_arrangement import InstalledArrangement
from kpg.api.trace_reads import check_readable, to_table, to_tuples
from kpg.columns.consolidation import consolidate
from kpg.columns.table_rows import encode
from kpg.columns.updates import Ints, Updates, constant
from kpg.errors import Closed
from kpg.plan.nodes import InstalledNode, PlanNode

if TYPE_CHECKING:
    from kpg.api.embedded_database import EmbeddedDatabase


class EmbeddedArrangement(Arrangement):
    """A handle to an installed arrangement."""

    db: EmbeddedDatabase

    def __init__(self, db: EmbeddedDatabase, installed: InstalledArrangement, described: PlanNode) -> None:
        super().__init__(db, InstalledNode(described.schema, frozenset(), installed))
        self.installed = installed
        self._key_schema = installed.schema.select(installed.keys)
        self._released = False

    @property
    def keys(self) -> tuple[str, ...]:
        return self.installed.keys

    def lookup_many(self, keys: Any, as_of: Any = None) -> pa.Table:
        self._check()
        data = encode(self._key_schema, keys, self.db.symbols)
        time = check_readable(self.db, self.installed, as_of)
        with self.db.in_turns():
            return to_table(self.db, self.installed, self.schema, time, wanted_keys(data))

    def lookup_rows(self, *key: Any, as_of: Any = None) -> list[tuple[Any, ...]]:
        self._check()
        keys = encode(self._key_schema, [key], self.db.symbols)
        time = check_readable(self.db, self.installed, as_of)
        return to_tuples(self.db, self.installed, self.schema, time, wanted_keys(keys))

    def scan(self, as_of: Any = None) -> pa.Table:
        self._check()
        time = check_readable(self.db, self.installed, as_of)
        with self.db.in_turns():
            return to_table(self.db, self.installed, self.schema, time, None)

    @property
    def rows(self) -> int:
        return self.installed.handle.spine.rows

    @property
    def nbytes(self) -> int:
        return self.installed.handle.spine.nbytes

    def release(self) -> None:
        if not self._released:
            self.db.check_thread()
            self._released = True
            self.installed.release()

    def _check(self) -> None:
        self.db.check()
        if self._released:
            raise Closed("the arrangement was released")


def wanted_keys(keys: Ints) -> Ints:
    """Return keys as a trace expects them: sorted, each once."""
    if keys.shape[1] == 1:
        return np.ascontiguousarray(keys)
    return np.ascontiguousarray(consolidate(Updates(keys, constant((0,)), constant((1,)))).data)
