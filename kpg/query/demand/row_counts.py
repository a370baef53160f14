"""Row counts for the decision about demand: of inputs by their data, of other relations by an estimate.

    counts.rows("edge")            the row count, or None if it is unknown
    counts.values("edge", 0)       the number of distinct values of a column, or None

A relation with rules has at most as many rows as the smallest atom of each rule; that is a guess where a join
multiplies rows. Recursive relations have no estimate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kpg.query.ir.literals import Atom, atoms
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import ConstantTerm, VariableTerm

CONSTANT_SHARE = 10  # a constant in an atom is assumed to select one row of this many

CountValues = Callable[[str, int], int | None]


def unknown_values(name: str, column: int) -> int | None:
    """Return None: distinct values were not counted."""
    return None


@dataclass(frozen=True, slots=True)
class InputCounts:
    """The row counts of inputs, and a function that counts the distinct values of a column."""

    rows: Mapping[str, int] = field(default_factory=dict)
    values: CountValues = unknown_values


@dataclass(slots=True)
class RowCounts:
    """Estimates for all relations of a program."""

    program: Program
    inputs: InputCounts
    distinct: bool = False  # whether to count the distinct values of columns
    _facts: Counter[str] = field(default_factory=Counter)
    _rows: dict[str, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._facts = Counter(fact.relation for fact in self.program.facts)

    def rows(self, name: str) -> int | None:
        """Return the estimated row count of a relation."""
        if name not in self._rows:
            self._rows[name] = None  # a relation that depends on itself has no estimate
            self._rows[name] = self._estimate(name)
        return self._rows[name]

    def _estimate(self, name: str) -> int | None:
        own = self.inputs.rows.get(name)
        rules = self.program.rules_of(name)
        if any(reduction.relation == name for reduction in self.program.reductions):
            return None
        if not rules:
            return own if own is not None else self._facts.get(name)
        estimates = [self.rows_of_rule(rule) for rule in rules]
        known = [rows for rows in estimates if rows is not None]
        return (own or 0) + self._facts[name] + sum(known) if len(known) == len(estimates) else None

    def rows_of_rule(self, rule: Rule) -> int | None:
        """Return the estimated number of rows that a rule derives."""
        known = [self.rows_of_atom(atom) for atom, positive in atoms(rule.body) if positive]
        return min((rows for rows in known if rows is not None), default=None)

    def rows_of_atom(self, atom: Atom) -> int | None:
        """Return the estimated number of rows that match an atom."""
        rows = self.rows(atom.relation)
        fixed = any(isinstance(term, ConstantTerm) for term in atom.arguments)
        return rows if rows is None or not fixed else max(rows // CONSTANT_SHARE, 1)

    def values_in(self, literals: list[Atom], variable: str) -> int | None:
        """Return the estimated number of values that a variable takes in a conjunction of atoms."""
        estimates = [self.rows_of_atom(atom) for atom in literals]
        for atom in literals if self.distinct else ():
            for column, term in enumerate(atom.arguments):
                if isinstance(term, VariableTerm) and term.name == variable:
                    estimates.append(self._distinct(atom.relation, column))
        return min((rows for rows in estimates if rows is not None), default=None)

    def _distinct(self, name: str, column: int) -> int | None:
        """Return the number of distinct values of a column, through rules that only copy it."""
        rules = self.program.rules_of(name)
        if not rules:
            return self.inputs.values(name, column)
        total = 0
        for rule in rules:
            term = rule.head.arguments[column]
            if isinstance(term, ConstantTerm):
                total += 1
                continue
            body = [atom for atom, positive in atoms(rule.body) if positive and atom.relation != name]
            values = self.values_in(body, term.name) if isinstance(term, VariableTerm) else None
            if values is None:
                return None
            total += values
        return total
