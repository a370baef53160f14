"""Paths through rules: forward from a row of the body to the heads, and backward from a head to the rows of the body.

A *derived atom* is an atom of a relation that the rules derive. A solution carries the greatest level of the rows of
its derived atoms (`LEVEL`), so the head of a solution has at most that level plus one.
"""

from __future__ import annotations

from dataclasses import dataclass

from kpg.seminaive.partial_solutions import LEVEL, ROW
from kpg.seminaive.recursion_rules import (
    Literal,
    RecursionAtom,
    RecursionNegation,
    RecursionRule,
    RuleSystem,
    ordered,
    split_repeated,
    variables,
    without,
)


@dataclass(frozen=True, slots=True)
class RulePath:
    """A path through a rule, from the rows of one atom to all solutions of the body."""

    start: RecursionAtom
    steps: tuple[Literal, ...]
    head: RecursionAtom
    live: tuple[frozenset[str], ...]  # the variables that solutions carry before each step, and at the end
    is_bound: tuple[bool, ...]  # for each step, whether the steps before it bind all of its variables


def forward_paths(system: RuleSystem, relation: int) -> list[RulePath]:
    """Return a path from each atom of the relation in each body."""
    rules = [with_named_columns(rule, system) for rule in system.rules]
    return [
        path(literal, without(rule.body, position), rule.head, system, variables(rule.head) | {LEVEL})
        for rule in rules
        for position, literal in enumerate(rule.body)
        if isinstance(literal, RecursionAtom) and literal.relation == relation
    ]


def negation_paths(system: RuleSystem, relation: int) -> list[RulePath]:
    """Return a path from each negated atom of the relation in each body, to heads that a matching row may prevent."""
    rules = [with_named_columns(rule, system) for rule in system.rules]
    return [
        path(literal.atom, without(rule.body, position), rule.head, system, variables(rule.head) | {LEVEL})
        for rule in rules
        for position, literal in enumerate(rule.body)
        if isinstance(literal, RecursionNegation) and literal.atom.relation == relation
    ]


def backward_paths(system: RuleSystem, relation: int) -> list[RulePath]:
    """Return a path for each rule that derives the relation, from its head to the rows that may support it."""
    rules = [with_named_columns(rule, system) for rule in system.rules]
    return [
        path(rule.head, rule.body, rule.head, system, {ROW, LEVEL}) for rule in rules if rule.head.relation == relation
    ]


def path(
    atom: RecursionAtom, body: tuple[Literal, ...], head: RecursionAtom, system: RuleSystem, needed: set[str]
) -> RulePath:
    """Return the path from an atom through a body; `needed` are the variables that solutions carry at the end."""
    start, *equations = split_repeated(atom, "#start")
    assert isinstance(start, RecursionAtom)

    def preference(atom: RecursionAtom, bound: set[str]) -> tuple[int, ...]:
        """Prefer atoms that are bound completely, then small relations: those that rules only read."""
        known = sum(isinstance(term, int) or term in bound for term in atom.terms)
        return known == len(atom.terms), known > 0 and atom.relation >= system.derived, known

    steps = ordered((*equations, *body), variables(start), preference)
    live = [frozenset(needed)]
    for literal in reversed(steps):
        live.append(live[-1] | variables(literal))
    live.reverse()
    bound, is_bound = variables(start), list[bool]()
    for literal in steps:
        is_bound.append(variables(literal) <= bound)
        bound |= variables(literal)
    return RulePath(start, steps, head, tuple(live), tuple(is_bound))


def joins_derived(path: RulePath, system: RuleSystem) -> bool:
    """Return whether a path looks up rows of a derived atom in an index, since solutions do not determine its row."""
    return any(
        isinstance(literal, RecursionAtom) and literal.relation < system.derived and not is_bound
        for literal, is_bound in zip(path.steps, path.is_bound, strict=True)
    )


def with_named_columns(rule: RecursionRule, system: RuleSystem) -> RecursionRule:
    """Give each column of the derived atoms a variable, so that a solution determines their rows."""

    def named(literal: Literal, number: int) -> Literal:
        if not isinstance(literal, RecursionAtom) or literal.relation >= system.derived:
            return literal
        terms = [f"#{number}.{column}" if term is None else term for column, term in enumerate(literal.terms)]
        return RecursionAtom(literal.relation, tuple(terms))

    return RecursionRule(rule.head, tuple(named(literal, number) for number, literal in enumerate(rule.body)))


def derived_atoms(rule: RecursionRule, system: RuleSystem) -> list[RecursionAtom]:
    """Return the atoms of derived relations in a body."""
    return [atom for atom in rule.body if isinstance(atom, RecursionAtom) and atom.relation < system.derived]


def can_maintain(system: RuleSystem) -> bool:
    """Return whether `MaintainedFixpoint` can evaluate the rules.

    Each rule must read a row of the recursion, and negate only relations that the rules do not derive.
    """
    return all(
        derived_atoms(rule, system)
        and not any(
            isinstance(literal, RecursionNegation) and literal.atom.relation < system.derived for literal in rule.body
        )
        for rule in system.rules
    )
