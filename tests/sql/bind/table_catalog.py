"""A catalog for tests of the binder: tables by their CREATE TABLE statements, views by their queries."""

from __future__ import annotations

from collections.abc import Iterable

from kpg.sql.bind.bind_statements import bind_query
from kpg.sql.catalog.entries import CatalogEntry, TableColumn, TableEntry, ViewEntry
from kpg.sql.parse.statement_parser import parse_query, parse_statements
from kpg.sql.relational.relations import Query
from kpg.sql.relational.show_relations import show_query


class TableCatalog:
    """Entries by name."""

    def __init__(self, *statements: str) -> None:
        self.entries: dict[str, CatalogEntry] = {}
        for statement in statements:
            self.create(statement)

    def entry(self, name: str) -> CatalogEntry | None:
        return self.entries.get(name)

    def sequence(self, name: str) -> None:
        return None

    def names(self) -> Iterable[str]:
        return self.entries

    def create(self, text: str) -> None:
        """Add a table or view."""
        (statement,) = parse_statements(text)
        name = statement.name.text
        if hasattr(statement, "query"):
            query = self.bind(statement.query.text)
            names = [column.text for column in statement.columns] or query.names
            columns = tuple(TableColumn(n, c.type) for n, c in zip(names, query.relation.columns, strict=True))
            self.entries[name] = ViewEntry(name, columns, statement.query.text, statement.materialized)
            return
        columns = tuple(
            TableColumn(c.name.text, c.type, c.not_null, c.default and c.default.text, c.identity)
            for c in statement.columns
        )
        self.entries[name] = TableEntry(name, columns, tuple(key.text for key in statement.primary_key))

    def bind(self, text: str, **parameters: object) -> Query:
        """Bind a query."""
        return bind_query(parse_query(text), self, parameters)

    def show(self, text: str, **parameters: object) -> str:
        """Bind a query and return it as text, without the line of its names."""
        lines = show_query(self.bind(text, **parameters)).splitlines()[1:]
        return "\n".join(line.removeprefix("  ") for line in lines)
