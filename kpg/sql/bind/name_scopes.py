"""Scopes: what names mean inside one query, and in the queries around it.

A scope has the tables of one FROM clause. A name is looked up in the innermost scope first; one that is found further
out makes the query correlated. An unqualified name that two tables have is ambiguous (42702), unless a join by USING
or NATURAL has merged both columns into one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kpg.errors import ProgramError, UndefinedName
from kpg.query.source_text import did_you_mean
from kpg.sql.bind.aggregate_calls import AggregateCollector
from kpg.sql.bind.common_tables import CommonTables
from kpg.sql.catalog.entries import TableEntry
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import not_supported, sql_failure
from kpg.sql.relational.scalars import Column, Scalar


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A name and what it stands for: a column, or the merged column of a full join."""

    name: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class RangeTable:
    """A table of FROM, by its alias. `entry` is its base table, if it is one."""

    name: str
    columns: tuple[NamedValue, ...]
    entry: TableEntry | None = None


@dataclass
class NameScope:
    """The names of one query level.

    `clause` is the clause that is being bound, for messages; `collector` receives aggregates where the clause may
    have them. A scope of `lateral` items is that of the items to the left in the same FROM.
    """

    parent: NameScope | None
    ctes: CommonTables
    tables: list[RangeTable] = field(default_factory=list)
    visible: list[NamedValue] = field(default_factory=list)
    owned: set[Column] = field(default_factory=set)
    clause: str = "SELECT"
    collector: AggregateCollector | None = None
    in_aggregate: bool = False
    lateral: bool = False

    def chain(self) -> Iterator[NameScope]:
        """Yield this scope and those around it, from the inside out."""
        scope: NameScope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def owner(self, column: Column) -> NameScope | None:
        """Return the scope that a column belongs to."""
        return next((scope for scope in self.chain() if column in scope.owned), None)

    # --- lookups

    def unqualified(self, name: str, span: Span | None) -> Scalar:
        """Return what a name without a table stands for."""
        known = self.unqualified_or_none(name, span)
        if known is not None:
            return known
        if any(table.name == name for scope in self.chain() for table in scope.tables):
            raise not_supported("a whole row as a value", span, hint=f"Name its columns, or write {name}.*")
        names = [value.name for scope in self.chain() for value in scope.visible]
        what = f'column "{name}" does not exist'
        raise sql_failure(UndefinedName, what, span, "42703", hint=did_you_mean(name, names))

    def unqualified_or_none(self, name: str, span: Span | None) -> Scalar | None:
        """Return what a name without a table stands for, None if no scope has it."""
        for scope in self.chain():
            value = scope.here(name, span)
            if value is not None:
                return value
        return None

    def here(self, name: str, span: Span | None) -> Scalar | None:
        """Return what a name stands for in this scope alone."""
        values = [value.value for value in self.visible if value.name == name]
        if len(values) > 1:
            tables = [table.name for table in self.tables if any(value.name == name for value in table.columns)]
            hint = f"Write {' or '.join(f'{table}.{name}' for table in tables)}." if tables else None
            raise sql_failure(ProgramError, f'column reference "{name}" is ambiguous', span, "42702", hint=hint)
        return values[0] if values else None

    def table(self, name: str, span: Span | None) -> RangeTable:
        """Return the table of FROM with a name."""
        for scope in self.chain():
            for table in scope.tables:
                if table.name == name:
                    return table
        names = [table.name for scope in self.chain() for table in scope.tables]
        what = f'missing FROM-clause entry for table "{name}"'
        raise sql_failure(UndefinedName, what, span, "42P01", hint=did_you_mean(name, names))

    def qualified(self, table_name: str, name: str, span: Span | None) -> Scalar:
        """Return what a name with a table stands for."""
        table = self.table(table_name, span)
        values = [value.value for value in table.columns if value.name == name]
        if len(values) > 1:
            raise sql_failure(ProgramError, f'column reference "{name}" is ambiguous', span, "42702")
        if not values:
            hint = did_you_mean(name, [value.name for value in table.columns])
            raise sql_failure(UndefinedName, f"column {table_name}.{name} does not exist", span, "42703", hint=hint)
        return values[0]


def refuse_duplicate_tables(tables: Sequence[RangeTable], span: Span | None) -> None:
    """Raise an error if two tables of one FROM have the same name."""
    names = [table.name for table in tables]
    for name in names:
        if names.count(name) > 1:
            what = f'table name "{name}" specified more than once'
            raise sql_failure(ProgramError, what, span, "42712", hint=f"Give one of them an alias: {name} AS {name}2.")
