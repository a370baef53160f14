"""Move computed arguments of body atoms into equations, so that all arguments are variables, constants or wildcards.

p(x) :- q(x, y + 1).            ->   p(x) :- q(x, v), v = y + 1.
p(x) :- q(y), x = range(0, 9 / y).  ->   p(x) :- q(y), x = range(0, v), v = 9 / y.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.body_variables import literals
from kpg.query.ir.functors import FUNCTORS
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Literal, Negation
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import CallTerm, Kind, Term, VariableTerm


def flatten_arguments(program: Program) -> Program:
    """Return the program with no computed arguments in body atoms."""
    return program.with_rules(tuple(map(flatten_rule, program.rules)))


def flatten_rule(rule: Rule) -> Rule:
    """Return one rule with equations for its computed arguments."""
    kinds: list[tuple[str, Kind]] = []
    equations: list[Literal] = []

    def variable_for(term: Term) -> Term:
        if not isinstance(term, CallTerm):
            return term
        assert term.kind is not None
        variable = VariableTerm(f"value#{len(kinds)}", term.at)
        kinds.append((variable.name, term.kind))
        equations.append(Comparison("=", variable, term, term.at))
        return variable

    def flatten(literal: Literal) -> Literal:
        if isinstance(literal, Atom):
            return replace(literal, arguments=tuple(map(variable_for, literal.arguments)))
        if isinstance(literal, Negation) and isinstance(literal.formula, Atom):
            return replace(literal, formula=flatten(literal.formula))
        if isinstance(literal, Comparison):
            return replace(literal, left=flatten_bounds(literal.left), right=flatten_bounds(literal.right))
        return literal

    def flatten_bounds(term: Term) -> Term:
        if isinstance(term, CallTerm) and term.functor in FUNCTORS and FUNCTORS[term.functor].generates:
            return replace(term, arguments=tuple(map(variable_for, term.arguments)))
        return term

    body = tuple(map(flatten, literals(rule)))
    if not kinds:
        return rule
    return replace(rule, body=Conjunction((*body, *equations), rule.body.at), kinds=(*rule.kinds, *kinds))
