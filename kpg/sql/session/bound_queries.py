"""Bound queries that are kept, since applications repeat their texts.

    bound_query(catalog, tree, parameters, standing=…)   ==   bind_query(tree, catalog, parameters, standing=…)

A query is kept under its text, its position in it, and its parameters with their types. It is used again while each
name that its binding asked for stands for an equal entry of the catalog, so other definitions do not matter. A query
that names a sequence is bound each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias
from weakref import WeakKeyDictionary

from kpg.sql.bind.bind_statements import Parameters, bind_query
from kpg.sql.catalog.entries import CatalogEntry, SequenceEntry, SqlCatalog
from kpg.sql.relational.relations import Query

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog
    from kpg.sql.parse.sql_statements import SyntaxTree

MAX_KEPT_QUERIES: Final = 128  # of one db; a large query takes some 100 kB
QueryKey: TypeAlias = tuple[str, str, int, int, bool, tuple[tuple[str, str, str], ...]]


@dataclass(frozen=True, slots=True)
class KeptQuery:
    """A bound query, and what each name that it asked for stood for."""

    query: Query
    entries: Mapping[str, CatalogEntry | None]

    def is_current(self, catalog: DatabaseCatalog) -> bool:
        """Return whether all names stand for the same."""
        return all(catalog.entry(name) == entry for name, entry in self.entries.items())


@dataclass(slots=True)
class RecordingCatalog:
    """A catalog that records what the binder asks for."""

    catalog: SqlCatalog
    entries: dict[str, CatalogEntry | None] = field(default_factory=dict)
    reads_sequence: bool = False

    def entry(self, name: str) -> CatalogEntry | None:
        """Return the entry of a name, None if there is none."""
        entry = self.entries[name] = self.catalog.entry(name)
        return entry

    def sequence(self, name: str) -> SequenceEntry | None:
        """Return a sequence, None if there is none of that name."""
        self.reads_sequence = True
        return self.catalog.sequence(name)

    def names(self) -> Iterable[str]:
        """Return all names, for hints about misspelled ones."""
        return self.catalog.names()


_kept: WeakKeyDictionary[DatabaseCatalog, OrderedDict[QueryKey, KeptQuery]] = WeakKeyDictionary()


def bound_query(
    catalog: DatabaseCatalog, tree: SyntaxTree, parameters: Parameters | None = None, *, standing: bool = True
) -> Query:
    """Return a bound query; one that was bound before, if nothing that it names has changed."""
    queries = _kept.setdefault(catalog, OrderedDict())
    key = key_of(tree, parameters or {}, standing)
    kept = queries.get(key)
    if kept is not None and kept.is_current(catalog):
        queries.move_to_end(key)
        return kept.query
    recording = RecordingCatalog(catalog)
    query = bind_query(tree, recording, parameters, standing=standing)
    if not recording.reads_sequence:
        queries[key] = KeptQuery(query, recording.entries)
        queries.move_to_end(key)
        if len(queries) > MAX_KEPT_QUERIES:
            queries.popitem(last=False)
    return query


def key_of(tree: SyntaxTree, parameters: Parameters, standing: bool) -> QueryKey:
    """Return what decides how a tree is bound, the catalog aside."""
    span = tree.span
    values = tuple((name, type(value).__name__, repr(value)) for name, value in parameters.items())
    return span.source.name, span.source.text, span.start, span.end, standing, values
