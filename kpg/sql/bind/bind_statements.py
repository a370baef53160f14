"""Bind the queries, data changes and single expressions of statements. This is what other packages call.

Parameters (`:name`, `$1` is "1") are values: an int, float, Decimal, bool, date, … is a constant of its type, a string
or None is a constant without a type, as a quoted literal is, and a list is an array.

A data change is bound as a query with the rows that it concerns. The caller runs it, and checks and writes the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kpg.errors import ProgramError
from kpg.sql.bind.bind_changes import DeleteBinder, UpdateBinder
from kpg.sql.bind.bind_context import BindContext, Parameters, value_of
from kpg.sql.bind.bind_expressions import ExpressionBinder
from kpg.sql.bind.bind_inserts import InsertBinder
from kpg.sql.bind.bind_queries import bind_query_node
from kpg.sql.bind.bound_changes import BoundDelete, BoundInsert, BoundUpdate
from kpg.sql.bind.coercions import coerce, resolved
from kpg.sql.bind.common_tables import CommonTables
from kpg.sql.bind.name_scopes import NamedValue, NameScope, RangeTable
from kpg.sql.bind.typed_outputs import typed
from kpg.sql.catalog.entries import SqlCatalog
from kpg.sql.parse.sql_failures import bounded_depth, not_supported, sql_failure
from kpg.sql.parse.sql_statements import DeleteStatement, InsertStatement, SyntaxTree, UpdateStatement
from kpg.sql.relational.references import all_scalars, referenced_columns
from kpg.sql.relational.relations import Query
from kpg.sql.relational.scalars import SUBQUERIES, Column, Scalar
from kpg.sql.relational.verify_relations import verify_query, verify_relation
from kpg.sql.sql_types import SqlType

Clause: TypeAlias = Literal["default", "check", "as of", "expression"]
CLAUSE_NAMES: dict[Clause, str] = {
    "default": "DEFAULT expressions", "check": "check constraints", "as of": "AS OF", "expression": "expressions",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """Columns that an expression may mention: by their names, or qualified by the name of their table."""

    table: str
    columns: tuple[Column, ...]


def bind_query(
    tree: SyntaxTree, catalog: SqlCatalog, parameters: Parameters | None = None, *, standing: bool = True
) -> Query:
    """Bind a query. Views that are not installed are replaced by their text; installed ones are scanned.

    The order of the query is in `Query.order` and is not part of the relation, unless it has a limit. A `standing`
    query refuses functions whose value changes by itself, such as random() and now().
    """
    context = context_of(tree, catalog, parameters, standing)
    with bounded_depth(tree.span):
        query = typed(bind_query_node(tree.node, NameScope(None, CommonTables()), context)).query()
        verify_query(query)
    if not query.names:
        raise not_supported("a result without columns", tree.span)
    return query


def bind_scalar(
    tree: SyntaxTree,
    tables: Sequence[NamedColumns],
    catalog: SqlCatalog,
    parameters: Parameters | None = None,
    *,
    target: SqlType | None = None,
    clause: Clause = "expression",
) -> Scalar:
    """Bind an expression over columns: a default, the condition of a check, an epoch.

    With `target`, the scalar is cast as an assignment to a column of that type is. `clause` says what is allowed:
    a default has no columns, and neither it nor a check has subqueries or aggregates.
    """
    context = context_of(tree, catalog, parameters, standing=clause == "check")
    scope = NameScope(None, CommonTables(), clause=CLAUSE_NAMES[clause])
    for table in tables:
        columns = tuple(NamedValue(column.name, value_of(column)) for column in table.columns)
        scope.tables.append(RangeTable(table.table, columns))
        scope.visible += columns
        scope.owned |= set(table.columns)
    with bounded_depth(tree.span):
        bound = ExpressionBinder(scope, context).bind(tree.node)
    scalar = resolved(bound) if target is None else coerce(bound, target, "assignment", tree.span)
    check_clause(scalar, clause, tree)
    return scalar


def check_clause(scalar: Scalar, clause: Clause, tree: SyntaxTree) -> None:
    """Refuse what a clause may not have."""
    name = CLAUSE_NAMES[clause]
    if clause != "expression" and any(isinstance(part, SUBQUERIES) for part in all_scalars(scalar)):
        raise not_supported(f"a subquery in {name}", tree.span)
    if clause in ("default", "as of") and referenced_columns(scalar):
        raise sql_failure(ProgramError, f"cannot use column reference in {name}", tree.span, "0A000")


def bind_insert(statement: InsertStatement, catalog: SqlCatalog, parameters: Parameters | None = None) -> BoundInsert:
    """Bind INSERT: its rows in the columns of the table, what a conflict does, and what it returns."""
    with bounded_depth(statement.span):
        bound = InsertBinder(statement, context_of(statement, catalog, parameters, False)).bind()
        verify_relation(bound.rows)
    return bound


def bind_update(statement: UpdateStatement, catalog: SqlCatalog, parameters: Parameters | None = None) -> BoundUpdate:
    """Bind UPDATE: old and new rows of all matches, and what it returns."""
    with bounded_depth(statement.span):
        bound = UpdateBinder(statement, context_of(statement, catalog, parameters, False)).bind()
        verify_relation(bound.rows)
    return bound


def bind_delete(statement: DeleteStatement, catalog: SqlCatalog, parameters: Parameters | None = None) -> BoundDelete:
    """Bind DELETE: the rows to delete, and what it returns."""
    with bounded_depth(statement.span):
        bound = DeleteBinder(statement, context_of(statement, catalog, parameters, False)).bind()
        verify_relation(bound.rows)
    return bound


def context_of(
    part: SyntaxTree | InsertStatement | UpdateStatement | DeleteStatement,
    catalog: SqlCatalog,
    parameters: Parameters | None,
    standing: bool,
) -> BindContext:
    """Return the context of a statement or tree."""
    return BindContext(part.span.source, catalog, parameters or {}, bind_query_node, standing)


__all__ = [
    "BoundDelete", "BoundInsert", "BoundUpdate", "NamedColumns", "Parameters", "bind_delete", "bind_insert",
    "bind_query", "bind_scalar", "bind_update",
]  # fmt: skip
