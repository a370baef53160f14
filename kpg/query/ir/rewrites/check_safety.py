"""Refuse rules with variables that nothing binds; nothing is changed.

A variable is bound by a positive atom, or by an equation whose other side is bound. In the head, in a negation and
beside a comparison every variable must be bound, because there would be infinitely many values for it.
"""

from __future__ import annotations

from kpg.errors import UnsafeRule
from kpg.query.ir.body_variables import bound_by, literals
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, Test, terms
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import CallTerm, VariableTerm, WildcardTerm, subterms
from kpg.query.source_text import Position, failure


def check_safety(program: Program) -> Program:
    """The same program, every variable of which is bound."""
    for rule in program.rules:
        check_rule(rule)
    return program


def check_rule(rule: Rule) -> None:
    """Refuse an unsafe rule."""
    body = literals(rule)
    bound = bound_by(body)
    check_used(rule.head, "the head", bound)
    for literal in body:
        match literal:
            case Negation():
                check_used(literal.formula, "a negation", bound)  # type: ignore[arg-type]
            case Comparison() | Test():
                check_used(literal, "a comparison", bound)
            case Atom():
                check_used_in_calls(literal, bound)


def check_used(part: Literal, where: str, bound: set[str]) -> None:
    """Refuse what is not bound in a place that only uses variables."""
    for term in terms(part):
        for each in subterms(term):
            if isinstance(each, VariableTerm) and each.name not in bound:
                raise unbound(each, where)
            if isinstance(each, WildcardTerm) and (where != "a negation" or each is not term):
                raise failure(
                    UnsafeRule, f"'_' in {where}", each.at, hint="A wildcard has no value: name it and bind it."
                )


def check_used_in_calls(atom: Atom, bound: set[str]) -> None:
    """Refuse what is not bound inside computed arguments of a positive atom."""
    for term in atom.arguments:
        if isinstance(term, CallTerm):
            for each in subterms(term):
                if isinstance(each, WildcardTerm):
                    raise failure(UnsafeRule, "'_' in a computed argument", each.at)
                if isinstance(each, VariableTerm) and each.name not in bound:
                    raise unbound(each, "a computed argument")


def unbound(variable: VariableTerm, where: str) -> UnsafeRule:
    """The error for a variable without a binding."""
    at: Position = variable.at
    return failure(
        UnsafeRule,
        f"variable {variable.written!r} in {where} is not bound",
        at,
        hint=f"Let it stand in a positive atom of the body, or define it: {variable.written} = ...",
    )
