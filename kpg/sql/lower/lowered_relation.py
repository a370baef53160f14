"""A lowered relation: a collection, and the column of it that holds each column of the bound relation.

The columns of a base table keep their names, so that joins read the table's own arrangements. All other names come
from the bound columns, made unique within the relation. Equal queries therefore lower to equal plans. A relation
without columns has one column, UNIT, since a row of the engine has at least one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kpg.columns.expression import ColumnReference, Expression, Literal
from kpg.query.lower.unit_input import UNIT

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.sql.relational.scalars import Column


@dataclass(frozen=True, slots=True)
class LoweredRelation:
    """A collection, and the name in it of each bound column."""

    rows: Collection
    names: Mapping[Column, str]

    def reference(self, column: Column) -> Expression:
        """Return the value of a column."""
        return ColumnReference(self.names[column])

    def select(self, values: Mapping[Column, Expression]) -> LoweredRelation:
        """Return a relation with these columns, computed from the rows."""
        names = unique_names(values)
        chosen = {names[column]: value for column, value in values.items()} or {UNIT: Literal(0)}
        return LoweredRelation(self.rows.select(**chosen), names)

    def keep(self, columns: Iterable[Column]) -> LoweredRelation:
        """Return a relation with only these columns, in this order."""
        return self.select({column: self.reference(column) for column in columns})

    def with_rows(self, rows: Collection) -> LoweredRelation:
        """Return the same columns of other rows."""
        return LoweredRelation(rows, self.names)


def unique_names(columns: Iterable[Column], taken: Iterable[str] = ()) -> dict[Column, str]:
    """Return a name for each column: its own, numbered where an earlier column has it."""
    used = set(taken)
    names: dict[Column, str] = {}
    numbers: dict[str, int] = {}  # the last one of each name
    for column in columns:
        name, number = column.name or "column", numbers.get(column.name, 1)
        while name in used:
            number += 1
            name = f"{column.name} {number}"
        used.add(name)
        numbers[column.name] = number
        names[column] = name
    return names
