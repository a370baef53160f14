"""Bind INSERT: its rows in the columns of the table, defaults, identities, and what a conflict does."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from kpg.errors import ProgramError
from kpg.sql.bind.bind_changes import ChangeBinder
from kpg.sql.bind.bind_context import BindContext, BoundSelect, value_of
from kpg.sql.bind.bind_expressions import ExpressionBinder
from kpg.sql.bind.bound_changes import BoundConflict, BoundInsert
from kpg.sql.bind.coercions import resolved
from kpg.sql.bind.name_scopes import NameScope, refuse_duplicate_tables
from kpg.sql.catalog.entries import TableColumn
from kpg.sql.parse.spans import Span
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.parse.sql_statements import InsertStatement, OnConflict
from kpg.sql.relational.relations import BoundRelation, Project, Values
from kpg.sql.relational.scalars import TRUE, Column, Constant, Scalar, SortKey
from kpg.sql.sql_types import UNKNOWN


class InsertBinder(ChangeBinder):
    """Binds INSERT."""

    def __init__(self, statement: InsertStatement, context: BindContext) -> None:
        super().__init__(statement.table, statement.alias, context)
        self.statement = statement
        self.order: tuple[SortKey, ...] = ()  # of the query, whose keys are the last columns of its rows

    def bind(self) -> BoundInsert:
        """Bind the whole statement."""
        statement = self.statement
        columns = self.entry.columns
        chosen = list(range(len(columns))) if statement.columns is None else self.positions(statement.columns)
        rows, chosen, defaulted = self.source(chosen)
        self.check_identities(chosen, defaulted)
        given = tuple(
            columns[p].identity is None or (p in chosen and p not in defaulted and not self.ignores(columns[p]))
            for p in range(len(columns))
        )
        written = self.new_columns()
        returning = None
        if statement.returning is not None:
            scope = self.scope([self.range_table(written)], "RETURNING")
            returning = self.returning(statement.returning, scope)
        conflict = None if statement.on_conflict is None else self.conflict(statement.on_conflict)
        ordered = self.in_table_order(rows, chosen, given)
        order = tuple(
            replace(key, value=value_of(column))
            for key, column in zip(self.order, ordered.columns[len(columns) :], strict=True)
        )
        return BoundInsert(self.entry, ordered, given, conflict, written, returning, order)

    def ignores(self, column: TableColumn) -> bool:
        """Return whether given values of an identity column are ignored."""
        return column.identity is not None and self.statement.overriding == "user"

    def source(self, chosen: list[int]) -> tuple[BoundRelation, list[int], set[int]]:
        """Bind the rows to insert, in the types of the chosen columns; and which of these are DEFAULT in all rows."""
        statement = self.statement
        if statement.rows is None:
            return Values((), ((),)), [], set()
        node = statement.rows.node
        plain_values = isinstance(node, exp.Values) and not any(
            node.args.get(key) for key in ("with_", "order", "limit", "offset")
        )
        if plain_values:
            return self.values(node, chosen)
        query = self.context.bind_query(node, NameScope(None, self.ctes), self.context)
        chosen = self.fitting(chosen, len(query.names), statement.rows.span)
        return self.assigned_rows(query, chosen), chosen, set()

    def fitting(self, chosen: list[int], count: int, span: Span) -> list[int]:
        """Return the columns that get values; without a list they may be fewer than the table has."""
        if count > len(chosen):
            what = "INSERT has more expressions than target columns"
            raise sql_failure(ProgramError, what, span, "42601")
        if count < len(chosen) and self.statement.columns is not None:
            what = "INSERT has more target columns than expressions"
            raise sql_failure(ProgramError, what, span, "42601")
        return chosen[:count]

    def values(self, node: exp.Expr, chosen: list[int]) -> tuple[BoundRelation, list[int], set[int]]:
        """Bind VALUES: each value is cast to the type of its column, and DEFAULT is the default."""
        (rows,) = self.context.take(node, "expressions")
        assert self.statement.rows is not None
        chosen = self.fitting(chosen, len(rows[0].expressions), self.statement.rows.span)
        binder = ExpressionBinder(NameScope(None, self.ctes, clause="VALUES"), self.context)
        bound: list[tuple[Scalar, ...]] = []
        defaults = [0] * len(chosen)
        for row in rows:
            values: list[Scalar] = []
            for at, (item, position) in enumerate(zip(row.expressions, chosen, strict=True)):
                column = self.entry.columns[position]
                is_default = isinstance(item, exp.Var)
                defaults[at] += is_default
                value = self.default(column) if is_default else binder.bind(item)
                values.append(self.assigned(value, column, self.context.span(item)))
            bound.append(tuple(values))
        columns = tuple(Column(self.entry.columns[p].name, self.entry.columns[p].type) for p in chosen)
        self.check_mixed_identities(chosen, defaults, len(rows))
        everywhere = {p for p, count in zip(chosen, defaults, strict=True) if count == len(rows)}
        return Values(columns, tuple(bound)), chosen, everywhere

    def check_mixed_identities(self, chosen: list[int], defaults: list[int], count: int) -> None:
        """Refuse DEFAULT for an identity column in some rows only."""
        for position, count_of_defaults in zip(chosen, defaults, strict=True):
            if self.entry.columns[position].identity is not None and 0 < count_of_defaults < count:
                what = f'DEFAULT for the identity column "{self.entry.columns[position].name}" in some rows only'
                span = None if self.statement.rows is None else self.statement.rows.span
                error = sql_failure(ProgramError, f"{what} is not supported", span, "0A000")
                error.hint = "Write two INSERT statements."
                raise error

    def assigned_rows(self, query: BoundSelect, chosen: list[int]) -> BoundRelation:
        """Return the rows of a query in the types of their columns, and the keys of its order as further columns."""
        self.order = query.order
        relation = query.relation if query.order else query.rows()
        values: list[Scalar] = []
        columns: list[Column] = []
        assert self.statement.rows is not None
        for at, position in enumerate(chosen):
            column = self.entry.columns[position]
            source: Scalar = value_of(relation.columns[at])
            if source.type == UNKNOWN and isinstance(relation, Project):
                source = relation.values[at]
            values.append(self.assigned(source, column, self.statement.rows.span))
            columns.append(Column(column.name, column.type))
        values += [key.value for key in query.order]
        columns += [Column("sort key", key.value.type) for key in query.order]
        return Project(tuple(columns), without_untyped(relation), tuple(values))

    def check_identities(self, chosen: list[int], defaulted: set[int]) -> None:
        """Refuse values for a column that is GENERATED ALWAYS, unless the statement overrides it."""
        for position in chosen:
            column = self.entry.columns[position]
            if column.identity == "always" and position not in defaulted and self.statement.overriding is None:
                what = f'cannot insert a non-DEFAULT value into column "{column.name}"'
                hint = "Use OVERRIDING SYSTEM VALUE to override."
                raise sql_failure(ProgramError, what, self.statement.span, "428C9", hint=hint)

    def in_table_order(self, rows: BoundRelation, chosen: list[int], given: tuple[bool, ...]) -> BoundRelation:
        """Return rows with a value for each column of the table, in its order."""
        values: list[Scalar] = []
        for position, column in enumerate(self.entry.columns):
            if column.identity is not None and not given[position]:
                values.append(Constant(None, type=column.type))
            elif position in chosen:
                values.append(value_of(rows.columns[chosen.index(position)]))
            else:
                values.append(self.default(column))
        keys = rows.columns[len(chosen) :]
        new = tuple(Column(key.name, key.type) for key in keys)
        return Project((*self.new_columns(), *new), rows, (*values, *map(value_of, keys)))

    def conflict(self, node: OnConflict) -> BoundConflict:
        """Bind ON CONFLICT."""
        target = tuple(self.entry.columns[p].name for p in self.positions(node.target))
        if target and not any(set(target) == set(key) for key in self.entry.keys):
            what = "there is no unique or exclusion constraint matching the ON CONFLICT specification"
            raise sql_failure(ProgramError, what, node.target[0].span, "42P10")
        existing, excluded = self.new_columns(), self.new_columns()
        tables = [self.range_table(existing), self.range_table(excluded, "excluded")]
        if not node.assignments:
            return BoundConflict(target, existing, excluded, None, TRUE)
        scope = self.scope(tables, "ON CONFLICT DO UPDATE")
        refuse_duplicate_tables(scope.tables, self.statement.span)
        changed = self.assignments(node.assignments, scope)
        row = tuple(changed.get(at, value_of(column)) for at, column in enumerate(existing))
        condition = TRUE
        if node.condition is not None:
            condition = ExpressionBinder(scope, self.context).condition(node.condition.node, "WHERE")  # type: ignore[assignment]
        return BoundConflict(target, existing, excluded, row, condition)


def without_untyped(relation: BoundRelation) -> BoundRelation:
    """Return a projection whose constants without a type are text: a projection over it does not read them."""
    if not isinstance(relation, Project) or all(column.type != UNKNOWN for column in relation.columns):
        return relation
    values = tuple(resolved(value) for value in relation.values)
    columns = tuple(
        column if value.type == column.type else Column(column.name, value.type)
        for column, value in zip(relation.columns, values, strict=True)
    )
    return Project(columns, relation.input, values)
