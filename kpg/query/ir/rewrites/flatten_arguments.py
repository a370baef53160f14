"""Arguments of body atoms become variables, constants or wildcards: what must be computed is an equation beside them.

p(x) :- q(x, y + 1).   ->   p(x) :- q(x, v), v = y + 1.
"""

from __future__ import annotations

from dataclasses import replace

from kpg.query.ir.body_variables import literals
from kpg.query.ir.literals import Atom, Comparison, Conjunction, Literal, Negation
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import CallTerm, Kind, Term, VariableTerm


def flatten_arguments(program: Program) -> Program:
    """The program with nothing to compute inside its body atoms."""
    return program.with_rules(tuple(map(flattened, program.rules)))


def flattened(rule: Rule) -> Rule:
    """One rule with equations for its computed arguments."""
    made: list[tuple[str, Kind]] = []
    equations: list[Literal] = []

    def name(term: Term) -> Term:
        if not isinstance(term, CallTerm):
            return term
        assert term.kind is not None
        variable = VariableTerm(f"value#{len(made)}", term.at)
        made.append((variable.name, term.kind))
        equations.append(Comparison("=", variable, term, term.at))
        return variable

    def flat(literal: Literal) -> Literal:
        if isinstance(literal, Atom):
            return replace(literal, arguments=tuple(map(name, literal.arguments)))
        if isinstance(literal, Negation) and isinstance(literal.formula, Atom):
            return replace(literal, formula=flat(literal.formula))
        return literal

    body = tuple(map(flat, literals(rule)))
    if not made:
        return rule
    return replace(rule, body=Conjunction((*body, *equations), rule.body.at), kinds=(*rule.kinds, *made))
