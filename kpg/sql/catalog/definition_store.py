"""Definitions on disk: the texts of CREATE statements, as rows of a relation of the db.

    sql_definitions(number, name, text)     in the order in which the statements ran
    sql_identities(name, value)             the last number that each identity column and each sequence gave out

They are ordinary relations, so they are logged, checkpointed and recovered with the rows that they describe, by one
worker or several, and a definition and its rows are never out of step. The first definition creates them. A db that is
not durable has neither: the catalog in memory is enough.
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


def has_definitions(db: Database) -> bool:
    """Return whether the directory of a db had definitions when it was opened."""
    return DEFINITIONS in db.stored_relations


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
        self._written: dict[str, int] = {}  # the counters on disk
        self._unwritten: set[str] = set()  # names of counters that have changed
        if has_definitions(db) and db.sealed is not None:
            self._load()

    def _load(self) -> None:
        rows = sorted(StoredDefinition(*row) for row in self._stored_definitions().output().rows())
        self.definitions = {row.name: row for row in rows}
        if IDENTITIES in self._db.stored_relations:
            self.identities = dict(self._stored_identities().output().rows())
            self._written = dict(self.identities)

    def _stored_definitions(self) -> Input:
        return self._db.input(DEFINITIONS, _DEFINITIONS_SCHEMA, key="number", exist_ok=True)

    def _stored_identities(self) -> Input:
        return self._db.input(IDENTITIES, _IDENTITIES_SCHEMA, key="name", exist_ok=True)

    def add(self, name: str, text: str) -> None:
        """Add the definition of a name."""
        number = 1 + max((entry.number for entry in self.definitions.values()), default=0)
        self.definitions[name] = entry = StoredDefinition(number, name, text)
        if self.is_durable:
            self._stored_definitions().insert([entry])

    def remove(self, name: str) -> None:
        """Remove the definition of a name."""
        entry = self.definitions.pop(name)
        if self.is_durable:
            self._stored_definitions().remove([entry])

    def count_to(self, name: str, value: int) -> None:
        """Note the last number that an identity column or sequence gave out; the next write takes it to disk."""
        self.identities[name] = value
        self._unwritten.add(name)

    @property
    def has_unwritten_numbers(self) -> bool:
        """Whether numbers were given out that are not on disk."""
        return self.is_durable and bool(self._unwritten)

    def write_identities(self) -> None:
        """Write the counters that have changed."""
        if self.is_durable and self._unwritten:
            changed = {name: self.identities[name] for name in sorted(self._unwritten)}
            self._stored_identities().upsert(list(changed.items()))
            self._written |= changed
        self._unwritten.clear()

    def drop_identity(self, name: str) -> None:
        """Forget an identity column or sequence."""
        self.identities.pop(name, None)
        self._unwritten.discard(name)
        if name in self._written:
            self._stored_identities().remove([(name, self._written.pop(name))])
