"""Check that every rule is safe: every variable is bound. The program is unchanged.

A positive atom binds its variables, and so does an equation with one side bound. An unbound variable in the head, a
negation or a comparison would stand for infinitely many values.
"""

from __future__ import annotations

from kpg.errors import UnsafeRule
from kpg.query.ir.body_variables import bound_by, literals
from kpg.query.ir.literals import Atom, Comparison, Literal, Negation, Test, terms
from kpg.query.ir.program import Program, Rule
from kpg.query.ir.terms import CallTerm, VariableTerm, WildcardTerm, subterms
from kpg.query.source_text import Position, failure


def check_safety(program: Program) -> Program:
    """Return the program unchanged; raise UnsafeRule if a variable is not bound."""
    for rule in program.rules:
        check_rule(rule)
    return program


def check_rule(rule: Rule) -> None:
    """Raise UnsafeRule if a rule is unsafe."""
    body = literals(rule)
    bound = bound_by(body)
    check_targets(rule, bound)
    if rule.role != "errors":  # it derives nothing
        check_used(rule.head, "the head" if body else "a fact", bound)
    for literal in body:
        match literal:
            case Negation():
                check_used(literal.formula, "a negation", bound)  # type: ignore[arg-type]
            case Comparison() | Test():
                check_used(literal, "a comparison", bound)
            case Atom():
                check_used_in_calls(literal, bound)


def check_targets(rule: Rule, bound: set[str]) -> None:
    """Raise UnsafeRule if the expression of an aggregate, whose value the rule computes, has an unbound variable."""
    for literal in literals(rule) if is_generated(rule.head) else ():
        if isinstance(literal, Comparison) and isinstance(literal.left, VariableTerm) and literal.left.is_generated:
            check_used(Atom(rule.head.relation, (literal.right,)), "an aggregate", bound)


def is_generated(atom: Atom) -> bool:
    """Return whether the relation of an atom is generated."""
    return atom.relation.startswith("@")


def check_used(part: Literal, where: str, bound: set[str]) -> None:
    """Raise UnsafeRule if a literal that only uses variables has an unbound one, or a wildcard that needs a value."""
    for term in terms(part):
        for subterm in subterms(term):
            if isinstance(subterm, VariableTerm) and subterm.name not in bound:
                raise unbound(subterm, where)
            if isinstance(subterm, WildcardTerm) and (where != "a negation" or subterm is not term):
                raise failure(
                    UnsafeRule, f"'_' in {where}", subterm.at, hint="A wildcard has no value: name it and bind it."
                )


def check_used_in_calls(atom: Atom, bound: set[str]) -> None:
    """Raise UnsafeRule if a computed argument of a positive atom uses an unbound variable."""
    for term in atom.arguments:
        if isinstance(term, CallTerm):
            for subterm in subterms(term):
                if isinstance(subterm, WildcardTerm):
                    hint = "A wildcard has no value: name it and bind it."
                    raise failure(UnsafeRule, "'_' in a computed argument", subterm.at, hint=hint)
                if isinstance(subterm, VariableTerm) and subterm.name not in bound:
                    raise unbound(subterm, "a computed argument")


def unbound(variable: VariableTerm, where: str) -> UnsafeRule:
    """Return the error for an unbound variable."""
    at: Position = variable.at
    return failure(
        UnsafeRule,
        f"variable {variable.written!r} in {where} is not bound",
        at,
        hint="A fact has only constants."
        if where == "a fact"
        else f"Use it in a positive atom of the body, or define it: {variable.written} = ...",
    )
