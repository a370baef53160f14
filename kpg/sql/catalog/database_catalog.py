"""The catalog of one db: what each name stands for, what reads it, and how it was defined.

Tables and views that SQL created have entries with everything that their statements say. Relations that
Python, Datalog or Spark created have entries derived from their schemas, so SQL reads them too. The catalog belongs to
the db, not to a session. `version` grows with every change, so that cached plans know when they are stale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from kpg.errors import KpgError, ProgramError
from kpg.sql.catalog.definition_store import RESERVED, DefinitionStore
from kpg.sql.catalog.entries import CatalogEntry, SequenceEntry, TableColumn, TableEntry, ViewEntry
from kpg.sql.catalog.open_snapshots import OpenSnapshots
from kpg.sql.catalog.system_catalog import SystemCatalog
from kpg.sql.catalog.system_columns import is_system
from kpg.sql.catalog.table_turns import TableTurns
from kpg.sql.lower.engine_types import sql_type
from kpg.sql.sql_states import with_sqlstate

if TYPE_CHECKING:
    from kpg.api.contracts import Arrangement, Database, Output
    from kpg.columns.schema import Schema
    from kpg.sql.lower.join_choice import JoinChoice


@dataclass(slots=True)
class InstalledView:
    """A materialized view: its entry, the answer that the db maintains, and the names that it reads."""

    entry: ViewEntry
    arrangement: Arrangement
    output: Output
    reads: frozenset[str]
    joins: tuple[JoinChoice, ...] = ()  # how its joins were planned


@dataclass(slots=True)
class TableIndex:
    """An index: an arrangement of a table by some columns, kept while the index exists."""

    name: str
    table: str
    columns: tuple[str, ...]
    arrangement: Arrangement


@dataclass(frozen=True, slots=True)
class BrokenDefinition:
    """A definition on disk that this version of kpg refuses."""

    kind: str  # "table", "view", "materialized view", "index" or "sequence"
    error: KpgError

    def failure(self, name: str) -> ProgramError:
        """Return the error for a statement that names it."""
        text = str(self.error).replace("\n", "\n  ")
        return with_sqlstate(
            "55000",
            ProgramError(
                f"the {self.kind} {name} could not be restored from its definition",
                detail=text,
                hint=f"SHOW CREATE {self.kind.upper()} {name} shows it; DROP it, and create it again.",
            ),
        )


class ViewSubscription(Protocol):
    """A subscription that ends with the views that it reads."""

    names: frozenset[str]

    def end(self, name: str) -> None:
        """End the subscription, because a view was dropped."""


class DatabaseCatalog:
    """The names of one db."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.store = DefinitionStore(db)
        self.version = 0
        self.tables: dict[str, TableEntry] = {}
        self.views: dict[str, tuple[ViewEntry, frozenset[str]]] = {}  # descriptions, and the names that they read
        self.installed: dict[str, InstalledView] = {}
        self.indexes: dict[str, TableIndex] = {}
        self.sequences: dict[str, SequenceEntry] = {}
        self.keys: dict[tuple[str, tuple[str, ...]], Arrangement] = {}  # by table and the columns of a key
        self.subscriptions: WeakSet[ViewSubscription] = WeakSet()
        self.turns = TableTurns(db)
        self.snapshots = OpenSnapshots()
        self.planning: Callable[[], AbstractContextManager[None]] = nullcontext  # limits the time to plan in a block
        self.system = SystemCatalog(self)
        self.broken: dict[str, BrokenDefinition] = {}  # definitions on disk that could not be carried out again

    # What the binder asks

    def entry(self, name: str) -> CatalogEntry | None:
        """Return the entry of a name, None if there is none."""
        if name in self.tables:
            return self.tables[name]
        if name in self.views:
            return self.views[name][0]
        if name in self.installed:
            return self.installed[name].entry
        if name in RESERVED:
            return None
        if name in self.broken:
            raise self.broken[name].failure(name)
        source = self.db.inputs.get(name)
        if source is not None:
            if not is_system(name):
                return TableEntry(name, columns_of(source.schema), tuple(getattr(source, "key", ())))
        return self.system.entry(name)

    def sequence(self, name: str) -> SequenceEntry | None:
        """Return a sequence, None if there is none of that name."""
        if name in self.broken:
            raise self.broken[name].failure(name)
        return self.sequences.get(name)

    def names(self) -> Iterator[str]:
        """Return all names, for hints about misspelled ones."""
        yield from dict.fromkeys([*self.tables, *self.views, *self.relation_names()])

    def relation_names(self) -> Iterator[str]:
        """Return the names whose rows the db keeps or passes on: tables and installed views."""
        yield from self.installed
        yield from (name for name in self.db.inputs if self.is_table(name))

    def table_names(self) -> list[str]:
        """Return the names of all tables, those of Python and Datalog included, in order."""
        return sorted(name for name in self.db.inputs if self.is_table(name))

    def is_table(self, name: str) -> bool:
        """Return whether an input is a table for users, and not one of kpg's own."""
        return name not in RESERVED and " " not in name and not is_system(name)

    # What readers of entries need

    def relation(self, name: str) -> Any:
        """Return the collection that a scan of a name reads."""
        return self.installed[name].arrangement if name in self.installed else self.db.inputs[name]

    def key_index(self, table: str, key: tuple[str, ...]) -> Arrangement:
        """Return the arrangement of a table by its primary key or another; made when it is first needed."""
        if (table, key) not in self.keys:
            self.keys[table, key] = self.db.inputs[table].arrange(*key)
        return self.keys[table, key]

    def release_keys(self, table: str) -> None:
        """Release the arrangements of a table by its keys."""
        for name, key in [known for known in self.keys if known[0] == table]:
            self.keys.pop((name, key)).release()

    def readers_of(self, name: str) -> list[str]:
        """Return the views and indexes that depend on a name directly, in the order of their definition."""
        readers = [view for view, (_, reads) in self.views.items() if name in reads]
        readers += [view for view, installed in self.installed.items() if name in installed.reads]
        order = {defined: number for number, defined in enumerate(self.store.definitions)}
        return sorted(readers, key=lambda reader: order.get(reader, len(order)))

    def end_subscriptions(self, dropped: Iterable[str]) -> None:
        """End the subscriptions that read a view that was dropped."""
        for subscription in list(self.subscriptions):
            names = sorted(subscription.names.intersection(dropped))
            if names:
                subscription.end(names[0])

    def indexes_of(self, table: str) -> list[TableIndex]:
        """Return the indexes of a table."""
        return [index for index in self.indexes.values() if index.table == table]


def columns_of(schema: Schema) -> tuple[TableColumn, ...]:
    """Return the columns of a relation that SQL did not create."""
    pairs = zip(schema.names, schema.types, strict=True)
    return tuple(TableColumn(name, sql_type(type_), not_null=not type_.nullable) for name, type_ in pairs)


def catalog_of(db: Database) -> DatabaseCatalog:
    """Return the catalog of a db; the first call reads the definitions on disk and carries them out again."""
    catalog: DatabaseCatalog | None = db.__dict__.get("_sql_catalog")
    if catalog is None:
        from kpg.sql.session.restore_definitions import restore_definitions

        catalog = db.__dict__["_sql_catalog"] = DatabaseCatalog(db)
        restore_definitions(catalog)
    return catalog
