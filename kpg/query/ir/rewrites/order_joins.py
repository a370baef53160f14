"""Order the literals of each body so that they can be evaluated from left to right.

The first atom is one with a constant, else the first as written. Each next atom is the one with the most bound
arguments, the first as written among equals; this avoids products of unrelated atoms where possible. Comparisons,
equations and negations follow the literal that binds their last variable directly, so that rows are dropped as early
as possible.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.body_variables import bound_by, definitions, is_computable, literals, variable_names
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Literal, Negation
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import ConstantTerm, VariableTerm


def order_joins(program: Program) -> Program:
    """Return the program with ordered bodies."""
    return program.with_rules(tuple(replace(rule, body=ordered_body(rule)) for rule in program.rules))


def ordered_body(rule: Rule) -> Conjunction:
    """Return the body of one rule in order."""
    waiting = list(literals(rule))
    bound: set[str] = set()
    body: list[Literal] = []
    while waiting:
        first = not any(isinstance(literal, Atom) for literal in body)
        literal = next_ready(waiting, bound) if bound or not first else None
        literal = literal or next_atom(waiting, bound, first) or next_ready(waiting, bound) or waiting[0]
        waiting.remove(literal)
        body.append(literal)
        bound = bound_by([literal], bound)
    return Conjunction(tuple(body), rule.body.at)


def next_ready(waiting: list[Literal], bound: set[str]) -> Literal | None:
    """Return a literal that can be evaluated with the bound variables: equations first, negations last."""
    ready = [literal for literal in waiting if not isinstance(literal, Atom) and can_follow(literal, bound)]
    return min(ready, key=lambda literal: (isinstance(literal, Negation), not is_equation(literal)), default=None)


def is_equation(literal: Literal) -> bool:
    """Return whether a literal is an equation."""
    return isinstance(literal, Comparison) and literal.op == "="


def can_follow(literal: Literal, bound: set[str]) -> bool:
    """Return whether a literal can be evaluated with the bound variables."""
    if variable_names(literal) <= bound:
        return True
    return any(is_computable(term, bound) for _, term in definitions(literal))


def next_atom(waiting: list[Literal], bound: set[str], first: bool) -> Literal | None:
    """Return the next atom of the join order."""
    atoms = [literal for literal in waiting if isinstance(literal, Atom)]
    if first:
        return max(atoms, key=lambda atom: any(isinstance(term, ConstantTerm) for term in atom.arguments), default=None)
    return max(atoms, key=lambda atom: boundness(atom, bound), default=None)


def boundness(atom: Atom, bound: set[str]) -> tuple[bool, bool, int]:
    """Rank an atom by its bound arguments: whether all, whether any variable, how many."""
    arguments = [term for term in atom.arguments if isinstance(term, (VariableTerm, ConstantTerm))]
    fixed = [term for term in arguments if isinstance(term, ConstantTerm) or term.name in bound]
    joined = [term for term in fixed if isinstance(term, VariableTerm)]
    return len(fixed) == len(atom.arguments) and bool(joined), bool(joined), len(fixed)
