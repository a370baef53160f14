"""Definitions on disk: the texts of CREATE statements, as rows of a relation of the db.

    sql_definitions(number, name, text)     in the order in which the statements ran
    sql_identities(table, value)            the last number that each identity column gave out

They are ordinary relations, so they are logged, checkpointed and recovered with the rows that they describe, by one
worker or several, and a definition and its rows are never out of step. A db that is not durable has neither relation:
the catalog in memory is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kpg.columns.schema import INT64, STRING, Schema

if TYPE_CHECKING:
    from kpg.api.contracts import Database, Input

DEFINITIONS: Final = "sql_definitions"
IDENTITIES: Final = "sql_identities"
RESERVED: Final = frozenset({DEFINITIONS, IDENTITIES})
_DEFINITIONS_SCHEMA: Final = Schema(("number", "name", "text"), (INT64, STRING, STRING))
_IDENTITIES_SCHEMA: Final = Schema(("name", "value"), (STRING, INT64))


class StoredDefinition(NamedTuple):
    """The text that defines a name."""

    number: int
    name: str
    text: str


class DefinitionStore:
    """The definitions and identity counters of one db. Changes are pending until the caller advances."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.is_durable = db.is_durable
        self.definitions: dict[str, StoredDefinition] = {}
        self.identities: dict[str, int] = {}
        self._unwritten: set[str] = set()  # names of counters that have changed
        if self.is_durable:
            self._load()

    def _load(self) -> None:
        stored = self._input(DEFINITIONS, _DEFINITIONS_SCHEMA, "number")
        counters = self._input(IDENTITIES, _IDENTITIES_SCHEMA, "name")
        if self._db.sealed is None:
            return
        rows = sorted(StoredDefinition(*row) for row in stored.output().rows())
        self.definitions = {row.name: row for row in rows}
        self.identities = dict(counters.output().rows())

    def _input(self, name: str, schema: Schema, key: str) -> Input:
        return self._db.input(name, schema, key=key, exist_ok=True)

    def add(self, name: str, text: str) -> None:
        """Add the definition of a name."""
        number = 1 + max((entry.number for entry in self.definitions.values()), default=0)
        self.definitions[name] = entry = StoredDefinition(number, name, text)
        if self.is_durable:
            self._db.inputs[DEFINITIONS].insert([entry])

    def remove(self, name: str) -> None:
        """Remove the definition of a name."""
        entry = self.definitions.pop(name)
        if self.is_durable:
            self._db.inputs[DEFINITIONS].remove([entry])

    def count_to(self, name: str, value: int) -> None:
        """Note the last number that an identity column gave out; the next write takes it to disk."""
        self.identities[name] = value
        self._unwritten.add(name)

    def write_identities(self) -> None:
        """Write the counters that have changed."""
        if self.is_durable and self._unwritten:
            self._db.inputs[IDENTITIES].upsert([(name, self.identities[name]) for name in sorted(self._unwritten)])
        self._unwritten.clear()

    def drop_identity(self, name: str) -> None:
        """Forget an identity column."""
        value = self.identities.pop(name, None)
        self._unwritten.discard(name)
        if value is not None and self.is_durable:
            self._db.inputs[IDENTITIES].remove([(name, value)])
