"""Bind the queries, data changes and single expressions of statements. This is what other packages call.

Parameters (`:name`, `$1` is "1") are values: an int, float, Decimal, bool, date, … is a constant of its type, a string
or None is a constant without a type, as a quoted literal is, and a list is an array.

A data change is bound as a query with the rows that it concerns. The caller runs it, and checks and writes the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from kpg.sql.catalog.entries import SqlCatalog, TableEntry
from kpg.sql.parse.sql_statements import DeleteStatement, InsertStatement, SyntaxTree, UpdateStatement
from kpg.sql.relational.relations import BoundRelation, Query
from kpg.sql.relational.scalars import Column, Scalar
from kpg.sql.sql_types import SqlType

Parameters: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """Columns that an expression may mention: by their names, or qualified by the name of their table."""

    table: str
    columns: tuple[Column, ...]


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
    `condition` is true. `target` is empty if the statement has none, and otherwise is the primary key in any order.
    """

    target: tuple[str, ...]
    existing: tuple[Column, ...]
    excluded: tuple[Column, ...]
    row: tuple[Scalar, ...] | None
    condition: Scalar


@dataclass(frozen=True, slots=True)
class BoundInsert:
    """INSERT. `rows` has a column for each column of the table, with its type; defaults are filled in.

    A column that its identity numbers has `None` in `given`, and `rows` has null for it: the caller numbers the rows.
    `returning` refers to the columns `written`: one for each column of the table, as it was written.
    """

    table: TableEntry
    rows: BoundRelation
    given: tuple[bool, ...]
    on_conflict: BoundConflict | None
    written: tuple[Column, ...]
    returning: BoundReturning | None


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


def bind_query(tree: SyntaxTree, catalog: SqlCatalog, parameters: Parameters | None = None) -> Query:
    """Bind a query. Views that are not installed are replaced by their text; installed ones are scanned.

    The order of the query is in `Query.order` and is not part of the relation, unless it has a limit.
    """
    raise NotImplementedError


def bind_scalar(
    tree: SyntaxTree,
    tables: Sequence[NamedColumns],
    catalog: SqlCatalog,
    parameters: Parameters | None = None,
    *,
    target: SqlType | None = None,
    clause: Literal["default", "check", "as of", "expression"] = "expression",
) -> Scalar:
    """Bind an expression over columns: a default, the condition of a check, an epoch.

    With `target`, the scalar is cast as an assignment to a column of that type is. `clause` says what is allowed:
    a default has no columns, and neither it nor a check has subqueries or aggregates.
    """
    raise NotImplementedError


def bind_insert(statement: InsertStatement, catalog: SqlCatalog, parameters: Parameters | None = None) -> BoundInsert:
    """Bind INSERT: its rows in the columns of the table, what a conflict does, and what it returns."""
    raise NotImplementedError


def bind_update(statement: UpdateStatement, catalog: SqlCatalog, parameters: Parameters | None = None) -> BoundUpdate:
    """Bind UPDATE: old and new rows of all matches, and what it returns."""
    raise NotImplementedError


def bind_delete(statement: DeleteStatement, catalog: SqlCatalog, parameters: Parameters | None = None) -> BoundDelete:
    """Bind DELETE: the rows to delete, and what it returns."""
    raise NotImplementedError
