"""pg_catalog and information_schema: relations of the db that describe it, made when a statement first names them.

    system.entry("pg_catalog.pg_class")     the entry of a relation, whose rows are those of the catalog now

They are ordinary relations, so queries, joins and subscriptions read them as others. Each is created by the first
statement that names it, and is not on disk. When definitions have changed, the next statement that names it writes the
difference as an epoch of its own. OIDs of tables, views and indexes are given out in the order in which they are first
described, and are not kept between two runs.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Final

from kpg.columns.schema import Schema
from kpg.query.lower.unit_input import UNIT_INPUT
from kpg.sql.catalog.entries import TableEntry
from kpg.sql.catalog.system_columns import columns_of_system
from kpg.sql.catalog.system_rows import SystemRows
from kpg.sql.lower.engine_types import engine_type

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog

FIRST_OID: Final = 16_384  # PostgreSQL gives lower ones to its own objects


class SystemCatalog:
    """The relations that describe one db."""

    def __init__(self, catalog: DatabaseCatalog) -> None:
        self._catalog = catalog
        self._oids: dict[Hashable, int] = {}
        self._rows: dict[str, set[tuple[Any, ...]]] = {}  # what each relation has
        self._versions: dict[str, Hashable] = {}  # the version of the catalog that each describes

    def oid(self, *key: Hashable) -> int:
        """Return the OID of something, always the same one."""
        return self._oids.setdefault(key, FIRST_OID + len(self._oids))

    def entry(self, name: str) -> TableEntry | None:
        """Return the entry of a relation; None if there is none. `pg_catalog` may be left out."""
        columns = columns_of_system(name)
        if columns is None:
            name = f"pg_catalog.{name}"
            columns = columns_of_system(name)
        if columns is None:
            return None
        entry = TableEntry(name, columns)
        self._update(entry)
        return entry

    def _update(self, entry: TableEntry) -> None:
        """Write the difference between what a relation has and what the catalog is."""
        db = self._catalog.db
        version = (self._catalog.version, *sorted(name for name in db.inputs if self._catalog.is_table(name)))
        if self._versions.get(entry.name) == version or any(name != UNIT_INPUT for name in db.pending):
            return  # rows that Python inserted are pending: the statement is refused, and must not make them an epoch
        names = tuple(column.name for column in entry.columns)
        source = db.inputs.get(entry.name)
        if source is None:
            schema = Schema(names, tuple(engine_type(column.type) for column in entry.columns))
            source = db.input(entry.name, schema, keep_on_disk=False)
        wanted = SystemRows(self._catalog, self).rows(entry)
        present = self._rows.get(entry.name, set())
        if wanted - present:
            source.insert(list(wanted - present))
        if present - wanted:
            source.remove(list(present - wanted))
        self._rows[entry.name] = wanted
        self._versions[entry.name] = version
        if wanted != present or db.sealed is None:
            db.advance(wait=not db.answers_lag)
