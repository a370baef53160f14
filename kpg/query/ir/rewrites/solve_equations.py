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
    solutions: dict[str, Term] = {}
    kept = []
    for literal in literals(rule):
        solution = solution_of(literal, solutions) if isinstance(literal, Comparison) else None
        if solution is None:
            kept.append(literal)
        elif solution[0] != solution[1]:
            solutions[solution[0].name] = solution[1]
    rule = substitute(replace(rule, body=Conjunction(tuple(kept), rule.body.at)), solutions)
    compared = [literal for literal in literals(rule) if is_constant(literal)]
    if not all(holds(literal.op, literal.left.value, literal.right.value) for literal in compared):  # type: ignore
        return None
    rest = tuple(literal for literal in literals(rule) if not is_constant(literal)) if compared else None
    return rule if rest is None else replace(rule, body=Conjunction(rest, rule.body.at))


def is_constant(literal: Literal) -> bool:
    """Return whether a literal compares two constants."""
    return (
        isinstance(literal, Comparison)
        and isinstance(literal.left, ConstantTerm)
        and isinstance(literal.right, ConstantTerm)
    )


def holds(op: str, left: Value, right: Value) -> bool:
    """Return whether a comparison of two constants holds."""
    return bool(COMPARE[op](left, right))


def solution_of(literal: Comparison, solutions: dict[str, Term]) -> tuple[VariableTerm, Term] | None:
    """Return the variable that an equation eliminates and the term that replaces it, or None.

    `solutions` are the variables eliminated so far. A variable that a rewrite made is eliminated first: errors show the
    variables of the source text.
    """
    if literal.op != "=":
        return None
    left, right = solved(literal.left, solutions), solved(literal.right, solutions)
    for side, other in sorted([(left, right), (right, left)], key=lambda pair: not is_generated(pair[0])):
        if isinstance(side, VariableTerm) and isinstance(other, (VariableTerm, ConstantTerm)):
            return side, other
    return None


def solved(term: Term, solutions: dict[str, Term]) -> Term:
    """Return the term that takes the place of a term; chains of solutions are shortened on the way."""
    passed: list[str] = []
    while isinstance(term, VariableTerm) and term.name in solutions:
        passed.append(term.name)
        term = solutions[term.name]
    for name in passed:
        solutions[name] = term
    return term


def is_generated(term: Term) -> bool:
    """Return whether a term is a variable that a rewrite made."""
    return isinstance(term, VariableTerm) and "#" in term.name


def substitute(rule: Rule, solutions: dict[str, Term]) -> Rule:
    """Return a rule with the solutions in place of their variables."""
    if not solutions:
        return rule

    def put(term: Term) -> Term:
        return solved(term, solutions)

    heads = tuple(map_atom_terms(head, put) for head in rule.heads)
    return replace(rule, heads=heads, body=map_terms(rule.body, put))
