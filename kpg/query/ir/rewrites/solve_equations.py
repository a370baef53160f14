"""Equations that say what a variable is are used up: x = 3 or x = y puts the other side in its place everywhere.

    p(x, y) :- q(x, z), y = z, x = 3.   ->   p(3, z) :- q(3, z).

Comparisons of constants are decided: a rule with one that fails goes away.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import COMPARE, Comparison, Conjunction, Literal, change_atom, change_terms
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import ConstantTerm, Term, Value, VariableTerm


def solve_equations(program: Program) -> Program:
    """The program without equations between variables, or of variables with constants."""
    solved = (solve(rule) for rule in program.rules)
    return program.with_rules(tuple(rule for rule in solved if rule is not None))


def solve(rule: Rule) -> Rule | None:
    """One rule; None if it can never hold."""
    while True:
        for literal in literals(rule):
            if not isinstance(literal, Comparison):
                continue
            if isinstance(literal.left, ConstantTerm) and isinstance(literal.right, ConstantTerm):
                if not holds(literal.op, literal.left.value, literal.right.value):
                    return None
                rule = without(rule, literal)
                break
            solution = solves(literal)
            if solution is not None:
                rule = substitute(without(rule, literal), *solution)
                break
        else:
            return rule


def holds(op: str, left: Value, right: Value) -> bool:
    """Whether a comparison of two constants does."""
    return bool(COMPARE[op](left, right))


def solves(literal: Comparison) -> tuple[VariableTerm, Term] | None:
    """The variable that an equation makes needless, and what to put in its place."""
    if literal.op != "=":
        return None
    for this, that in ((literal.left, literal.right), (literal.right, literal.left)):
        if isinstance(this, VariableTerm) and isinstance(that, (VariableTerm, ConstantTerm)):
            return this, that
    return None


def without(rule: Rule, literal: Literal) -> Rule:
    """A rule without one literal of its body."""
    return replace(rule, body=Conjunction(tuple(each for each in literals(rule) if each is not literal), rule.body.at))


def substitute(rule: Rule, variable: VariableTerm, by: Term) -> Rule:
    """A rule with something in place of a variable."""

    def put(term: Term) -> Term:
        return by if term == variable else term

    heads = tuple(change_atom(head, put) for head in rule.heads)
    return replace(rule, heads=heads, body=change_terms(rule.body, put))
