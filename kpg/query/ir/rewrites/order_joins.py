"""The literals of each body in an order in which they can be evaluated from left to right.

Atoms: first one with a constant, else the first as written; then always the one with most arguments bound, the first
as written among equals, so that there is no product of unrelated atoms where it can be avoided. Comparisons, equations
and negations stand right behind what binds their variables, so that rows go as early as possible.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.body_variables import bound_by, definitions, is_ready, literals, uses
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Literal, Negation
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import ConstantTerm, VariableTerm


def order_joins(program: Program) -> Program:
    """The program with its bodies in order."""
    return program.with_rules(tuple(replace(rule, body=ordered(rule)) for rule in program.rules))


def ordered(rule: Rule) -> Conjunction:
    """The body of one rule in order."""
    waiting = list(literals(rule))
    bound: set[str] = set()
    done: list[Literal] = []
    while waiting:
        first = not any(isinstance(literal, Atom) for literal in done)
        literal = next_ready(waiting, bound) if bound or not first else None
        literal = literal or next_atom(waiting, bound, first) or next_ready(waiting, bound) or waiting[0]
        waiting.remove(literal)
        done.append(literal)
        bound = bound_by([literal], bound)
    return Conjunction(tuple(done), rule.body.at)


def next_ready(waiting: list[Literal], bound: set[str]) -> Literal | None:
    """A literal that can be decided or computed from what is bound: equations first, negations last."""
    ready = [literal for literal in waiting if not isinstance(literal, Atom) and can_follow(literal, bound)]
    return min(ready, key=lambda literal: (isinstance(literal, Negation), not is_equation(literal)), default=None)


def is_equation(literal: Literal) -> bool:
    """Whether a literal says what something is."""
    return isinstance(literal, Comparison) and literal.op == "="


def can_follow(literal: Literal, bound: set[str]) -> bool:
    """Whether a literal only needs what is bound."""
    if uses(literal) <= bound:
        return True
    return any(is_ready(term, bound) for _, term in definitions(literal))


def next_atom(waiting: list[Literal], bound: set[str], first: bool) -> Literal | None:
    """The atom to go on with."""
    atoms = [literal for literal in waiting if isinstance(literal, Atom)]
    if first:
        return max(atoms, key=lambda atom: any(isinstance(term, ConstantTerm) for term in atom.arguments), default=None)
    return max(atoms, key=lambda atom: known(atom, bound), default=None)


def known(atom: Atom, bound: set[str]) -> tuple[bool, bool, int]:
    """How much of an atom is known: whether all, whether some, how many arguments."""
    arguments = [term for term in atom.arguments if isinstance(term, (VariableTerm, ConstantTerm))]
    fixed = [term for term in arguments if isinstance(term, ConstantTerm) or term.name in bound]
    meets = [term for term in fixed if isinstance(term, VariableTerm)]
    return len(fixed) == len(atom.arguments) and bool(meets), bool(meets), len(fixed)
