"""Paths through linear rules: forward from a row of the body to the head, and backward from the head to the body.

A linear rule has exactly one atom of a derived relation in its body, its *derived atom*.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.seminaive.partial_solutions import ROW
from kpg.seminaive.recursion_rules import (
    Literal,
    RecursionAtom,
    RecursionRule,
    RuleSystem,
    evaluation_order,
    split_repeated,
    variables,
)


@dataclass(frozen=True, slots=True)
class RulePath:
    """A path through a rule, from the rows of one atom to all solutions of the body."""

    start: RecursionAtom
    steps: tuple[Literal, ...]
    head: RecursionAtom
    derived_atom: RecursionAtom  # the atom of a derived relation in the body
    live: frozenset[str]  # the variables that solutions carry


def forward_paths(system: RuleSystem, relation: int) -> list[RulePath]:
    """Return a path from each atom of the relation in each body."""
    paths = []
    for rule in system.rules:
        for position, literal in enumerate(rule.body):
            if isinstance(literal, RecursionAtom) and literal.relation == relation:
                order = evaluation_order(rule, position)
                derived_atom = the_derived_atom(rule, system)
                paths.append(RulePath(order.start, order.steps, rule.head, derived_atom, live_variables(rule)))
    return paths


def backward_paths(system: RuleSystem, relation: int) -> list[RulePath]:
    """Return a path for each rule that derives the relation, from its head to the rows that may support it."""
    paths = []
    for rule in system.rules:
        if rule.head.relation == relation:
            derived_atom = the_derived_atom(rule, system)
            start, *equations = split_repeated(rule.head, "#head")
            read_atoms = tuple(literal for literal in rule.body if literal is not derived_atom)
            assert isinstance(start, RecursionAtom)
            order = evaluation_order(RecursionRule(rule.head, (start, *equations, *read_atoms)), 0)
            live = live_variables(rule) | variables(start)
            paths.append(RulePath(start, order.steps, rule.head, derived_atom, live))
    return paths


def derived_atoms(rule: RecursionRule, system: RuleSystem) -> list[RecursionAtom]:
    """Return the atoms of derived relations in a body."""
    return [atom for atom in rule.body if isinstance(atom, RecursionAtom) and atom.relation < system.derived]


def the_derived_atom(rule: RecursionRule, system: RuleSystem) -> RecursionAtom:
    """Return the derived atom of a linear rule."""
    (atom,) = derived_atoms(rule, system)
    return atom


def live_variables(rule: RecursionRule) -> frozenset[str]:
    """Return all variables of a rule, and the pseudo-variable of the starting row."""
    return frozenset({ROW}).union(variables(rule.head), *(variables(literal) for literal in rule.body))


def can_maintain(system: RuleSystem) -> bool:
    """Return whether `MaintainedFixpoint` can evaluate the rules.

    Every rule must be linear. Its head, together with the rows it reads, must determine the derived row that it follows
    from; otherwise an update could not find the rows that support a head.
    """
    for rule in system.rules:
        atoms = derived_atoms(rule, system)
        if len(atoms) != 1 or None in atoms[0].terms:
            return False
        read_atoms = [atom for atom in rule.body if isinstance(atom, RecursionAtom) and atom is not atoms[0]]
        if not variables(atoms[0]) <= variables(rule.head).union(*map(variables, read_atoms)):
            return False
    return True
