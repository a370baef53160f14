"""Catalog entries: what a name in FROM stands for. Names are folded to lower case unless they were quoted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kpg.sql.sql_types import SqlType


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table. `default` is SQL text, bound when a row is written."""

    name: str
    type: SqlType
    not_null: bool = False
    default: str | None = None
    identity: str | None = None  # "always", "by default", or None


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A base table: a relation of the db. A relation that Python or Datalog created has an entry too."""

    name: str
    columns: tuple[TableColumn, ...]
    primary_key: tuple[str, ...] = ()
    checks: tuple[tuple[str, str], ...] = ()  # the name and the SQL text of each constraint
    retained: bool = True  # False: a stream whose rows are not kept
    uniques: tuple[tuple[str, ...], ...] = ()  # the columns of each UNIQUE constraint

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """The keys that writes are checked against: the primary key, and the columns of each UNIQUE constraint.

        A stream has none, since it has no rows to compare with. Its primary key is a promise.
        """
        keys = (*((self.primary_key,) if self.primary_key else ()), *self.uniques)
        return keys if self.retained else ()


@dataclass(frozen=True, slots=True)
class ReadOrder:
    """A column that reads of a view are ordered by."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view: a description if not `installed`, a maintained answer with arrangements if it is.

    `order` is that of an installed view, as far as it goes by columns of the view.
    """

    name: str
    columns: tuple[TableColumn, ...]
    text: str  # the query, as written
    installed: bool
    order: tuple[ReadOrder, ...] = ()


CatalogEntry: TypeAlias = TableEntry | ViewEntry


@dataclass(frozen=True, slots=True)
class SequenceEntry:
    """A sequence of numbers: from `start` by `increment`, within bounds; at its end it fails, or begins again."""

    name: str
    start: int
    increment: int
    least: int
    greatest: int
    cycles: bool = False


class SqlCatalog(Protocol):
    """What the binder asks of a catalog."""

    def entry(self, name: str) -> CatalogEntry | None:
        """Return the entry of a name, None if there is none."""
        ...

    def names(self) -> Iterable[str]:
        """Return all names, for hints about misspelled ones."""
        ...

    def sequence(self, name: str) -> SequenceEntry | None:
        """Return a sequence, None if there is none of that name."""
        ...
