"""Data changes, bound: queries for the rows that they concern, and scalars over these rows."""

from __future__ import annotations

from dataclasses import dataclass

from kpg.sql.catalog.entries import TableEntry
from kpg.sql.relational.relations import BoundRelation
from kpg.sql.relational.scalars import Column, Scalar, SortKey


@dataclass(frozen=True, slots=True)
class BoundReturning:
    """RETURNING: a name and a scalar for each column of the result."""

    names: tuple[str, ...]
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class BoundConflict:
    """ON CONFLICT: what becomes of a row whose key is present.

    `existing` and `excluded` have a column for each column of the table: the present row, and the one to insert. DO
    NOTHING has no `row`. DO UPDATE has a `row` with one scalar for each column of the table, over both, where
    `condition` is true. `target` is empty if the statement has none, and else has the columns of a key in any order.
    """

    target: tuple[str, ...]
    existing: tuple[Column, ...]
    excluded: tuple[Column, ...]
    row: tuple[Scalar, ...] | None
    condition: Scalar


@dataclass(frozen=True, slots=True)
class BoundInsert:
    """INSERT. `rows` has a column for each column of the table, with its type; defaults are filled in.

    Further columns serve `order`: rows are numbered in that order.

    `given` is False for a column that its identity numbers: `rows` has null for it, and the caller numbers the rows.
    `returning` refers to the columns `written`: one for each column of the table, as it was written.
    """

    table: TableEntry
    rows: BoundRelation
    given: tuple[bool, ...]
    on_conflict: BoundConflict | None
    written: tuple[Column, ...]
    returning: BoundReturning | None
    order: tuple[SortKey, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundUpdate:
    """UPDATE. `rows` has the columns `old`, then `new`, one for each column of the table, then those of RETURNING.

    There is a row for each match of a row of the table: several matches of one row are an error for the caller.
    `returning` has the names of its columns, which are the last ones of `rows`; None if there is no RETURNING.
    """

    table: TableEntry
    rows: BoundRelation
    old: tuple[Column, ...]
    new: tuple[Column, ...]
    returning: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class BoundDelete:
    """DELETE. `rows` has the columns `old`, one for each column of the table, then those of RETURNING.

    A row of the table that matches several rows of USING is there several times, and is deleted once.
    """

    table: TableEntry
    rows: BoundRelation
    old: tuple[Column, ...]
    returning: tuple[str, ...] | None
