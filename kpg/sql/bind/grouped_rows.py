"""Groups: rows become groups, and expressions over rows become expressions over groups.

Expressions are bound over rows first. Here each part that equals a key becomes the column of that key, and results of
aggregates stay. Any other column must be determined by the keys: if they contain the primary key of its table, it
becomes a further key; otherwise it is an error (42803). Inside subqueries only columns are replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.errors import ProgramError
from kpg.sql.bind.aggregate_calls import AggregateCollector
from kpg.sql.bind.bind_context import value_of
from kpg.sql.bind.name_scopes import NameScope, RangeTable
from kpg.sql.parse.sql_failures import sql_failure
from kpg.sql.relational.references import ScalarReplacement
from kpg.sql.relational.relations import Aggregate, BoundRelation, Project
from kpg.sql.relational.scalars import Column, ColumnValue, Scalar


@dataclass(frozen=True)
class GroupKeys:
    """The keys of GROUP BY, and its grouping sets as indices of keys; None if there is one set of all keys."""

    keys: tuple[Scalar, ...]
    sets: tuple[tuple[int, ...], ...] | None


class GroupedRows:
    """The groups of a relation."""

    def __init__(
        self, relation: BoundRelation, group: GroupKeys, collector: AggregateCollector, scope: NameScope
    ) -> None:
        self.relation = relation
        self.group = group
        self.collector = collector
        self.scope = scope
        self.row_columns = frozenset(relation.columns)
        self.keys: list[Scalar] = list(group.keys)
        self.outputs: list[Column] = [key_column(key) for key in group.keys]
        self.replacement = ScalarReplacement(self.replaced)

    def over_groups(self, scalar: Scalar) -> Scalar:
        """Return an expression over groups."""
        return self.replacement.scalar(scalar)

    def replaced(self, scalar: Scalar, depth: int) -> Scalar | None:
        """Return what a part of an expression becomes; None if its parts are to be replaced."""
        if depth == 0 or isinstance(scalar, ColumnValue):
            for key, output in zip(self.keys, self.outputs, strict=True):
                if key == scalar:
                    return value_of(output, scalar.span)
        if not isinstance(scalar, ColumnValue) or scalar.column not in self.row_columns:
            return None
        return self.determined(scalar)

    def determined(self, scalar: ColumnValue) -> Scalar:
        """Return a column that is no key, but is determined by the keys."""
        table = self.table_of(scalar.column)
        if table is None or not self.contains_key_of(table):
            name = scalar.column.name if table is None else f"{table.name}.{scalar.column.name}"
            what = f'column "{name}" must appear in the GROUP BY clause or be used in an aggregate function'
            raise sql_failure(ProgramError, what, scalar.span, "42803")
        self.keys.append(value_of(scalar.column))
        self.outputs.append(key_column(scalar))
        return value_of(self.outputs[-1], scalar.span)

    def table_of(self, column: Column) -> RangeTable | None:
        """Return the table of FROM that has a column."""
        for table in self.scope.tables:
            if any(isinstance(v.value, ColumnValue) and v.value.column is column for v in table.columns):
                return table
        return None

    def contains_key_of(self, table: RangeTable) -> bool:
        """Return whether the keys contain the primary key of a table; with grouping sets they may be null."""
        if table.entry is None or not table.entry.primary_key or self.group.sets is not None:
            return False
        fields = [column.name for column in table.entry.columns]
        primary = [table.columns[fields.index(name)].value for name in table.entry.primary_key]
        return all(value in self.group.keys for value in primary)

    # --- the relation

    def aggregate(self) -> Aggregate:
        """Return the groups. Call it after all expressions: they may add keys."""
        grouping = tuple(self.grouping_indices(call.arguments, call.span) for call in self.collector.groupings)
        relation, columns = self.with_key_columns()
        outputs = (*self.outputs, *self.collector.results, *self.collector.grouping_results)
        return Aggregate(outputs, relation, columns, tuple(self.collector.calls), self.group.sets, grouping)

    def grouping_indices(self, arguments: tuple[Scalar, ...], span: object) -> tuple[int, ...]:
        """Return the keys that GROUPING(…) asks about."""
        indices = []
        for argument in arguments:
            if argument not in self.group.keys:
                what = "arguments to GROUPING must be grouping expressions of the associated query level"
                raise sql_failure(ProgramError, what, argument.span, "42803")
            indices.append(self.group.keys.index(argument))
        return tuple(indices)

    def with_key_columns(self) -> tuple[BoundRelation, tuple[Column, ...]]:
        """Return the rows with a column for each key, and these columns."""
        columns: list[Column] = []
        added: list[tuple[Column, Scalar]] = []
        for key in self.keys:
            kept = isinstance(key, ColumnValue) and key.column in self.row_columns and key.column not in columns
            column = key.column if kept and isinstance(key, ColumnValue) else key_column(key)
            columns.append(column)
            if not kept:
                added.append((column, key))
        if not added:
            return self.relation, tuple(columns)
        all_columns = (*self.relation.columns, *(column for column, _ in added))
        values = (*map(value_of, self.relation.columns), *(value for _, value in added))
        return Project(all_columns, self.relation, values), tuple(columns)


def key_column(key: Scalar) -> Column:
    """Return a new column for a key."""
    name = key.column.name if isinstance(key, ColumnValue) else "key"
    return Column(name, key.type)
