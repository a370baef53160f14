"""Give each generator, such as range, an equation of its own.

p(range(0, 3) + 1) :- q().     ->   p(v + 1) :- q(), v = range(0, 3).
p(x) :- q(x), x < range(0, y). ->   p(x) :- q(x), x < v, v = range(0, y).

An equation of a variable with a generator stays: it binds the variable to each value, or if the variable is bound,
asks whether its value is among them.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.body_variables import literals
from kpg.query.ir.functors import FUNCTORS
from kpg.query.ir.literals import Comparison, Conjunction, Literal, map_atom_terms, map_terms
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import CallTerm, Kind, Term, VariableTerm, map_term


def lift_generators(program: Program) -> Program:
    """Return the program with generators only on one side of equations."""
    return program.with_rules(tuple(map(lift_rule, program.rules)))


def is_generator(term: Term) -> bool:
    """Return whether a term is a call with any number of values."""
    return isinstance(term, CallTerm) and term.functor in FUNCTORS and FUNCTORS[term.functor].generates


def lift_rule(rule: Rule) -> Rule:
    """Return one rule with equations for its generators."""
    kinds: list[tuple[str, Kind]] = []
    equations: list[Literal] = []

    def lift(term: Term) -> Term:
        if not is_generator(term):
            return term
        assert isinstance(term, CallTerm) and term.kind is not None
        variable = VariableTerm(f"value#g{len(kinds)}", term.at)
        kinds.append((variable.name, term.kind))
        equations.append(Comparison("=", variable, term, term.at))
        return variable

    def lift_below(term: Term) -> Term:
        assert isinstance(term, CallTerm)
        return replace(term, arguments=tuple(map_term(argument, lift) for argument in term.arguments))

    def lift_literal(literal: Literal) -> Literal:
        if isinstance(literal, Comparison) and literal.op == "=":
            if isinstance(literal.left, VariableTerm) and is_generator(literal.right):
                return replace(literal, right=lift_below(literal.right))
            if isinstance(literal.right, VariableTerm) and is_generator(literal.left):
                return replace(literal, left=lift_below(literal.left))
        return map_terms(literal, lift)  # type: ignore[return-value]

    body = tuple(map(lift_literal, literals(rule)))
    heads = tuple(map_atom_terms(head, lift) for head in rule.heads)
    if not equations:
        return rule
    return replace(rule, heads=heads, body=Conjunction((*body, *equations), rule.body.at), kinds=(*rule.kinds, *kinds))
