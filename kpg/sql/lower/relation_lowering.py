"""The state of lowering one query: the db, the sources by name, and the relations lowered so far.

Each bound relation is lowered once, so a relation that several others read (a CTE) is one plan. The functions that
lower each kind of node are in the table of kpg/sql/lower/lower_query.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kpg.columns.bind import bind
from kpg.columns.expression import ColumnReference, Expression
from kpg.columns.pause_points import pause
from kpg.columns.schema import Type
from kpg.sql.lower.lower_scalars import expression_of
from kpg.sql.lower.lowered_relation import LoweredRelation
from kpg.sql.lower.plan_settings import PlanSettings, current_settings
from kpg.sql.lower.row_estimates import RowEstimates, estimates_of
from kpg.sql.relational.relations import BoundRelation, RecursiveVariable
from kpg.sql.relational.scalars import Column, Scalar
from kpg.sql.rewrites.source_facts import QueryFacts

if TYPE_CHECKING:
    from kpg.api.collection import Collection
    from kpg.api.contracts import Database
    from kpg.sql.lower.join_choice import JoinChoice

LowerNode = Callable[["RelationLowering", BoundRelation], LoweredRelation]


@dataclass(slots=True)
class RelationLowering:
    """Lowers the relations of one query, each once."""

    db: Database
    sources: Mapping[str, Collection]
    table: Mapping[type[BoundRelation], LowerNode]
    facts: QueryFacts
    parents: Mapping[BoundRelation, int]
    read: Mapping[BoundRelation, set[Column]]  # the columns of each node that are read
    settings: PlanSettings = field(default_factory=current_settings)
    joins: list[JoinChoice] = field(default_factory=list)  # what was chosen, for EXPLAIN
    recursion: str = "auto"  # "loop" forces loops
    variables: dict[RecursiveVariable, Collection] = field(default_factory=dict)
    estimates: RowEstimates = field(init=False)
    _lowered: dict[BoundRelation, LoweredRelation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.estimates = estimates_of(self.parents, self.facts)

    def is_shared(self, relation: BoundRelation) -> bool:
        """Return whether several nodes read a relation."""
        return self.parents.get(relation, 1) > 1

    def lower(self, relation: BoundRelation) -> LoweredRelation:
        """Return the collection of a relation."""
        lowered = self._lowered.get(relation)
        if lowered is None:
            pause()
            lowered = self._lowered[relation] = self.table[type(relation)](self, relation)
        return lowered

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that forgets the relations lowered, and the joins chosen, after this call."""
        lowered, joins = dict(self._lowered), len(self.joins)

        def forget_later() -> None:
            self._lowered = dict(lowered)
            del self.joins[joins:]

        return forget_later

    def expression(self, scalar: Scalar, relation: LoweredRelation) -> Expression:
        """Return the expression of a scalar over the columns of a lowered relation."""
        return expression_of(scalar, relation.names)

    def type_of(self, expression: Expression, rows: Collection) -> Type:
        """Return the column type of an expression over some rows."""
        if isinstance(expression, ColumnReference):
            return rows.schema.type_of(expression.name)
        return bind(expression, rows.schema, self.db.symbols).type
