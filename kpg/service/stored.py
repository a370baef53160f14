"""What of a service is on disk beside the rows: declarations of relations, and the texts of rules.

With a db that is not durable all of this does nothing. Interests are of those who are there, so they are not stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kpg.service.relations import Declared, declared_from_json
from kpg.service.rules import Registered

if TYPE_CHECKING:
    from kpg.api.database import Database
    from kpg.storage.storage import Storage

RELATION = "relation "
RULES = "rules "


class StoredText(NamedTuple):
    """A text of rules as it was registered."""

    number: int
    language: str
    source: str
    name: str | None


class Stored:
    """The declarations of a service in the storage of its db."""

    def __init__(self, db: Database) -> None:
        self._storage: Storage | None = None if db.durable is None else db.durable.storage

    def relations(self) -> Iterator[Declared]:
        """The relations that were declared."""
        for name, value in self._found(RELATION):
            yield declared_from_json(name, value)

    def texts(self) -> list[StoredText]:
        """The texts that were registered, in that order."""
        return sorted(StoredText(int(number), **value) for number, value in self._found(RULES))

    def _found(self, sort: str) -> Iterator[tuple[str, Any]]:
        if self._storage is not None:
            for name, value in sorted(self._storage.declarations.items()):
                if name.startswith(sort):
                    yield name.removeprefix(sort), value

    def add_relation(self, declared: Declared) -> None:
        """A relation was declared."""
        if self._storage is not None:
            self._storage.register(RELATION + declared.name, declared.to_json())

    def add_text(self, text: Registered) -> None:
        """A text was registered."""
        if self._storage is not None:
            value = {"language": text.language, "source": text.source, "name": text.name}
            self._storage.register(f"{RULES}{text.number}", value)

    def remove_text(self, text: Registered) -> None:
        """A text was unregistered."""
        if self._storage is not None:
            self._storage.unregister(f"{RULES}{text.number}")
