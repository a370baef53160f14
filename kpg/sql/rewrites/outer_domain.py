"""The domain of a dependent join: the distinct values of the outer expressions that its right side depends on.

The domain is made of the rows of the left side, so it is never larger. Each use has columns of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kpg.sql.relational.relations import BoundRelation, Distinct
from kpg.sql.relational.scalars import Column, ColumnValue, Scalar
from kpg.sql.rewrites.node_builders import project, value_of


@dataclass(frozen=True, slots=True)
class OuterDomain:
    """The left side of a dependent join, and the domains made of it so far."""

    left: BoundRelation
    made: dict[frozenset[Scalar], tuple[BoundRelation, dict[Scalar, Column]]] = field(default_factory=dict)

    def of(self, outer: Sequence[Scalar]) -> tuple[BoundRelation, dict[Scalar, Column]]:
        """Return the distinct values of some expressions over the left side, with a new column for each."""
        chosen = frozenset(outer)
        if chosen not in self.made:
            columns = {scalar: Column(name_of(scalar), scalar.type) for scalar in outer}
            values = project(self.left, {column: scalar for scalar, column in columns.items()})
            self.made[chosen] = Distinct(values.columns, values), columns
        distinct, columns = self.made[chosen]
        fresh = {scalar: Column(name_of(scalar), scalar.type) for scalar in outer}
        renamed = project(distinct, {fresh[scalar]: value_of(columns[scalar]) for scalar in outer})
        return renamed, fresh


def name_of(scalar: Scalar) -> str:
    """Return a name for the column of an outer expression."""
    return scalar.column.name if isinstance(scalar, ColumnValue) else "outer"
