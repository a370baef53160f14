"""Bodies as tuples of literals, and which variables they bind.

A variable is bound by a positive atom it stands in, or by an equation whose other side is bound. Everything else, the
head, negations and comparisons, only uses variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpg.query.ir.literals import Atom, Comparison, Conjunction, Formula, Literal, Negation, Test, variables
from kpg.query.ir.program import Rule
from kpg.query.ir.terms import AggregateTerm, Term, VariableTerm, subterms
from kpg.query.ir.terms import variables as variables_of_term


def literals(rule: Rule) -> tuple[Literal, ...]:
    """The literals of a rule whose body is a conjunction of them."""
    return literals_of(rule.body)


def literals_of(body: Formula) -> tuple[Literal, ...]:
    """The literals of a conjunction of them."""
    parts = body.parts if isinstance(body, Conjunction) else (body,)
    assert all(isinstance(part, (Atom, Comparison, Test, Negation)) for part in parts), "not in normal form"
    return parts  # type: ignore[return-value]


def definitions(literal: Formula) -> Iterator[tuple[VariableTerm, Term]]:
    """What an equation may define: (variable, term), either way round."""
    if isinstance(literal, Comparison) and literal.op == "=":
        for this, that in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(this, VariableTerm):
                yield this, that


def is_ready(term: Term, bound: set[str]) -> bool:
    """Whether a term can be computed from bound variables; an aggregate cannot."""
    if any(isinstance(each, AggregateTerm) for each in subterms(term)):
        return False
    return all(variable.name in bound for variable in variables_of_term(term))


def bound_by(body: Iterable[Formula], already: Iterable[str] = ()) -> set[str]:
    """The variables that a body binds, given some that are bound."""
    body = tuple(body)
    bound = set(already)
    for literal in body:
        if isinstance(literal, Atom):
            bound |= {term.name for term in literal.arguments if isinstance(term, VariableTerm)}
    while True:
        found = {
            variable.name
            for literal in body
            for variable, term in definitions(literal)
            if variable.name not in bound and is_ready(term, bound)
        }
        if not found:
            return bound
        bound |= found


def uses(literal: Literal) -> set[str]:
    """The names of the variables in a literal."""
    return {variable.name for variable in variables(literal)}
