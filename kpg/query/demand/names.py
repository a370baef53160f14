"""The names of what demand adds to a program: those of `tc` asked by its column x begin with "tc@x".

tc@x              the rows of tc that are demanded
tc@x.demand       which values of x
tc@x.way          from which argument demand came to which value, where answers are those of the argument
tc@x.arguments    the input relation that a query's arguments are inserted into
tc@x.answer       the rows for those arguments
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.query.ir.program import Relation, RelationColumn


@dataclass(frozen=True, slots=True)
class DemandedRelation:
    """A relation asked by the columns at some places."""

    relation: Relation
    places: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of its demanded rows; its own, if it is asked by nothing."""
        columns = ",".join(column.name for column in self.columns)
        return f"{self.relation.name}@{columns}" if self.places else self.relation.name

    @property
    def columns(self) -> tuple[RelationColumn, ...]:
        """The columns that it is asked by."""
        return tuple(self.relation.columns[place] for place in self.places)

    @property
    def demand(self) -> str:
        """The relation of what is demanded."""
        return f"{self.name}.demand"

    @property
    def way(self) -> str:
        """The relation of how demand came about."""
        return f"{self.name}.way"

    @property
    def arguments(self) -> str:
        """The input relation of arguments."""
        return f"{self.name}.arguments"

    @property
    def answer(self) -> str:
        """The relation of answers to arguments."""
        return f"{self.name}.answer"

    def rows(self) -> Relation:
        """The relation of demanded rows."""
        return Relation(self.name, self.relation.columns, self.relation.at, bag=self.relation.bag)

    def of_arguments(self, name: str) -> Relation:
        """A relation of what is asked by."""
        return Relation(name, self.columns, self.relation.at)

    def of_ways(self) -> Relation:
        """Arguments, then what they came to."""
        arguments = tuple(RelationColumn(f"{each.name}'", each.type, each.kind, each.at) for each in self.columns)
        return Relation(self.way, (*arguments, *self.columns), self.relation.at)
