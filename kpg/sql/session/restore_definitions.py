"""Carry out the definitions of a directory again, in their order: tables, views and indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpg.sql.parse.statement_parser import parse_statements

if TYPE_CHECKING:
    from kpg.sql.catalog.database_catalog import DatabaseCatalog


def restore_definitions(catalog: DatabaseCatalog) -> None:
    """Create what the stored statements define. Their texts were accepted before, by this version or an earlier one."""
    from kpg.sql.session.define_names import create

    for definition in tuple(catalog.store.definitions.values()):
        for statement in parse_statements(definition.text, definition.name):
            create(catalog, statement)
