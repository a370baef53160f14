"""The literals of bodies, and the variables that they bind.

A positive atom binds the variables among its arguments. An equation binds the variable on one side if the variables of
the other side are bound. A disjunction binds the variables that each alternative binds. The head, negations and other
comparisons use variables without binding them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kpg.query.ir.literals import (
    Atom,
    Comparison,
    Conjunction,
    Disjunction,
    Formula,
    Literal,
    Negation,
    Test,
    variables,
)
from kpg.query.ir.program import Rule
from kpg.query.ir.terms import AggregateTerm, Term, VariableTerm, subterms
from kpg.query.ir.terms import variables as variables_of_term


def literals(rule: Rule) -> tuple[Literal, ...]:
    """Return the literals of a rule's body, which must be a conjunction of literals."""
    return literals_of(rule.body)


def literals_of(body: Formula) -> tuple[Literal, ...]:
    """Return the literals of a body, which must be a conjunction of literals."""
    parts = body.parts if isinstance(body, Conjunction) else (body,)
    assert all(isinstance(part, (Atom, Comparison, Test, Negation)) for part in parts), "not in normal form"
    return parts  # type: ignore[return-value]


def definitions(literal: Formula) -> Iterator[tuple[VariableTerm, Term]]:
    """Yield (variable, term) for each variable that an equation can define: one side by the other."""
    if isinstance(literal, Comparison) and literal.op == "=":
        for side, other in ((literal.left, literal.right), (literal.right, literal.left)):
            if isinstance(side, VariableTerm):
                yield side, other


def is_computable(term: Term, bound: set[str]) -> bool:
    """Return whether a term can be computed from bound variables; an aggregate cannot."""
    if any(isinstance(part, AggregateTerm) for part in subterms(term)):
        return False
    return all(variable.name in bound for variable in variables_of_term(term))


def bound_by(body: Iterable[Formula], already: Iterable[str] = ()) -> set[str]:
    """Return the names that are bound by the literals of a body and by variables that are bound already."""
    body = tuple(body)
    bound = set(already)
    for literal in body:
        if isinstance(literal, Atom):
            bound |= {term.name for term in literal.arguments if isinstance(term, VariableTerm)}
    alternatives = [literal for literal in body if isinstance(literal, Disjunction)]
    equations = [pair for literal in body for pair in definitions(literal)]
    while True:
        bound = with_defined(equations, bound)
        before = len(bound)
        for literal in alternatives:
            bound |= set.intersection(*(bound_by(parts_of(part), bound) for part in literal.parts))
        if len(bound) == before:
            return bound


def with_defined(equations: Iterable[tuple[VariableTerm, Term]], bound: set[str]) -> set[str]:
    """Return bound variables, and those that equations define from them in turn; in time linear in the equations."""
    bound = set(bound)
    missing: list[int] = []  # for each equation: the number of variables that its term still lacks
    defined: list[str] = []
    waiting: dict[str, list[int]] = {}  # by variable: the equations that lack it
    ready: list[str] = []
    for variable, term in equations:
        if any(isinstance(part, AggregateTerm) for part in subterms(term)):
            continue
        lacking = {other.name for other in variables_of_term(term)} - bound
        for name in lacking:
            waiting.setdefault(name, []).append(len(missing))
        missing.append(len(lacking))
        defined.append(variable.name)
        if not lacking:
            ready.append(variable.name)
    while ready:
        name = ready.pop()
        if name in bound:
            continue
        bound.add(name)
        for number in waiting.pop(name, ()):
            missing[number] -= 1
            if not missing[number]:
                ready.append(defined[number])
    return bound


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """Return the parts of a conjunction; any other formula is its only part."""
    return formula.parts if isinstance(formula, Conjunction) else (formula,)


def variable_names(literal: Literal) -> set[str]:
    """Return the names of the variables in a literal."""
    return {variable.name for variable in variables(literal)}
