"""What a statement takes and returns, without carrying it out: the types of its parameters, and its columns.

    describe(session, statement, [INTEGER, None])  ->  StatementShape((INTEGER, TEXT), (ResultColumn("a", DATE),))

A parameter without a declared type gets the type of the first place that gives it one, text if none does. A statement
that names what does not exist is refused, as it would be when it is carried out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from kpg.errors import UndefinedName
from kpg.sql.bind.bind_statements import bind_delete, bind_insert, bind_query, bind_update
from kpg.sql.bind.parameter_values import TypedParameter
from kpg.sql.bind.tree_reading import find_nodes
from kpg.sql.functions.cast_rules import NUMERIC
from kpg.sql.functions.sql_literals import UntypedParameter, read_literal
from kpg.sql.parse import sql_statements as statements
from kpg.sql.relational.relations import Query
from kpg.sql.session import sql_errors
from kpg.sql.session.explain_sql import EXPLAIN_COLUMNS
from kpg.sql.session.query_result import ResultColumn
from kpg.sql.session.show_settings import show
from kpg.sql.session.sql_errors import sql_error
from kpg.sql.sql_types import TEXT, SqlType

if TYPE_CHECKING:
    from kpg.sql.session.sql_session import SqlSession


@dataclass(frozen=True, slots=True)
class StatementShape:
    """The types of parameters, and the columns of the result; None if the statement returns no rows."""

    parameters: tuple[SqlType, ...]
    columns: tuple[ResultColumn, ...] | None


def describe(
    session: SqlSession, statement: statements.SqlStatement, declared: Sequence[SqlType | None]
) -> StatementShape:
    """Return the shape of a statement. `declared` has the types of the first parameters, None where they are open."""
    count = max(len(declared), parameter_count(statement))
    known = [*declared, *[None] * (count - len(declared))]
    given: dict[str, Any] = {
        str(number): UntypedParameter() if type_ is None else TypedParameter(*read_literal(None, type_))
        for number, type_ in enumerate(known, 1)
    }
    columns = columns_of_statement(session, statement, given)
    types = tuple(type_ or noted_type(given[str(number)]) for number, type_ in enumerate(known, 1))
    return StatementShape(types, columns)


def noted_type(parameter: UntypedParameter) -> SqlType:
    """Return the type that the statement gave a parameter, without length and digits: its place checks these."""
    if parameter.type is None:
        return TEXT
    return NUMERIC if parameter.type.name == "numeric" else parameter.type.without_modifiers()


def parameter_count(statement: statements.SqlStatement) -> int:
    """Return the greatest number of a parameter that a statement mentions."""
    numbers = [0]
    for tree in trees_of(statement):
        for node in find_nodes(tree.node, exp.Placeholder):
            if str(node.this).isdigit():
                numbers.append(int(str(node.this)))
    if max(numbers) > 65_535:
        what = f"there is no parameter ${max(numbers)}"
        raise sql_error(UndefinedName, "42P02", what, hint="The protocol has 65,535 parameters.")
    return max(numbers)


def trees_of(value: Any) -> list[statements.SyntaxTree]:
    """Return all queries and expressions of a statement or of a part of it."""
    if isinstance(value, statements.SyntaxTree):
        return [value]
    if isinstance(value, tuple):
        return [tree for part in value for tree in trees_of(part)]
    names: Sequence[str] = getattr(type(value), "__dataclass_fields__", ()) and [*value.__dataclass_fields__]
    return [tree for name in names if name != "span" for tree in trees_of(getattr(value, name))]


def columns_of_statement(
    session: SqlSession, statement: statements.SqlStatement, given: Mapping[str, Any]
) -> tuple[ResultColumn, ...] | None:
    """Return the columns that a statement returns; None if it returns no rows."""
    catalog = session.catalog
    match statement:
        case statements.QueryStatement():
            return query_columns(bind_query(statement.query, catalog, given, standing=False))
        case statements.InsertStatement():
            returning = bind_insert(statement, catalog, given).returning
            if returning is None:
                return None
            pairs = zip(returning.names, returning.values, strict=True)
            return tuple(ResultColumn(name, value.type) for name, value in pairs)
        case statements.UpdateStatement():
            updated = bind_update(statement, catalog, given)
            return last_columns(updated.returning, updated.rows.columns)
        case statements.DeleteStatement():
            deleted = bind_delete(statement, catalog, given)
            return last_columns(deleted.returning, deleted.rows.columns)
        case statements.ShowStatement():
            return show(session, statement).columns
        case statements.ExplainStatement():
            return EXPLAIN_COLUMNS
        case statements.FetchStatement():
            return session.cursors.columns(str(statement.cursor))
        case statements.SubscribeStatement():
            hint = "DECLARE c CURSOR FOR SUBSCRIBE …, then FETCH."
            raise sql_error(UndefinedName, sql_errors.NOT_SUPPORTED, "SUBSCRIBE outside a cursor", hint=hint)
    return None


def query_columns(query: Query) -> tuple[ResultColumn, ...]:
    """Return the columns of a query; further ones of its relation serve the order only."""
    pairs = zip(query.names, query.relation.columns, strict=False)
    return tuple(ResultColumn(name, column.type) for name, column in pairs)


def last_columns(names: tuple[str, ...] | None, columns: Sequence[Any]) -> tuple[ResultColumn, ...] | None:
    """Return the columns of RETURNING, which are the last ones of the rows."""
    if names is None:
        return None
    types = [column.type for column in columns[len(columns) - len(names) :]]
    return tuple(ResultColumn(name, type_) for name, type_ in zip(names, types, strict=True))
