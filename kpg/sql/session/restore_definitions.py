"""Carry out the definitions of a directory again: tables, views and indexes.

A definition that this version refuses, for example because a function is gone, leaves the others usable: the catalog
keeps the reason, warns once, and raises it when a statement names the definition.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Final

from kpg.errors import KpgError
from kpg.sql.catalog.database_catalog import BrokenDefinition
from kpg.sql.parse.statement_parser import parse_statements

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog
    from kpg.sql.catalog.definition_store import StoredDefinition


_CREATED: Final = re.compile(
    r"\s*create\s+(?:or\s+replace\s+|unique\s+)?(materialized\s+view|view|index|sequence|table)", re.IGNORECASE
)


def restore_definitions(catalog: DatabaseCatalog) -> None:
    """Create what the stored statements define.

    A view that was replaced may read names that were defined after it, so those that fail are tried again after others.
    """
    waiting = list(catalog.store.definitions.values())
    while waiting:
        failed = [definition for definition in waiting if not try_to_create(catalog, definition)]
        if len(failed) == len(waiting):
            break
        waiting = failed
    for name, broken in catalog.broken.items():
        warnings.warn(f"{broken.failure(name).what}: {broken.error.what}", stacklevel=2)


def try_to_create(catalog: DatabaseCatalog, definition: StoredDefinition) -> bool:
    """Carry out one definition; keep the reason and return False if it fails."""
    from kpg.sql.session.define_names import create

    catalog.broken.pop(definition.name, None)
    try:
        for statement in parse_statements(definition.text, definition.name):
            create(catalog, statement)
    except KpgError as error:
        catalog.broken[definition.name] = BrokenDefinition(kind_of_text(definition.text), error)
        return False
    return True


def kind_of_text(text: str) -> str:
    """Return what a CREATE statement creates, also if it does not parse any more."""
    words = _CREATED.match(text)
    return " ".join(words.group(1).lower().split()) if words else "table"
