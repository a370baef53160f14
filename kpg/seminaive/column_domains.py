"""Domains of columns: columns that exchange values through the rules share one numbering of values, others do not.

A rule that joins, copies or compares two columns puts them into one domain. A label column is thus numbered apart from
the columns of nodes, and its ids need few bits. The rules must not share variable names: see `with_own_variables`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kpg.seminaive.recursion_rules import (
    Literal,
    RecursionAtom,
    RecursionComparison,
    RecursionNegation,
    RecursionRule,
    RuleSystem,
    Term,
    atoms_of,
)


@dataclass(frozen=True, slots=True)
class ColumnDomains:
    """The domain of each column of each relation, and the values that rules mention in each domain."""

    columns: tuple[tuple[int, ...], ...]
    constants: tuple[frozenset[int], ...]


Place = tuple[int, int] | str  # a column of a relation, or a variable


def column_domains(system: RuleSystem) -> ColumnDomains:
    """Return the domains of all columns."""
    forest: dict[Place, Place] = {}

    def root(place: Place) -> Place:
        while (parent := forest.setdefault(place, place)) != place:
            place = parent
        return place

    for rule in system.rules:
        for atom in atoms_of(rule):
            for column, term in enumerate(atom.terms):
                if isinstance(term, str):
                    forest[root((atom.relation, column))] = root(term)
        for literal in rule.body:
            if isinstance(literal, RecursionComparison) and isinstance(literal.left, str):
                if isinstance(literal.right, str):
                    forest[root(literal.left)] = root(literal.right)
    numbers: dict[Place, int] = {}
    columns = tuple(
        tuple(numbers.setdefault(root((relation, column)), len(numbers)) for column in range(arity))
        for relation, arity in enumerate(system.arities)
    )
    constants: list[set[int]] = [set() for _ in numbers]
    for rule in system.rules:
        for atom in atoms_of(rule):
            for column, term in enumerate(atom.terms):
                if isinstance(term, int):
                    constants[columns[atom.relation][column]].add(term)
    return ColumnDomains(columns, tuple(map(frozenset, constants)))


def with_own_variables(system: RuleSystem) -> RuleSystem:
    """Return the same system without variables that occur in several rules."""
    return replace(system, rules=tuple(renamed(rule, f"@{number}") for number, rule in enumerate(system.rules)))


def renamed(rule: RecursionRule, suffix: str) -> RecursionRule:
    """Return a rule with a suffix added to each variable."""

    def term(term: Term) -> Term:
        return f"{term}{suffix}" if isinstance(term, str) else term

    def atom(atom: RecursionAtom) -> RecursionAtom:
        return RecursionAtom(atom.relation, tuple(None if of is None else term(of) for of in atom.terms))

    def literal(literal: Literal) -> Literal:
        match literal:
            case RecursionAtom():
                return atom(literal)
            case RecursionNegation():
                return RecursionNegation(atom(literal.atom))
        return RecursionComparison(literal.op, term(literal.left), term(literal.right))

    return RecursionRule(atom(rule.head), tuple(map(literal, rule.body)))
