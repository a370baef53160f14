"""Bind UPDATE and DELETE, and what INSERT shares with them.

Values are cast to the types of their columns as assignments are. A column without a value gets its default; DEFAULT
stands for it as well. The number of an identity column is left to the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from kpg.errors import ProgramError, TypeMismatch, UndefinedName
from kpg.query.source_text import SourceText, did_you_mean
from kpg.sql.bind.bind_context import BindContext, BoundSelect, value_of
from kpg.sql.bind.bind_expressions import ExpressionBinder
from kpg.sql.bind.bind_from import FromBinder
from kpg.sql.bind.bind_joins import FromItem, joined_items
from kpg.sql.bind.bind_with import WithBinder
from kpg.sql.bind.bound_changes import BoundDelete, BoundReturning, BoundUpdate
from kpg.sql.bind.coercions import coerce, resolved
from kpg.sql.bind.common_tables import CommonTables
from kpg.sql.bind.name_scopes import NamedValue, NameScope, RangeTable, refuse_duplicate_tables
from kpg.sql.bind.output_names import output_name
from kpg.sql.bind.tree_reading import is_star, name_of
from kpg.sql.catalog.entries import TableColumn, TableEntry
from kpg.sql.functions.cast_rules import can_cast
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.parse.sql_statements import (
    Assignment,
    DeleteStatement,
    Returning,
    SqlName,
    SyntaxTree,
    UpdateStatement,
)
from kpg.sql.parse.statement_parser import parse_expression
from kpg.sql.relational.relations import BoundRelation, Filter, Project, Scan, Values
from kpg.sql.relational.scalars import Column, Constant, Scalar, SubqueryValue
from kpg.sql.sql_types import UNKNOWN


class ChangeBinder:
    """What INSERT, UPDATE and DELETE share: the table, its columns, defaults and RETURNING."""

    def __init__(self, table: SqlName, alias: SqlName | None, context: BindContext) -> None:
        self.context = context
        self.entry = self.target(table)
        self.name = table.text if alias is None else alias.text
        self.ctes = CommonTables()
        self.subqueries: dict[SyntaxTree, BoundSelect] = {}  # of `(a, b) = (SELECT …)`

    def target(self, name: SqlName) -> TableEntry:
        """Return the table to change."""
        entry = self.context.catalog.entry(name.text)
        if entry is None:
            hint = did_you_mean(name.text, self.context.catalog.names())
            raise sql_failure(UndefinedName, f'relation "{name}" does not exist', name.span, "42P01", hint=hint)
        if not isinstance(entry, TableEntry):
            what = f'cannot change view "{name}"'
            raise sql_failure(ProgramError, what, name.span, "42809", hint="Change the tables that it reads.")
        return entry

    def column(self, name: SqlName) -> int:
        """Return the position of a column."""
        names = [column.name for column in self.entry.columns]
        if name.text not in names:
            what = f'column "{name}" of relation "{self.entry.name}" does not exist'
            hint = did_you_mean(name.text, names)
            raise sql_failure(UndefinedName, what, name.span, "42703", hint=hint)
        return names.index(name.text)

    def positions(self, names: Sequence[SqlName]) -> list[int]:
        """Return the positions of columns, none of which may be named twice."""
        positions: list[int] = []
        for name in names:
            position = self.column(name)
            if position in positions:
                what = f'column "{name}" specified more than once'
                raise sql_failure(ProgramError, what, name.span, "42701")
            positions.append(position)
        return positions

    def range_table(self, columns: tuple[Column, ...], name: str | None = None) -> RangeTable:
        """Return the table with given columns for its rows."""
        values = tuple(NamedValue(c.name, value_of(new)) for c, new in zip(self.entry.columns, columns, strict=True))
        return RangeTable(name or self.name, values, self.entry)

    def new_columns(self) -> tuple[Column, ...]:
        """Return new columns for a row of the table."""
        return tuple(Column(column.name, column.type) for column in self.entry.columns)

    def scope(self, tables: Sequence[RangeTable], clause: str) -> NameScope:
        """Return a scope with tables."""
        scope = NameScope(None, self.ctes, clause=clause)
        for table in tables:
            scope.tables.append(table)
            scope.visible += table.columns
            scope.owned |= {value.value.column for value in table.columns}  # type: ignore[attr-defined]
        return scope

    def assigned(self, scalar: Scalar, column: TableColumn, span: Span | None) -> Scalar:
        """Return a value in the type of its column."""
        if scalar.type != UNKNOWN and not can_cast(scalar.type, column.type, "assignment"):
            what = f'column "{column.name}" is of type {column.type} but expression is of type {scalar.type}'
            hint = "You will need to rewrite or cast the expression."
            raise sql_failure(TypeMismatch, what, span or scalar.span, "42804", hint=hint)
        return coerce(scalar, column.type, "assignment", span)

    def default(self, column: TableColumn) -> Scalar:
        """Return the default of a column, null if it has none."""
        if column.default is None:
            return Constant(None, type=column.type)
        tree = parse_expression(column.default, f"default of {column.name}")
        context = BindContext(
            SourceText(tree.span.source.name, column.default),
            self.context.catalog,
            {},
            self.context.bind_query,
            standing=False,
        )
        scope = NameScope(None, CommonTables(), clause="DEFAULT expressions")
        return coerce(ExpressionBinder(scope, context).bind(tree.node), column.type, "assignment")

    def assignments(self, items: Sequence[Assignment], scope: NameScope) -> dict[int, Scalar]:
        """Bind the list after SET: the new value of each column that it names."""
        values: dict[int, Scalar] = {}
        binder = ExpressionBinder(scope, self.context)
        for item in items:
            position = self.column(item.column)
            column = self.entry.columns[position]
            if position in values:
                what = f'multiple assignments to same column "{column.name}"'
                raise sql_failure(ProgramError, what, item.column.span, "42601")
            if item.value is None:
                values[position] = self.default(column)
                continue
            if column.identity == "always":
                what = f'column "{column.name}" can only be updated to DEFAULT'
                raise sql_failure(ProgramError, what, item.column.span, "428C9")
            if item.place is None:
                value = binder.bind(item.value.node)
            else:
                value = self.column_of_subquery(item, item.value, item.place, binder)
            values[position] = self.assigned(value, column, item.value.span)
        return values

    def column_of_subquery(self, item: Assignment, tree: SyntaxTree, position: int, binder: ExpressionBinder) -> Scalar:
        """Return a column of the subquery in `(a, b) = (SELECT …)`."""
        if tree not in self.subqueries:
            self.subqueries[tree] = binder.subquery(tree.node.this)
        query = self.subqueries[tree]
        if len(query.names) != item.count:
            what = "number of columns does not match number of values"
            raise sql_failure(ProgramError, what, tree.span, "42601")
        column = query.columns[position]
        return SubqueryValue(query.rows(), column, type=column.type, span=tree.span)

    def returning(self, items: Returning, scope: NameScope) -> BoundReturning:
        """Bind RETURNING."""
        binder = ExpressionBinder(scope, self.context)
        names: list[str] = []
        values: list[Scalar] = []
        for item in items.items:
            if is_star(item.node):
                stars = scope.visible
                if isinstance(item.node, exp.Column):
                    stars = list(scope.table(name_of(item.node.args["table"]), item.span).columns)
                names += [value.name for value in stars]
                values += [value.value for value in stars]
                continue
            node = item.node.this if isinstance(item.node, exp.Alias) else item.node
            names.append(output_name(item.node))
            values.append(resolved(binder.bind(node)))
        return BoundReturning(tuple(names), tuple(values))


class MatchBinder(ChangeBinder):
    """What UPDATE and DELETE share: the rows of the table that match other tables and a condition."""

    def matches(
        self, sources: Sequence[SyntaxTree], condition: SyntaxTree | None, ctes: SyntaxTree | None
    ) -> tuple[BoundRelation, NameScope, tuple[Column, ...]]:
        """Bind the rows that match: with the columns of the table first, and all names of the tables."""
        if ctes is not None:
            WithBinder(NameScope(None, self.ctes), self.ctes, self.context).around(ctes.node, self.remember)
        old = self.new_columns()
        target = self.range_table(old)
        relation = Scan(old, self.entry.name, tuple(column.name for column in self.entry.columns))
        item = FromItem(relation, [target], list(target.columns))
        for source in sources:
            binder = FromBinder(None, self.ctes, self.context)
            first, joins = self.context.take(source.node, "from_", "joins")
            item = joined_items(item, binder.clause(first, joins or []))
        scope = NameScope(None, self.ctes, item.tables, item.visible, set(item.relation.columns), "WHERE")
        refuse_duplicate_tables(scope.tables, sources[0].span if sources else None)
        rows = item.relation
        if condition is not None:
            test = ExpressionBinder(scope, self.context).condition(condition.node, "WHERE")
            rows = Filter(rows.columns, rows, test)
        return rows, scope, old

    def remember(self, ctes: CommonTables) -> BoundSelect:
        """Keep the common tables of WITH for the other clauses."""
        self.ctes = ctes
        return BoundSelect(Values((), ((),)), ())

    def with_returning(
        self, rows: BoundRelation, columns: list[tuple[str, Scalar]], items: Returning | None, scope: NameScope
    ) -> tuple[BoundRelation, tuple[str, ...] | None]:
        """Return rows with given columns, then those of RETURNING; and the names of the latter."""
        names = None
        if items is not None:
            scope.clause = "RETURNING"
            returned = self.returning(items, scope)
            names = returned.names
            columns = [*columns, *zip(returned.names, returned.values, strict=True)]
        new = tuple(Column(name, value.type) for name, value in columns)
        return Project(new, rows, tuple(value for _, value in columns)), names


class UpdateBinder(MatchBinder):
    """Binds UPDATE."""

    def __init__(self, statement: UpdateStatement, context: BindContext) -> None:
        super().__init__(statement.table, statement.alias, context)
        self.statement = statement

    def bind(self) -> BoundUpdate:
        """Bind the whole statement. RETURNING sees the new row under the name of the table."""
        statement = self.statement
        rows, scope, old = self.matches(statement.sources, statement.condition, statement.ctes)
        scope.clause = "UPDATE"
        changed = self.assignments(statement.assignments, scope)
        values = [changed.get(at, value_of(column)) for at, column in enumerate(old)]
        new = self.new_columns()
        kept = tuple(column for column in rows.columns)
        updated = Project((*kept, *new), rows, (*map(value_of, kept), *values))
        columns = [(column.name, value_of(column)) for column in (*old, *new)]
        after = self.after(scope, new)
        relation, names = self.with_returning(updated, list(columns), statement.returning, after)
        width = len(old)
        return BoundUpdate(self.entry, relation, relation.columns[:width], relation.columns[width : 2 * width], names)

    def after(self, scope: NameScope, new: tuple[Column, ...]) -> NameScope:
        """Return the names that RETURNING sees: the new row instead of the old one."""
        target = self.range_table(new)
        tables = [target, *scope.tables[1:]]
        visible = [*target.columns, *scope.visible[len(new) :]]
        return NameScope(None, self.ctes, tables, visible, scope.owned | set(new), "RETURNING")


class DeleteBinder(MatchBinder):
    """Binds DELETE."""

    def __init__(self, statement: DeleteStatement, context: BindContext) -> None:
        super().__init__(statement.table, statement.alias, context)
        self.statement = statement

    def bind(self) -> BoundDelete:
        """Bind the whole statement."""
        statement = self.statement
        rows, scope, old = self.matches(statement.sources, statement.condition, statement.ctes)
        columns = [(column.name, value_of(column)) for column in old]
        relation, names = self.with_returning(rows, list(columns), statement.returning, scope)
        return BoundDelete(self.entry, relation, relation.columns[: len(old)], names)
