"""Divide a recursion among workers by a column that all of its rules leave unchanged.

    tc(x, z) <- tc(x, y), e(y, z)        rows with the same x follow from rows with this x alone

    division = division_of(system)
    division.columns      for each relation, the column whose value decides the worker of a row; None: all need it

If a column of every derived relation carries one variable through all rules, each worker can evaluate the rules on the
rows of its own values. It never needs a derived row of another one, neither in a round nor to find support.
A relation that the rules only read is divided, too, if all its atoms have that variable in one column. A composition of
a relation with itself has no such column, but the linear rule that is equivalent to it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from kpg.seminaive.linear_closure import linearised
from kpg.seminaive.recursion_rules import RecursionAtom, RecursionRule, RuleSystem, atoms_of
from kpg.seminaive.rule_paths import derived_atoms

MAX_CHOICES = 1 << 12  # of one column for each derived relation; a recursion with more of them is not divided


@dataclass(frozen=True, slots=True)
class Division:
    """How the relations of a system are divided. Relation i has the rows of input `inputs[i]`."""

    system: RuleSystem
    columns: tuple[int | None, ...]
    inputs: tuple[int, ...]


def division_of(system: RuleSystem) -> Division | None:
    """Return how a recursion can be divided; None if it cannot."""
    if system.copies:
        return None
    linear = linearised(system)
    inputs = (*range(len(system.arities)), *linear.copies)
    read = replace(linear, copies=(), ends=())  # what was a copy of a relation's given rows is a relation of its own
    for each, sources in ((system, inputs[: len(system.arities)]), (read, inputs)):
        carried = next(carried_columns(each), None)
        if carried is not None:
            others = range(each.derived, len(each.arities))
            return Division(each, (*carried, *[read_column(each, carried, relation) for relation in others]), sources)
    return None


def carried_columns(system: RuleSystem) -> Iterator[tuple[int, ...]]:
    """Yield the choices of a column of each derived relation that all rules leave unchanged."""
    arities = system.arities[: system.derived]
    if prod(arities) <= MAX_CHOICES:
        for columns in product(*map(range, arities)):
            if all(is_carried(rule, system, columns) for rule in system.rules):
                yield columns


def is_carried(rule: RecursionRule, system: RuleSystem, columns: tuple[int, ...]) -> bool:
    """Return whether head and derived atoms of a rule have one variable in these columns."""
    own = derived_atoms(rule, system)
    variables = {atom.terms[columns[atom.relation]] for atom in (rule.head, *own)}
    return bool(own) and len(variables) == 1 and isinstance(variables.pop(), str)


def read_column(system: RuleSystem, carried: tuple[int, ...], relation: int) -> int | None:
    """Return a column of a relation in which all its atoms have the variable that their rule carries; None if none."""
    atoms = [
        (atom, rule.head.terms[carried[rule.head.relation]])
        for rule in system.rules
        for atom in atoms_of(rule)
        if atom.relation == relation
    ]
    return next((c for c in range(system.arities[relation]) if all(has_term(a, c, v) for a, v in atoms)), None)


def has_term(atom: RecursionAtom, column: int, variable: object) -> bool:
    """Return whether an atom has a variable in a column."""
    return atom.terms[column] == variable
