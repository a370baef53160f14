"""Order the literals of each body so that they can be evaluated from left to right.

The first atom is one with a constant, else the first as written. Each next atom is the one with the most bound
arguments, the first as written among equals; this avoids products of unrelated atoms where possible. Comparisons,
equations and negations follow the literal that binds their last variable directly, so that rows are dropped as early
as possible. Literals that can fail come after all others that are ready. An atom with a variable that such an equation
defines waits for the equation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kpg.query.ir.body_variables import bound_by, definitions, is_computable, literals, variable_names
from kpg.query.ir.fallible_terms import literal_can_fail
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Literal, Negation
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import ConstantTerm, VariableTerm


def order_joins(program: Program) -> Program:
    """Return the program with ordered bodies."""
    return program.with_rules(tuple(replace(rule, body=ordered_body(rule)) for rule in program.rules))


def ordered_body(rule: Rule) -> Conjunction:
    """Return the body of one rule in order."""
    return Conjunction(tuple(in_order(literals(rule))), rule.body.at)


def in_order(body: Iterable[Literal], start: frozenset[str] = frozenset()) -> list[Literal]:
    """Return literals in order; atoms with variables of `start` come first."""
    waiting = list(body)
    bound: set[str] = set()
    ordered: list[Literal] = []
    while waiting:
        first = not any(isinstance(literal, Atom) for literal in ordered)
        literal = next_ready(waiting, bound) if bound or not first else None
        literal = literal or next_atom(waiting, bound, first, start) or next_ready(waiting, bound) or waiting[0]
        waiting.remove(literal)
        ordered.append(literal)
        bound = bound_by([literal], bound)
    return ordered


def next_ready(waiting: list[Literal], bound: set[str]) -> Literal | None:
    """Return a literal that can be evaluated with the bound variables: equations first, negations last."""
    ready = [literal for literal in waiting if not isinstance(literal, Atom) and can_follow(literal, bound)]
    return min(
        ready,
        key=lambda literal: (literal_can_fail(literal), isinstance(literal, Negation), not is_equation(literal)),
        default=None,
    )


def is_equation(literal: Literal) -> bool:
    """Return whether a literal is an equation."""
    return isinstance(literal, Comparison) and literal.op == "="


def can_follow(literal: Literal, bound: set[str]) -> bool:
    """Return whether a literal can be evaluated with the bound variables."""
    if variable_names(literal) <= bound:
        return True
    return any(is_computable(term, bound) for _, term in definitions(literal))


def next_atom(waiting: list[Literal], bound: set[str], first: bool, start: frozenset[str]) -> Literal | None:
    """Return the next atom of the join order."""
    atoms = [literal for literal in waiting if isinstance(literal, Atom)]
    computed = computed_variables(waiting, bound)
    atoms = [atom for atom in atoms if not variable_names(atom) & computed] or atoms
    if start:
        started = [atom for atom in atoms if variable_names(atom) & (start - bound)]
        if started:
            return max(started, key=lambda atom: (boundness(atom, bound), len(variable_names(atom) & start)))
    if first:
        return max(atoms, key=lambda atom: any(isinstance(term, ConstantTerm) for term in atom.arguments), default=None)
    return max(atoms, key=lambda atom: boundness(atom, bound), default=None)


def computed_variables(waiting: list[Literal], bound: set[str]) -> set[str]:
    """Return the variables that equations still define, of those that can fail and need no atom with the variable."""
    computed: set[str] = set()
    for literal in waiting:
        if isinstance(literal, Comparison) and literal_can_fail(literal):
            for variable, term in definitions(literal):
                others = [other for other in waiting if variable.name not in variable_names(other)]
                if variable.name not in bound and is_computable(term, bound_by(others, bound)):
                    computed.add(variable.name)
                    break
    return computed


def boundness(atom: Atom, bound: set[str]) -> tuple[bool, bool, int]:
    """Rank an atom by its bound arguments: whether all, whether any variable, how many."""
    arguments = [term for term in atom.arguments if isinstance(term, (VariableTerm, ConstantTerm))]
    fixed = [term for term in arguments if isinstance(term, ConstantTerm) or term.name in bound]
    joined = [term for term in fixed if isinstance(term, VariableTerm)]
    return len(fixed) == len(atom.arguments) and bool(joined), bool(joined), len(fixed)
