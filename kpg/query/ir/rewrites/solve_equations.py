"""Eliminate equations of a variable with a constant or another variable by substitution.

    p(x, y) :- q(x, z), y = z, x = 3.   ->   p(3, z) :- q(3, z).

Comparisons of two constants are evaluated: a rule with a false one is dropped.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import COMPARE, Comparison, Conjunction, Literal, map_atom_terms, map_terms
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import ConstantTerm, Term, Value, VariableTerm


def solve_equations(program: Program) -> Program:
    """Return the program without equations between variables, or of variables with constants."""
    solved = (solve(rule) for rule in program.rules)
    return program.with_rules(tuple(rule for rule in solved if rule is not None))


def solve(rule: Rule) -> Rule | None:
    """Return one rule without such equations, or None if it can never hold."""
    while True:
        for literal in literals(rule):
            if not isinstance(literal, Comparison):
                continue
            if isinstance(literal.left, ConstantTerm) and isinstance(literal.right, ConstantTerm):
                if not holds(literal.op, literal.left.value, literal.right.value):
                    return None
                rule = without(rule, literal)
                break
            solution = solution_of(literal)
            if solution is not None:
                rule = substitute(without(rule, literal), *solution)
                break
        else:
            return rule


def holds(op: str, left: Value, right: Value) -> bool:
    """Return whether a comparison of two constants holds."""
    return bool(COMPARE[op](left, right))


def solution_of(literal: Comparison) -> tuple[VariableTerm, Term] | None:
    """Return the variable that an equation eliminates and the term that replaces it, or None.

    A variable that a rewrite made is eliminated first: errors show the variables of the source text.
    """
    if literal.op != "=":
        return None
    sides = [(literal.left, literal.right), (literal.right, literal.left)]
    for side, other in sorted(sides, key=lambda pair: not is_generated(pair[0])):
        if isinstance(side, VariableTerm) and isinstance(other, (VariableTerm, ConstantTerm)):
            return side, other
    return None


def is_generated(term: Term) -> bool:
    """Return whether a term is a variable that a rewrite made."""
    return isinstance(term, VariableTerm) and "#" in term.name


def without(rule: Rule, literal: Literal) -> Rule:
    """Return a rule without one literal of its body."""
    rest = tuple(other for other in literals(rule) if other is not literal)
    return replace(rule, body=Conjunction(rest, rule.body.at))


def substitute(rule: Rule, variable: VariableTerm, by: Term) -> Rule:
    """Return a rule with a term in place of a variable."""

    def put(term: Term) -> Term:
        return by if term == variable else term

    heads = tuple(map_atom_terms(head, put) for head in rule.heads)
    return replace(rule, heads=heads, body=map_terms(rule.body, put))
