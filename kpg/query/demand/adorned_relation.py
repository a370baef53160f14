"""Adorned relations: a relation with some columns bound, and the names of the relations that demand adds for it.

tc@x              the demanded rows of tc with column x bound
tc@x.demand       the demanded values of x: the magic set
tc@x.way          pairs of an argument and a value that its demand reaches (kpg/query/demand/right_linear.py)
tc@x.arguments    the input relation for a query's arguments
tc@x.answer       the rows for those arguments

`.arguments` names an input, which a db keeps on disk, so it must not change.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.query.ir.program import Relation, RelationColumn


@dataclass(frozen=True, slots=True)
class AdornedRelation:
    """A relation and the numbers of its bound columns."""

    relation: Relation
    bound: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of the demanded rows; the relation's own name if no column is bound."""
        names = ",".join(column.name for column in self.bound_columns)
        return f"{self.relation.name}@{names}" if self.bound else self.relation.name

    @property
    def bound_columns(self) -> tuple[RelationColumn, ...]:
        """The bound columns."""
        return tuple(self.relation.columns[number] for number in self.bound)

    @property
    def demand(self) -> str:
        """The name of the magic set."""
        return f"{self.name}.demand"

    @property
    def reach(self) -> str:
        """The name of the relation of arguments and the values that their demand reaches."""
        return f"{self.name}.way"

    @property
    def arguments(self) -> str:
        """The name of the input relation for arguments."""
        return f"{self.name}.arguments"

    @property
    def answer(self) -> str:
        """The name of the relation with the rows for the arguments."""
        return f"{self.name}.answer"

    def demanded_rows(self) -> Relation:
        """Return the relation of the demanded rows."""
        return Relation(self.name, self.relation.columns, self.relation.at, bag=self.relation.bag)

    def argument_relation(self, name: str) -> Relation:
        """Return a relation of values for the bound columns."""
        return Relation(name, self.bound_columns, self.relation.at)

    def reach_relation(self) -> Relation:
        """Return the relation of arguments, then the values that they reach."""
        arguments = tuple(
            RelationColumn(f"{column.name}'", column.type, column.kind, column.at) for column in self.bound_columns
        )
        return Relation(self.reach, (*arguments, *self.bound_columns), self.relation.at)
